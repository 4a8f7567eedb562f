// ThreadWorld: the ranks of a run as threads of one process, for tests. The CPU generator is shared: no
// dropout there.
#pragma once

#include <torch/torch.h>

#include <barrier>
#include <functional>
#include <thread>
#include <vector>

#include "gradstep/dist/world.h"

namespace gradstep::testing {

// What the ranks share.
struct ThreadHub {
  explicit ThreadHub(int64_t size) : slots(static_cast<size_t>(size)), meet(size) {}
  std::vector<at::Tensor> slots;
  std::barrier<> meet;
  std::atomic<int64_t> num_collectives{0};
};

class ThreadWorld final : public World {
 public:
  ThreadWorld(ThreadHub& hub, int64_t rank) : hub_(hub), rank_(rank) {}
  int64_t rank() const override { return rank_; }
  int64_t size() const override { return static_cast<int64_t>(hub_.slots.size()); }
  void all_reduce_sum(at::Tensor& tensor) override {
    share(tensor);
    at::Tensor sum = hub_.slots.front().clone();
    for (size_t i = 1; i < hub_.slots.size(); ++i) sum += hub_.slots[i];
    hub_.meet.arrive_and_wait();
    tensor.copy_(sum);
  }
  void broadcast(at::Tensor& tensor, int64_t root) override {
    share(tensor);
    const at::Tensor value = hub_.slots[static_cast<size_t>(root)].clone();
    hub_.meet.arrive_and_wait();
    tensor.copy_(value);
  }
  void barrier() override { hub_.meet.arrive_and_wait(); }

 private:
  void share(const at::Tensor& tensor) {
    if (rank_ == 0) ++hub_.num_collectives;
    hub_.slots[static_cast<size_t>(rank_)] = tensor.detach().clone();
    hub_.meet.arrive_and_wait();
  }
  ThreadHub& hub_;
  int64_t rank_;
};

// Runs `body(world)` on `size` ranks and waits for all. An exception on one rank would leave the others
// waiting, so bodies report failures through EXPECT only.
inline void run_ranks(int64_t size, const std::function<void(World&)>& body) {
  ThreadHub hub(size);
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < size; ++rank) {
    threads.emplace_back([&hub, &body, rank] {
      ThreadWorld world(hub, rank);
      body(world);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace gradstep::testing

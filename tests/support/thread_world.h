// ThreadWorld: the ranks of a run as threads of one process, for tests. Ranks that do not act alike are a
// failure of the test, and no hang. The CPU generator is shared: no dropout there.
#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gradstep/dist/world.h"

namespace gradstep::testing {

// What the ranks share.
class ThreadHub {
 public:
  explicit ThreadHub(int64_t size) : slots(static_cast<size_t>(size)) {}

  // Returns when all ranks have made this call. Throws on each rank when one makes another call, or has left
  // and makes none: with real ranks that is a hang.
  void meet(const std::string& call) {
    std::unique_lock lock(mutex_);
    if (!trouble_.empty()) fail(trouble_);
    if (num_here_ == 0) call_ = call;
    if (call != call_) fail("one rank calls " + call_ + ", another " + call);
    ++num_here_;
    ++num_steps_;
    const int64_t round = round_;
    if (num_here_ == static_cast<int64_t>(slots.size())) {
      num_here_ = 0;
      ++round_;
    }
    changed_.notify_all();
    changed_.wait(lock, [&] { return round_ != round || num_left_ > 0 || !trouble_.empty(); });
    if (round_ == round) fail("a rank waits in " + call + " for one that has left");
  }
  // A rank makes no more calls.
  void leave() {
    const std::lock_guard lock(mutex_);
    ++num_left_;
    ++num_steps_;
    changed_.notify_all();
  }
  // Returns when all ranks have left. Ends the process if no rank has moved for half a minute.
  void wait_for_all() {
    std::unique_lock lock(mutex_);
    while (num_left_ < static_cast<int64_t>(slots.size())) {
      const int64_t before = num_steps_;
      if (changed_.wait_for(lock, std::chrono::seconds(30), [&] { return num_steps_ != before; })) continue;
      std::fputs("ThreadHub: no rank has moved for 30 s\n", stderr);
      std::abort();
    }
  }
  // What the ranks did not do alike; empty: nothing.
  std::string trouble() {
    const std::lock_guard lock(mutex_);
    return trouble_;
  }

  std::vector<at::Tensor> slots;
  std::atomic<int64_t> num_collectives{0};

 private:
  [[noreturn]] void fail(const std::string& what) {
    if (trouble_.empty()) trouble_ = what;
    changed_.notify_all();
    throw std::runtime_error(trouble_);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string call_;  // that those who are here have made
  int64_t num_here_ = 0;
  int64_t round_ = 0;
  int64_t num_left_ = 0;
  int64_t num_steps_ = 0;  // calls and leaves so far
  std::string trouble_;
};

class ThreadWorld final : public World {
 public:
  ThreadWorld(ThreadHub& hub, int64_t rank) : hub_(hub), rank_(rank) {}
  int64_t rank() const override { return rank_; }
  int64_t size() const override { return static_cast<int64_t>(hub_.slots.size()); }
  void all_reduce_sum(at::Tensor& tensor) override {
    share("all_reduce_sum", tensor);
    at::Tensor sum = hub_.slots.front().clone();
    for (size_t i = 1; i < hub_.slots.size(); ++i) sum += hub_.slots[i];
    hub_.meet("all_reduce_sum");
    tensor.copy_(sum);
  }
  void broadcast(at::Tensor& tensor, int64_t root) override {
    share("broadcast", tensor);
    const at::Tensor value = hub_.slots[static_cast<size_t>(root)].clone();
    hub_.meet("broadcast");
    tensor.copy_(value);
  }

 private:
  void share(const char* call, const at::Tensor& tensor) {
    if (rank_ == 0) ++hub_.num_collectives;
    hub_.slots[static_cast<size_t>(rank_)] = tensor.detach().clone();
    std::ostringstream text;
    text << call << " of " << tensor.scalar_type() << " " << tensor.sizes();
    hub_.meet(text.str());
  }
  ThreadHub& hub_;
  int64_t rank_;
};

// Runs `body(world)` on `size` ranks and waits for all. Ranks that do not act alike, and an exception that
// leaves a body, fail the test.
inline void run_ranks(int64_t size, const std::function<void(World&)>& body) {
  ThreadHub hub(size);
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < size; ++rank) {
    threads.emplace_back([&hub, &body, rank] {
      ThreadWorld world(hub, rank);
      try {
        body(world);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << rank << ": " << error.what();
      }
      hub.leave();
    });
  }
  hub.wait_for_all();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(hub.trouble(), "");
}

}  // namespace gradstep::testing

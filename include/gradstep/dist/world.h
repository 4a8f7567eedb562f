// World: the ranks of a run. The interface behind which one process, threads in a test, and later c10d stand.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace gradstep {

// All ranks make the same calls in the same order. Results are bit-equal on all ranks.
class World {
 public:
  virtual ~World() = default;
  [[nodiscard]] virtual int64_t rank() const = 0;
  [[nodiscard]] virtual int64_t size() const = 0;
  // Replaces `tensor` on each rank by the sum over ranks, added in rank order.
  virtual void all_reduce_sum(at::Tensor& tensor) = 0;
  // Replaces `tensor` on each rank by that of `root`.
  virtual void broadcast(at::Tensor& tensor, int64_t root) = 0;
  virtual void barrier() = 0;
};

// A world of one: every call returns at once.
class SoloWorld final : public World {
 public:
  [[nodiscard]] int64_t rank() const override { return 0; }
  [[nodiscard]] int64_t size() const override { return 1; }
  void all_reduce_sum(at::Tensor&) override {}
  void broadcast(at::Tensor&, int64_t) override {}
  void barrier() override {}
};

}  // namespace gradstep

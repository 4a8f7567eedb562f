// World: the ranks of a run. One process, threads in a test, and later c10d implement it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace gradstep {

/// The ranks of a run: the processes that train one model together. All ranks make the same calls in the same
/// order. Results have the same bits on all ranks. PyTorch: torch.distributed, of which these are the calls
/// that gradstep needs.
class World {
 public:
  virtual ~World() = default;
  /// This rank, in [0, size()).
  [[nodiscard]] virtual int64_t rank() const = 0;
  /// The number of ranks.
  [[nodiscard]] virtual int64_t size() const = 0;
  /// Replaces `tensor` on each rank by the sum over ranks, added in the order of the ranks.
  virtual void all_reduce_sum(at::Tensor& tensor) = 0;
  /// Replaces `tensor` on each rank by the one of rank `root`.
  virtual void broadcast(at::Tensor& tensor, int64_t root) = 0;
};

/// A world of one rank. Every call returns at once.
class SoloWorld final : public World {
 public:
  [[nodiscard]] int64_t rank() const override { return 0; }
  [[nodiscard]] int64_t size() const override { return 1; }
  void all_reduce_sum(at::Tensor&) override {}
  void broadcast(at::Tensor&, int64_t) override {}
};

}  // namespace gradstep

// Staging: a copy of a state's tensors on the CPU, in memory that is kept from one copy to the next.
#pragma once

#include <vector>

#include "gradstep/checkpoint/checkpoint.h"

namespace gradstep {

class StagedViews;

class Staging {
 public:
  // The state with all its tensors copied, contiguous: they share no memory with the live ones, and names of
  // one tensor stay names of one. Without the optimizer its list is empty. Memory is taken anew only for
  // shapes or types that changed. Uses the compute threads; synchronises the device. What was returned before
  // is overwritten.
  const TrainState& copy(const TrainState& live, bool with_optimizer);
  [[nodiscard]] const TrainState& state() const { return state_; }

 private:
  struct Piece;
  void stage(const NamedTensors& live, NamedTensors& staged, std::vector<Piece>& pieces, StagedViews& views);
  at::Tensor memory_for(const at::Tensor& tensor);

  TrainState state_;
  std::vector<at::Tensor> memory_;  // in the order of use
  size_t num_used_ = 0;
};

}  // namespace gradstep

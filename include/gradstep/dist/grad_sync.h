// GradSync: sums the gradients over all ranks, once a window.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "gradstep/dist/world.h"

namespace gradstep {

class GradSync {
 public:
  // `parameters` in the same order on all ranks; the world must outlive this object.
  GradSync(std::vector<at::Tensor> parameters, World& world);

  // Replaces each parameter's .grad by its sum over ranks, in one collective. A rank without a gradient adds
  // zeros; a parameter that has one on no rank keeps none. A world of one: returns at once.
  void sum_();

 private:
  std::vector<at::Tensor> parameters_;
  World& world_;
};

}  // namespace gradstep

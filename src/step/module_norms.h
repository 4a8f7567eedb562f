// ModuleSums: what the modules of a window gave forward and backward, summed up over its micro-batches.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "gradstep/base/step_report.h"

namespace gradstep {

// "fc1" of "fc1.weight"; "" for a parameter of the root.
[[nodiscard]] std::string module_of(const std::string& parameter);

// The values in a type that has arithmetic: of float8 in fp32, without a graph.
[[nodiscard]] at::Tensor computable(const at::Tensor& tensor);

class ModuleSums {
 public:
  // Begins anew, for the modules of these parameters, in their order.
  void reset(const std::vector<std::string>& parameters);
  // Waits for the device. What is not a floating-point tensor with elements counts nothing.
  void add_forward(const std::string& parameter, const at::Tensor& output);
  void add_backward(const std::string& parameter, const at::Tensor& grad);
  // loss_scale: what the gradients are multiplied by.
  [[nodiscard]] std::vector<ModuleNorms> norms(double loss_scale) const;

 private:
  struct Sums {
    std::string module;
    double forward = 0;  // of squares
    double backward = 0;
    int64_t num_bad = 0;
  };
  Sums& of(const std::string& parameter);

  std::vector<Sums> modules_;
};

}  // namespace gradstep

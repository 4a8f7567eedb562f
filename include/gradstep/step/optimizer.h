// FusedOptimizer: AdamW or SGD over named fp32 parameters, with decay groups, by ATen's fused kernels.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace gradstep {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

enum class OptimizerKind { kAdamW, kSgd };

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::kAdamW;
  double weight_decay =
      1e-4;  // AdamW: decoupled (torch.optim.AdamW); SGD: added to the gradient (torch.optim.SGD)
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double momentum = 0.9;   // SGD
  bool nesterov = false;   // SGD
  bool decay_all = false;  // decay parameters with one dimension or none too
};

class FusedOptimizer {
 public:
  // The parameters stay the caller's; names are unique and a shared tensor is listed once.
  FusedOptimizer(NamedTensors parameters, const OptimizerOptions& options);

  // One update with learning rate lr from the parameters' .grad; those without one are left alone, their step
  // too. Where found_inf (0-dim fp32, on the device) is 1 nothing changes. Never waits for the device.
  void step(double lr, const at::Tensor& found_inf);

  [[nodiscard]] const NamedTensors& parameters() const { return parameters_; }
  [[nodiscard]] bool decays(size_t parameter) const { return decay_[parameter]; }
  [[nodiscard]] const OptimizerOptions& options() const { return options_; }
  // "<param>.exp_avg", ".exp_avg_sq", ".step" (0-dim fp32), or ".momentum_buffer" (none without momentum);
  // they share memory with the optimizer.
  [[nodiscard]] NamedTensors state() const;

 private:
  // Adds `amount` (0-dim) to the step of each parameter that has a gradient.
  void count_step(const at::Tensor& amount, int64_t sign);
  void step_group(bool decay, double lr, const at::Tensor& found_inf);

  NamedTensors parameters_;
  OptimizerOptions options_;
  std::vector<bool> decay_;
  std::vector<at::Tensor> first_moments_;   // exp_avg, or momentum_buffer; empty for SGD without momentum
  std::vector<at::Tensor> second_moments_;  // exp_avg_sq
  at::Tensor steps_;                        // (num_parameters) fp32: updates each parameter has had
  at::Tensor one_;                          // 0-dim: an update asks for no memory
  std::vector<at::Tensor> step_views_;      // 0-dim views of steps_
};

}  // namespace gradstep

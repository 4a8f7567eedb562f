// Sgd: torch.optim.SGD by ATen's fused kernel, with momentum or without.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "gradstep/step/optimizer.h"
#include "step/param_buckets.h"

namespace gradstep {

class Sgd final : public Optimizer {
 public:
  // One buffer a parameter, or none without momentum.
  static int64_t num_moments(double momentum) { return momentum > 0 ? 1 : 0; }
  Sgd(std::vector<TrainedParameter> parameters, const OptimizerOptions& options);
  void step(double lr, const at::Tensor& found_inf) override;
  [[nodiscard]] NamedTensors state() const override;
  // With a buffer of 0 the first step is that of a run that begins.
  [[nodiscard]] bool is_optional(const std::string& name) const override;

 private:
  void step_bucket(const ParamBucket& bucket, double lr, const at::Tensor& found_inf);

  const double momentum_;
  const bool nesterov_;
  const std::vector<ParamBucket> buckets_;
  std::vector<at::Tensor> momentum_buffers_;  // parallel to the parameters; empty without momentum
};

}  // namespace gradstep

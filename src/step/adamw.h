// AdamW: torch.optim.AdamW by ATen's fused kernel.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "gradstep/step/optimizer.h"
#include "step/param_buckets.h"

namespace gradstep {

class AdamW final : public Optimizer {
 public:
  static constexpr int64_t kMoments = 2;  // means and squares
  AdamW(std::vector<TrainedParameter> parameters, const OptimizerOptions& options);
  void step(double lr, const at::Tensor& found_inf) override;
  [[nodiscard]] NamedTensors state() const override;

 private:
  // Adds `amount` (0-dim) to the step of each parameter that has a gradient.
  void count_step(const at::Tensor& amount, int64_t sign);
  void step_bucket(const ParamBucket& bucket, double lr, const at::Tensor& found_inf);

  const double beta1_;
  const double beta2_;
  const double eps_;
  const std::vector<ParamBucket> buckets_;
  // Parallel to the parameters.
  std::vector<at::Tensor> means_;       // exp_avg
  std::vector<at::Tensor> squares_;     // exp_avg_sq
  std::vector<at::Tensor> step_views_;  // 0-dim views of steps_
  at::Tensor steps_;                    // (num_parameters) fp32: updates each parameter has had
  at::Tensor one_;                      // 0-dim: an update asks for no memory
};

}  // namespace gradstep

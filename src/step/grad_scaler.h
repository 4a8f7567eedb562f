// GradScaler: the loss scale of fp16 training. Its trajectory equals torch.amp.GradScaler's, down to a floor
// of 1.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "gradstep/step/engine.h"

namespace gradstep {

// Lives on the device of the parameters and never waits for it. Disabled: the scale is 1 and every call is a
// no-op.
class GradScaler {
 public:
  static constexpr double kMinScale = 1.0;

  GradScaler(bool enabled, const GradScalerOptions& options, at::Device device);

  [[nodiscard]] bool enabled() const { return enabled_; }
  // Multiplies all gradients by 1 / scale and sets `found_inf` (0-dim fp32) to 1 when an element is not
  // finite.
  void unscale_(std::vector<at::Tensor>& grads, at::Tensor& found_inf);
  // After an update: backs off where found_inf is 1, else counts towards growth.
  void update(const at::Tensor& found_inf);

  // 0-dim fp32 and int32 on the device; undefined when disabled.
  [[nodiscard]] const at::Tensor& scale_tensor() const { return scale_; }
  // Synchronises the device. 1 and 0 when disabled.
  [[nodiscard]] double scale() const;
  [[nodiscard]] int64_t num_good_updates() const;
  // For resume. No-op when disabled.
  void restore(double scale, int64_t num_good_updates);

 private:
  bool enabled_;
  GradScalerOptions options_;
  at::Tensor scale_;
  at::Tensor growth_tracker_;
};

}  // namespace gradstep

// The scale as two device scalars, moved by the same ATen ops that torch.amp.GradScaler calls.
#include "step/grad_scaler.h"

#include <ATen/ATen.h>

namespace gradstep {

GradScaler::GradScaler(bool enabled, const GradScalerOptions& options, at::Device device)
    : enabled_(enabled), options_(options) {
  if (!enabled_) return;
  scale_ = at::full({}, options_.init_scale, at::TensorOptions(at::kFloat).device(device));
  growth_tracker_ = at::zeros({}, at::TensorOptions(at::kInt).device(device));
}

void GradScaler::unscale_(std::vector<at::Tensor>& grads, at::Tensor& found_inf) {
  if (!enabled_ || grads.empty()) return;
  // The reciprocal is taken in fp64 as Python does, then rounded once.
  const at::Tensor inverse = scale_.to(at::kDouble).reciprocal().to(at::kFloat);
  at::_amp_foreach_non_finite_check_and_unscale_(grads, found_inf, inverse);
}

void GradScaler::update(const at::Tensor& found_inf) {
  if (!enabled_) return;
  at::_amp_update_scale_(scale_, growth_tracker_, found_inf, options_.growth_factor, options_.backoff_factor,
                         options_.growth_interval);
  scale_.clamp_min_(kMinScale);
}

double GradScaler::scale() const { return enabled_ ? scale_.item<double>() : 1.0; }

int64_t GradScaler::num_good_updates() const { return enabled_ ? growth_tracker_.item<int64_t>() : 0; }

void GradScaler::restore(double scale, int64_t num_good_updates) {
  if (!enabled_) return;
  scale_.fill_(scale);
  growth_tracker_.fill_(num_good_updates);
}

}  // namespace gradstep

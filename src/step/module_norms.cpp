// Squares are summed in fp64, where those of fp32 numbers cannot overflow.
#include "step/module_norms.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace gradstep {
namespace {

bool counts(const at::Tensor& tensor) {
  return tensor.defined() && tensor.has_storage() && tensor.is_floating_point() && tensor.numel() > 0;
}

double sum_of_squares(const at::Tensor& tensor) {
  const double norm =
      at::linalg_vector_norm(computable(tensor), 2, at::OptionalIntArrayRef(), /*keepdim=*/false, at::kDouble)
          .item<double>();
  return norm * norm;
}

int64_t num_not_finite(const at::Tensor& tensor) {
  return tensor.numel() - at::isfinite(computable(tensor)).sum().item<int64_t>();
}

}  // namespace

at::Tensor computable(const at::Tensor& tensor) {
  return at::isFloat8Type(tensor.scalar_type()) ? tensor.detach().to(at::kFloat) : tensor.detach();
}

std::string module_of(const std::string& parameter) {
  const size_t dot = parameter.rfind('.');
  return dot == std::string::npos ? std::string() : parameter.substr(0, dot);
}

void ModuleSums::reset(const std::vector<std::string>& parameters) {
  modules_.clear();
  for (const std::string& parameter : parameters) (void)of(parameter);
}

ModuleSums::Sums& ModuleSums::of(const std::string& parameter) {
  const std::string module = module_of(parameter);
  const auto found = std::ranges::find_if(modules_, [&](const Sums& sums) { return sums.module == module; });
  if (found != modules_.end()) return *found;
  modules_.push_back({.module = module});
  return modules_.back();
}

void ModuleSums::add_forward(const std::string& parameter, const at::Tensor& output) {
  if (!counts(output)) return;
  Sums& sums = of(parameter);
  sums.forward += sum_of_squares(output);
  sums.num_bad += num_not_finite(output);
}

void ModuleSums::add_backward(const std::string& parameter, const at::Tensor& grad) {
  if (!counts(grad)) return;
  Sums& sums = of(parameter);
  sums.backward += sum_of_squares(grad);
  sums.num_bad += num_not_finite(grad);
}

std::vector<ModuleNorms> ModuleSums::norms(double loss_scale) const {
  std::vector<ModuleNorms> result;
  for (const Sums& sums : modules_) {
    result.push_back({.module = sums.module,
                      .forward = std::sqrt(sums.forward),
                      .backward = std::sqrt(sums.backward) / loss_scale,
                      .num_bad = sums.num_bad});
  }
  return result;
}

}  // namespace gradstep

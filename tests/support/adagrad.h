// Adagrad as a user writes it: an optimizer that gradstep does not have.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <vector>

#include "gradstep/step/optimizer.h"

namespace gradstep::testing {

class Adagrad final : public Optimizer {
 public:
  explicit Adagrad(std::vector<TrainedParameter> parameters) : Optimizer(std::move(parameters)) {
    for (const TrainedParameter& parameter : trained()) sums_.push_back(at::zeros_like(parameter.tensor));
  }

  void step(double lr, const at::Tensor& found_inf) override {
    const at::NoGradGuard no_grad;
    const at::Tensor skip = found_inf.to(at::kBool);
    for (size_t i = 0; i < sums_.size(); ++i) {
      const TrainedParameter& parameter = trained()[i];
      const at::Tensor& grad = parameter.tensor.grad();
      if (!grad.defined()) continue;
      const at::Tensor sum = sums_[i] + grad * grad;
      const at::Tensor moved = parameter.tensor - lr * parameter.lr_factor * grad / (sum.sqrt() + 1e-10);
      parameter.tensor.copy_(at::where(skip, parameter.tensor, moved));
      sums_[i].copy_(at::where(skip, sums_[i], sum));
    }
  }

  [[nodiscard]] NamedTensors state() const override {
    NamedTensors state;
    for (size_t i = 0; i < sums_.size(); ++i) state.emplace_back(trained()[i].name + ".sum", sums_[i]);
    return state;
  }

 private:
  std::vector<at::Tensor> sums_;
};

inline std::unique_ptr<Optimizer> make_adagrad(std::vector<TrainedParameter> parameters) {
  return std::make_unique<Adagrad>(std::move(parameters));
}

}  // namespace gradstep::testing

// All gradients travel in one flat buffer, and those of the sum are views of it. After them comes a flag for
// each parameter, which says whether the rank has a gradient for it; then two flags that say how its passes
// ended.
#include "dist/grad_sync.h"

#include <ATen/ATen.h>

namespace gradstep {
namespace {

class PlainSum final : public GradSync {
 public:
  PlainSum(std::vector<at::Tensor> parameters, World& world)
      : parameters_(std::move(parameters)), world_(world) {
    if (world_.size() == 1 || parameters_.empty()) return;
    int64_t size = num_flags();
    for (const at::Tensor& parameter : parameters_) size += parameter.numel();
    // Now, because a rank that finds no memory in finish() would leave the others waiting.
    flat_ = at::zeros({size}, parameters_.front().options().requires_grad(false));
    flags_ = at::zeros({num_flags()}, at::kFloat);
  }

  void begin(int64_t) override {}
  void arm(const at::Tensor&) override {}

  SyncStatus finish(SyncStatus own) override {
    if (world_.size() == 1 || parameters_.empty()) return own;
    at::NoGradGuard no_grad;
    pack(own);
    world_.all_reduce_sum(flat_);

    flags_.copy_(flat_.narrow(0, flat_.numel() - num_flags(), num_flags()));
    const float* flag = flags_.const_data_ptr<float>();
    if (flag[num_flags() - 1] > 0) return SyncStatus::kFailed;
    if (flag[num_flags() - 2] > 0) return SyncStatus::kOutOfMemory;
    if (flag[num_flags() - 3] > 0) return SyncStatus::kGivenUp;
    int64_t offset = 0;
    for (at::Tensor& parameter : parameters_) {
      if (*flag++ > 0)
        parameter.mutable_grad() = flat_.narrow(0, offset, parameter.numel()).view_as(parameter);
      offset += parameter.numel();
    }
    return SyncStatus::kComplete;
  }

 private:
  [[nodiscard]] int64_t num_flags() const { return static_cast<int64_t>(parameters_.size()) + 3; }

  void pack(SyncStatus own) {
    auto* flag = flags_.mutable_data_ptr<float>();
    int64_t offset = 0;
    for (const at::Tensor& parameter : parameters_) {
      at::Tensor place = flat_.narrow(0, offset, parameter.numel());
      const at::Tensor& grad = parameter.grad();
      *flag++ = grad.defined() ? 1.0F : 0.0F;
      grad.defined() ? place.view_as(parameter).copy_(grad) : place.zero_();
      offset += parameter.numel();
    }
    *flag++ = own == SyncStatus::kGivenUp ? 1.0F : 0.0F;
    *flag++ = own == SyncStatus::kOutOfMemory ? 1.0F : 0.0F;
    *flag++ = own == SyncStatus::kFailed ? 1.0F : 0.0F;
    flat_.narrow(0, offset, num_flags()).copy_(flags_);
  }

  std::vector<at::Tensor> parameters_;
  World& world_;
  at::Tensor flat_;
  at::Tensor flags_;  // on the CPU
};

}  // namespace

std::unique_ptr<GradSync> make_grad_sync(std::vector<at::Tensor> parameters, World& world) {
  return std::make_unique<PlainSum>(std::move(parameters), world);
}

}  // namespace gradstep

// All gradients travel in one flat buffer. After them come a flag for each parameter, which says whether the
// rank has a gradient for it, and two flags that say how its passes ended.
#include "dist/grad_sync.h"

#include <ATen/ATen.h>

namespace gradstep {
namespace {

class PlainSum final : public GradSync {
 public:
  PlainSum(std::vector<at::Tensor> parameters, World& world)
      : parameters_(std::move(parameters)), world_(world) {}

  void begin(int64_t) override {}
  void arm(const at::Tensor&) override {}

  SyncStatus finish(SyncStatus own) override {
    if (world_.size() == 1 || parameters_.empty()) return own;
    at::NoGradGuard no_grad;
    at::Tensor flat = packed(own);
    world_.all_reduce_sum(flat);

    const int64_t num_flags = static_cast<int64_t>(parameters_.size()) + 2;
    const at::Tensor flags = flat.narrow(0, flat.numel() - num_flags, num_flags).cpu();
    const float* flag = flags.const_data_ptr<float>();
    if (flag[num_flags - 1] > 0) return SyncStatus::kFailed;
    if (flag[num_flags - 2] > 0) return SyncStatus::kOutOfMemory;
    int64_t offset = 0;
    for (at::Tensor& parameter : parameters_) {
      if (*flag++ > 0)
        parameter.mutable_grad() = flat.narrow(0, offset, parameter.numel()).view_as(parameter);
      offset += parameter.numel();
    }
    return SyncStatus::kComplete;
  }

 private:
  [[nodiscard]] at::Tensor packed(SyncStatus own) const {
    std::vector<at::Tensor> pieces;
    std::vector<float> flags;
    for (const at::Tensor& parameter : parameters_) {
      const at::Tensor& grad = parameter.grad();
      flags.push_back(grad.defined() ? 1.0F : 0.0F);
      pieces.push_back(grad.defined() ? grad.flatten() : at::zeros({parameter.numel()}, parameter.options()));
    }
    flags.push_back(own == SyncStatus::kOutOfMemory ? 1.0F : 0.0F);
    flags.push_back(own == SyncStatus::kFailed ? 1.0F : 0.0F);
    pieces.push_back(at::tensor(flags).to(parameters_.front().options()));
    return at::cat(pieces);
  }

  std::vector<at::Tensor> parameters_;
  World& world_;
};

}  // namespace

std::unique_ptr<GradSync> make_grad_sync(std::vector<at::Tensor> parameters, World& world) {
  return std::make_unique<PlainSum>(std::move(parameters), world);
}

}  // namespace gradstep

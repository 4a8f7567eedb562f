// oneDNN's own symbols are hidden in libtorch, so its linear op is called through the dispatcher, where our
// kernels replace libtorch's for the CPU key. Autograd, autocast and every module above it stay as they are.
#include <ATen/ATen.h>
#include <ATen/CPUFunctions.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <memory>

#include "base/is_within.h"
#include "gradstep/base/error.h"
#include "gradstep/step/precision.h"

namespace gradstep {
namespace {

using LinearPointwise = at::Tensor(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&,
                                   std::string_view, c10::List<std::optional<at::Scalar>>,
                                   std::optional<std::string_view>);

// Below this a product is over before oneDNN has looked up its kernel.
constexpr double kMinProducts = 1 << 20;

std::optional<c10::TypedOperatorHandle<LinearPointwise>> find_linear_pointwise() {
  const auto handle = c10::Dispatcher::singleton().findSchema({"mkldnn::_linear_pointwise", ""});
  if (!handle || !handle->hasKernelForDispatchKey(c10::DispatchKey::CPU)) return std::nullopt;
  return handle->typed<LinearPointwise>();
}

// a (m, k) times b (k, n), plus bias (n) where given.
at::Tensor onednn_product(const at::Tensor& a, const at::Tensor& b, const std::optional<at::Tensor>& bias) {
  static const auto linear = *find_linear_pointwise();
  static const c10::List<std::optional<at::Scalar>> no_scalars;
  return linear.call(a, b.t(), bias, "none", no_scalars, std::nullopt);
}

// A plain or transposed matrix: others are copied by oneDNN first, which may cost more than it wins.
bool is_plain(const at::Tensor& x) {
  return (x.stride(1) == 1 && x.stride(0) == x.size(1)) || (x.stride(0) == 1 && x.stride(1) == x.size(0));
}

bool suits_onednn(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == at::kFloat && b.scalar_type() == at::kFloat && a.dim() == 2 && b.dim() == 2 &&
         a.size(1) == b.size(0) && a.is_cpu() && b.is_cpu() && a.layout() == at::kStrided &&
         b.layout() == at::kStrided && !a.is_neg() && !b.is_neg() &&
         static_cast<double>(a.size(0)) * static_cast<double>(a.size(1)) * static_cast<double>(b.size(1)) >=
             kMinProducts &&
         is_plain(a) && is_plain(b);
}

at::Tensor mm(const at::Tensor& a, const at::Tensor& b) {
  return suits_onednn(a, b) ? onednn_product(a, b, std::nullopt) : at::cpu::mm(a, b);
}

at::Tensor addmm(const at::Tensor& self, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta,
                 const at::Scalar& alpha) {
  const bool is_bias = self.dim() == 1 && b.dim() == 2 && self.size(0) == b.size(1) &&
                       self.scalar_type() == at::kFloat && self.is_contiguous() && beta.equal(1) &&
                       alpha.equal(1);
  return is_bias && suits_onednn(a, b) ? onednn_product(a, b, self) : at::cpu::addmm(self, a, b, beta, alpha);
}

// Registering over a kernel makes the dispatcher warn; here that is the purpose.
class SilencedWarnings final : public c10::WarningHandler {
 public:
  void process(const c10::Warning&) override {}
};

std::unique_ptr<torch::Library>& registration() {
  static std::unique_ptr<torch::Library> library;
  return library;
}

}  // namespace

std::string to_string(Matmul matmul) { return matmul == Matmul::kTorch ? "torch" : "onednn"; }

Matmul parse_matmul(const std::string& text) {
  if (text == "torch") return Matmul::kTorch;
  if (text == "onednn") return Matmul::kOneDnn;
  throw ConfigError("matmul \"" + text + "\" is not one of torch, onednn");
}

bool has_onednn() {
  static const bool found = at::globalContext().userEnabledMkldnn() && find_linear_pointwise().has_value();
  return found;
}

void use_matmul(Matmul matmul) {
  if (!is_within(matmul, Matmul::kTorch, Matmul::kOneDnn))
    throw ConfigError("use_matmul: it must be Matmul::kTorch or kOneDnn");
  if (matmul == current_matmul()) return;
  if (matmul == Matmul::kTorch) {
    registration().reset();
    return;
  }
  if (!has_onednn())
    throw ConfigError("`matmul` onednn: this LibTorch was built without oneDNN; use `matmul` torch");
  SilencedWarnings silenced;
  const c10::WarningUtils::WarningHandlerGuard guard(&silenced);
  auto library = std::make_unique<torch::Library>(torch::Library::IMPL, "aten", c10::DispatchKey::CPU,
                                                  __FILE__, __LINE__);
  library->impl("mm", TORCH_FN(mm));
  library->impl("addmm", TORCH_FN(addmm));
  registration() = std::move(library);
}

Matmul current_matmul() { return registration() ? Matmul::kOneDnn : Matmul::kTorch; }

}  // namespace gradstep

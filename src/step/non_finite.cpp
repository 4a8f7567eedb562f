// Modules have no forward hooks in C++, so the ops are watched and mapped back to parameters by the memory
// they read.
#include "gradstep/step/non_finite.h"

#include <ATen/ATen.h>

#include <mutex>
#include <unordered_map>

namespace gradstep {
namespace {

// What the observer knows; callbacks are plain functions, so it is one object for the process.
struct Watch {
  std::mutex mutex;
  std::unordered_map<const void*, std::string> parameter_of;  // memory -> parameter name
  std::string last_parameter;  // most recent parameter seen, which places ops that use none, such as relu
  std::string first;
  std::string first_masked;  // an output whose only odd values are -inf: an attention mask, or an overflow
};

Watch& watch() {
  static Watch instance;
  return instance;
}

const void* memory_of(const at::Tensor& tensor) {
  return tensor.defined() && tensor.has_storage() ? tensor.storage().data() : nullptr;
}

enum class Finding { kFinite, kOnlyNegativeInfinity, kNotFinite };

Finding inspect(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage() || !tensor.is_floating_point() || tensor.numel() == 0) {
    return Finding::kFinite;
  }
  const at::Tensor values = tensor.detach();
  if (at::isfinite(values).all().item<bool>()) return Finding::kFinite;
  const bool masked = at::isfinite(values).logical_or(at::isneginf(values)).all().item<bool>();
  return masked ? Finding::kOnlyNegativeInfinity : Finding::kNotFinite;
}

std::string module_of(const std::string& parameter) {
  const size_t dot = parameter.rfind('.');
  return dot == std::string::npos ? std::string("the root module") : "module " + parameter.substr(0, dot);
}

template <typename Values, typename Visit>
void for_each_tensor(const Values& values, const Visit& visit) {
  for (const c10::IValue& value : values) {
    if (value.isTensor()) visit(value.toTensor());
    if (value.isTensorList()) {
      for (const at::Tensor& tensor : value.toTensorVector()) visit(tensor);
    }
  }
}

// These pass a parameter on under other memory (a cast under autocast); the copy then stands for the
// parameter too.
bool is_copy(std::string_view op) {
  return op == "aten::to" || op == "aten::_to_copy" || op == "aten::contiguous";
}

// These make memory without filling it, so what stands there means nothing yet.
bool is_uninitialised(std::string_view op) {
  return op.find("aten::empty") == 0 || op.find("aten::new_empty") == 0 || op.find("aten::resize") == 0;
}

std::string describe(std::string_view op, const std::string& parameter, const std::string& last_parameter) {
  std::string text(op);
  if (!parameter.empty()) return text + " with parameter " + parameter + " (" + module_of(parameter) + ")";
  if (last_parameter.empty()) return text;
  return text + " after parameter " + last_parameter + " (" + module_of(last_parameter) + ")";
}

// Attention fills with -inf what must not be seen; a product that gives -inf has overflowed.
bool is_product(std::string_view op) {
  return op.find("mm") != std::string_view::npos || op.find("linear") != std::string_view::npos ||
         op.find("conv") != std::string_view::npos;
}

// What the start of an op, which alone sees its inputs, tells its end.
struct OpContext final : at::ObserverContext {
  std::string parameter;       // among the inputs; the largest one, which is the weight and not the bias
  bool inputs_broken = false;  // an input is not finite already
};

std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction& op) {
  const at::DisableRecordFunctionGuard own_ops_are_not_watched;
  Watch& state = watch();
  const std::lock_guard<std::mutex> lock(state.mutex);
  auto context = std::make_unique<OpContext>();
  int64_t largest = 0;
  for_each_tensor(op.inputs(), [&](const at::Tensor& tensor) {
    context->inputs_broken = context->inputs_broken || inspect(tensor) == Finding::kNotFinite;
    const auto found = state.parameter_of.find(memory_of(tensor));
    if (found == state.parameter_of.end() || tensor.numel() <= largest) return;
    context->parameter = found->second;
    largest = tensor.numel();
  });
  if (!context->parameter.empty()) state.last_parameter = context->parameter;
  return context;
}

void on_end(const at::RecordFunction& op, at::ObserverContext* context) {
  const at::DisableRecordFunctionGuard own_ops_are_not_watched;
  Watch& state = watch();
  const std::lock_guard<std::mutex> lock(state.mutex);
  if (!state.first.empty() || context == nullptr) return;
  const std::string& parameter = static_cast<OpContext*>(context)->parameter;
  const bool inputs_broken = static_cast<OpContext*>(context)->inputs_broken;
  Finding worst = Finding::kFinite;
  const std::string_view name = op.name();
  for_each_tensor(op.outputs(), [&](const at::Tensor& tensor) {
    if (!parameter.empty() && is_copy(name)) state.parameter_of[memory_of(tensor)] = parameter;
    if (!is_uninitialised(name)) worst = std::max(worst, inspect(tensor));
  });
  if (worst == Finding::kFinite) return;
  const bool masked = worst == Finding::kOnlyNegativeInfinity && !is_product(name);
  if (masked && !state.first_masked.empty()) return;
  // Nothing before it broke, so what comes in broken is the data; the op that meets it with a parameter
  // places it.
  if (inputs_broken && parameter.empty()) return;
  (masked ? state.first_masked : state.first) =
      (inputs_broken ? "the samples that go into " : "") + describe(name, parameter, state.last_parameter);
}

}  // namespace

NonFiniteFinder::NonFiniteFinder(const std::vector<std::pair<std::string, at::Tensor>>& parameters) {
  Watch& state = watch();
  {
    const std::lock_guard<std::mutex> lock(state.mutex);
    state.parameter_of.clear();
    state.last_parameter.clear();
    state.first.clear();
    state.first_masked.clear();
    for (const auto& [name, tensor] : parameters) {
      state.parameter_of[memory_of(tensor)] = name;
      if (!state.first.empty() || inspect(tensor) == Finding::kFinite) continue;
      state.first = "parameter " + name + " (" + module_of(name) + ")";
    }
  }
  handle_ = at::addThreadLocalCallback(
      at::RecordFunctionCallback(on_start, on_end)
          .needsInputs(true)
          .needsOutputs(true)
          .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
}

NonFiniteFinder::~NonFiniteFinder() { at::removeCallback(handle_); }

std::string NonFiniteFinder::first() const {
  Watch& state = watch();
  const std::lock_guard<std::mutex> lock(state.mutex);
  return state.first.empty() ? state.first_masked : state.first;
}

}  // namespace gradstep

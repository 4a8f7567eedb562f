// Modules have no forward hooks in C++, so the ops are watched and mapped back to parameters by the storage
// they read.
#include "step/non_finite.h"

#include <ATen/ATen.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "step/module_norms.h"

namespace gradstep {
namespace {

// What the observer knows; callbacks are plain functions, so it is one object for the process.
struct Watch {
  std::mutex mutex;
  std::unordered_map<const void*, std::string> parameter_of;  // storage -> parameter name
  std::unordered_set<const void*> copies;                     // those keys that are casts of a parameter
  // Of these, so that no other storage takes the address of one that is gone.
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> known_copies;
  std::string last_parameter;  // most recent parameter seen, which places ops that use none, such as relu
  std::string first;
  std::string first_masked;  // an output whose only odd values are -inf: an attention mask, or an overflow
  ModuleSums sums;
};

// How deep this thread is in ops that were seen to take a parameter, and in nodes of the backward pass.
thread_local int t_parameter_ops = 0;
thread_local int t_backward_nodes = 0;

Watch& watch() {
  static Watch instance;
  return instance;
}

// Shared by all views of a tensor; unlike the memory, it is never handed to another tensor while it is known.
const void* storage_of(const at::Tensor& tensor) {
  return tensor.defined() && tensor.has_storage() ? tensor.storage().unsafeGetStorageImpl() : nullptr;
}

enum class Finding { kFinite, kOnlyNegativeInfinity, kNotFinite };

Finding inspect(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage() || !tensor.is_floating_point() || tensor.numel() == 0) {
    return Finding::kFinite;
  }
  const at::Tensor values = computable(tensor);
  if (at::isfinite(values).all().item<bool>()) return Finding::kFinite;
  const bool masked = at::isfinite(values).logical_or(at::isneginf(values)).all().item<bool>();
  return masked ? Finding::kOnlyNegativeInfinity : Finding::kNotFinite;
}

std::string place_of(const std::string& parameter) {
  const std::string module = module_of(parameter);
  return module.empty() ? "the root module" : "module " + module;
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
  return op == "aten::to" || op == "aten::_to_copy" || op == "aten::contiguous" || op == "aten::clone" ||
         op == "aten::copy_";
}

// These make memory without filling it, so its content means nothing yet.
bool is_uninitialised(std::string_view op) {
  return op.find("aten::empty") == 0 || op.find("aten::new_empty") == 0 || op.find("aten::resize") == 0;
}

// These overwrite their first input whatever it holds, which may be memory that was never filled.
bool overwrites_first_input(std::string_view op) { return op == "aten::copy_" || op == "aten::fill_"; }

// These hand on what they get. A product asks it of the memory of its result before it fills it.
bool hands_on(std::string_view op) { return op == "aten::resolve_conj" || op == "aten::resolve_neg"; }

std::string describe(std::string_view op, const std::string& parameter, const std::string& last_parameter) {
  std::string text(op);
  if (!parameter.empty()) return text + " with parameter " + parameter + " (" + place_of(parameter) + ")";
  if (last_parameter.empty()) return text;
  return text + " after parameter " + last_parameter + " (" + place_of(last_parameter) + ")";
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
  bool outermost = false;      // of the forward pass and not part of another op that takes a parameter
  bool is_node = false;        // of the backward pass
  std::vector<const void*> inputs;
};

std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction& op) {
  if (hands_on(op.name())) return nullptr;
  const at::DisableRecordFunctionGuard own_ops_are_not_watched;
  Watch& state = watch();
  const std::lock_guard<std::mutex> lock(state.mutex);
  auto context = std::make_unique<OpContext>();
  int64_t largest = 0;
  bool is_overwritten = overwrites_first_input(op.name());
  for_each_tensor(op.inputs(), [&](const at::Tensor& tensor) {
    if (std::exchange(is_overwritten, false)) {
      context->inputs.push_back(storage_of(tensor));
      return;
    }
    if (state.first.empty())
      context->inputs_broken = context->inputs_broken || inspect(tensor) == Finding::kNotFinite;
    context->inputs.push_back(storage_of(tensor));
    const auto found = state.parameter_of.find(context->inputs.back());
    if (found == state.parameter_of.end() || tensor.numel() <= largest) return;
    context->parameter = found->second;
    largest = tensor.numel();
  });
  if (!context->parameter.empty()) {
    state.last_parameter = context->parameter;
    context->outermost = t_parameter_ops == 0 && t_backward_nodes == 0;
    ++t_parameter_ops;
  }
  context->is_node = op.scope() == at::RecordScope::BACKWARD_FUNCTION;
  if (context->is_node) ++t_backward_nodes;
  return context;
}

// Keeps track of the storages of parameters and of their casts. A sum may begin as a copy of its bias, and is
// none in the end.
void follow_copies(Watch& state, const OpContext& context, std::string_view name, const at::Tensor& output) {
  const void* storage = storage_of(output);
  if (storage == nullptr) return;
  if (!context.parameter.empty() && is_copy(name)) {
    if (!state.parameter_of.try_emplace(storage, context.parameter).second) return;
    state.copies.insert(storage);
    state.known_copies.push_back(output.storage().getWeakStorageImpl());
    return;
  }
  if (std::ranges::find(context.inputs, storage) == context.inputs.end() && state.copies.erase(storage) == 1)
    state.parameter_of.erase(storage);
}

void judge(Watch& state, const OpContext& context, std::string_view name, Finding worst) {
  const bool masked = worst == Finding::kOnlyNegativeInfinity && !is_product(name);
  if (masked && !state.first_masked.empty()) return;
  // Nothing before it broke, so what comes in broken is the data; the op that meets it with a parameter
  // places it.
  if (context.inputs_broken && context.parameter.empty()) return;
  (masked ? state.first_masked : state.first) = (context.inputs_broken ? "the samples that go into " : "") +
                                                describe(name, context.parameter, state.last_parameter);
}

void on_end(const at::RecordFunction& op, at::ObserverContext* observer_context) {
  if (observer_context == nullptr) return;
  const OpContext& context = *static_cast<OpContext*>(observer_context);
  if (!context.parameter.empty()) --t_parameter_ops;
  if (context.is_node) --t_backward_nodes;
  const at::DisableRecordFunctionGuard own_ops_are_not_watched;
  Watch& state = watch();
  const std::lock_guard<std::mutex> lock(state.mutex);
  const std::string_view name = op.name();
  Finding worst = Finding::kFinite;
  for_each_tensor(op.outputs(), [&](const at::Tensor& tensor) {
    follow_copies(state, context, name, tensor);
    if (is_uninitialised(name)) return;
    if (state.first.empty()) worst = std::max(worst, inspect(tensor));
    // A view of the parameter, such as its transpose, is nothing that the module gave.
    if (context.outermost && !is_copy(name) && !state.parameter_of.contains(storage_of(tensor)))
      state.sums.add_forward(context.parameter, tensor);
  });
  if (worst != Finding::kFinite) judge(state, context, name, worst);
}

std::mutex& turn() {
  static std::mutex instance;
  return instance;
}

}  // namespace

NonFiniteFinder::NonFiniteFinder(const NamedTensors& parameters) : turn_(turn()), parameters_(parameters) {
  Watch& state = watch();
  {
    const std::lock_guard<std::mutex> lock(state.mutex);
    state.parameter_of.clear();
    state.copies.clear();
    state.known_copies.clear();
    state.last_parameter.clear();
    state.first.clear();
    state.first_masked.clear();
    std::vector<std::string> names;
    for (const auto& [name, tensor] : parameters) {
      names.push_back(name);
      state.parameter_of[storage_of(tensor)] = name;
      if (!state.first.empty() || inspect(tensor) == Finding::kFinite) continue;
      state.first = "parameter " + name + " (" + place_of(name) + ")";
    }
    state.sums.reset(names);
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

std::vector<ModuleNorms> NonFiniteFinder::modules(double loss_scale) const {
  const at::DisableRecordFunctionGuard own_ops_are_not_watched;
  Watch& state = watch();
  const std::lock_guard<std::mutex> lock(state.mutex);
  ModuleSums sums = state.sums;
  for (const auto& [name, parameter] : parameters_) sums.add_backward(name, parameter.grad());
  return sums.norms(loss_scale);
}

}  // namespace gradstep

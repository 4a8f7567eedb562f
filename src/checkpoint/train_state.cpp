// Between a live engine and a state: by name throughout, since positions in a list say nothing.
#include <torch/torch.h>

#include <map>

#include "checkpoint/copy_by_name.h"
#include "checkpoint/user_state.h"
#include "gradstep/base/error.h"
#include "gradstep/checkpoint/checkpoint.h"
#include "gradstep/checkpoint/model_file.h"
#include "gradstep/step/precision.h"

namespace gradstep {
namespace {

// Names in another order are refused too: the norm of the gradients is added up in that order.
void check(const std::string& where, const char* what, const NamedTensors& stored, const NamedTensors& live) {
  const std::string problem = check_parameters(stored, live);
  if (problem.empty()) return;
  throw CheckpointError(where + " (" + what + "): " + problem + "; resume with the model it was saved from");
}

// Moments that both sides have, in their orders, and those that begin anew.
struct Matched {
  NamedTensors stored{};
  NamedTensors live{};
  NamedTensors fresh{};
};

// Leaves out what one side alone has, if it may.
template <class MayDiffer>
Matched match(const NamedTensors& stored, const NamedTensors& live, MayDiffer may_differ) {
  const std::map<std::string, at::Tensor> by_name(stored.begin(), stored.end());
  const std::map<std::string, at::Tensor> live_by_name(live.begin(), live.end());
  // Of another optimizer a tensor of the same name may have another shape.
  const auto fits = [](const at::Tensor& a, const at::Tensor& b) {
    return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type();
  };
  Matched matched;
  for (const auto& [name, tensor] : live) {
    const auto found = by_name.find(name);
    const bool is_there = found != by_name.end() && fits(found->second, tensor);
    (is_there || !may_differ(name) ? matched.live : matched.fresh).emplace_back(name, tensor);
  }
  for (const auto& [name, tensor] : stored) {
    const auto found = live_by_name.find(name);
    if ((found != live_by_name.end() && fits(found->second, tensor)) || !may_differ(name))
      matched.stored.emplace_back(name, tensor);
  }
  return matched;
}

}  // namespace

TrainState capture_engine(Engine& engine) {
  TrainState state;
  state.model = model_tensors(*engine.task().module);
  state.num_buffers = static_cast<int64_t>(engine.task().module->named_buffers().size());
  state.optimizer = engine.optimizer().state();
  state.ema = engine.averages();
  if (engine.task().user_state) {
    state.user = engine.task().user_state();
    check_user_state(state.user);
  }
  state.engine = engine.state();
  state.asked_micro_batch = engine.options().micro_batch;
  state.info = {.precision = engine.options().precision,
                .matmul = current_matmul(),
                .update = engine.counters().updates};
  return state;
}

NamedTensors with_averages(const TrainState& state) {
  const std::map<std::string, at::Tensor> averages(state.ema.begin(), state.ema.end());
  std::map<const void*, at::Tensor> by_memory;  // a tied parameter has its average under one name only
  for (const auto& [name, tensor] : state.model) {
    const auto average = averages.find(name);
    if (average != averages.end() && tensor.numel() > 0)
      by_memory.emplace(tensor.const_data_ptr(), average->second);
  }
  NamedTensors model = state.model;
  for (auto& [name, tensor] : model) {
    const auto named = averages.find(name);
    const auto tied = by_memory.find(tensor.const_data_ptr());
    if (named != averages.end())
      tensor = named->second;
    else if (tied != by_memory.end() && tied->second.sizes() == tensor.sizes())
      tensor = tied->second;
  }
  return model;
}

void restore_engine(const std::string& where, const TrainState& state, Engine& engine, bool other_moments) {
  const NamedTensors model = model_tensors(*engine.task().module);
  const NamedTensors moments = engine.optimizer().state();
  const NamedTensors averages = engine.averages();
  const bool has_averages = !averages.empty() && !state.ema.empty();
  check(where, "model", state.model, model);
  const auto may_differ = [&](const std::string& name) {
    return other_moments || engine.optimizer().is_optional(name);
  };
  const Matched matched = match(state.optimizer, moments, may_differ);
  check(where, "optimizer", matched.stored, matched.live);
  if (has_averages) check(where, "averages", state.ema, averages);
  if (engine.task().restore_user_state) engine.task().restore_user_state(state.user);
  copy_by_name(where, state.model, model);
  copy_by_name(where, matched.stored, matched.live);
  for (const auto& [name, tensor] : matched.fresh) tensor.zero_();
  if (has_averages) copy_by_name(where, state.ema, averages);
  if (!has_averages) engine.reset_averages();
  EngineState counters = state.engine;
  // Only fp16 scales the loss. A run that goes on in fp16 begins with the scale of a new run.
  if (state.info.precision != Precision::kFp16) {
    counters.loss_scale = engine.state().loss_scale;
    counters.num_good_updates = 0;
  }
  engine.restore(counters);
}

}  // namespace gradstep

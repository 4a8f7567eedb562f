// Nothing here has an effect; each function can be tested with numbers alone.
#include "run/planner.h"

#include <torch/torch.h>

#include <algorithm>

#include "base/machine.h"
#include "base/number_text.h"
#include "checkpoint/user_state.h"
#include "gradstep/base/error.h"
#include "report/format.h"
#include "step/micro_batches.h"
#include "step/param_groups.h"

namespace gradstep {
namespace {

constexpr int64_t kMaxUpdates = int64_t{1} << 48;

std::string describe_end(const JobLength& length) {
  const auto count = [](int64_t n, const char* what) {
    return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
  };
  const std::string epochs = count(length.epochs.value_or(1), "epoch");
  if (!length.max_updates && !length.epochs && length.max_seconds > 0) return "when its time is over";
  if (!length.max_updates) return "after " + epochs;
  const std::string updates = count(*length.max_updates, "update");
  return length.epochs ? "after " + epochs + " or " + updates + ", whichever comes first"
                       : "after " + updates;
}

std::string describe_schedule(const LrSchedule& schedule, const std::string& warmup_reason) {
  if (schedule.function) return "a function of the program";
  std::string text = to_string(schedule.shape) + ", " + std::to_string(schedule.warmup_steps) +
                     (schedule.warmup_steps == 1 ? " warm-up update" : " warm-up updates") +
                     (warmup_reason.empty() ? "" : " (" + warmup_reason + ")") + ", peak " +
                     shortest(schedule.peak);
  return schedule.shape == LrShape::kConstant ? text : text + ", min " + shortest(schedule.min);
}

std::string describe_optimizer(const EngineOptions& options) {
  const OptimizerOptions& optimizer = options.optimizer;
  std::string text;
  if (options.make_optimizer) {
    text = "one of the program";
  } else if (optimizer.kind == OptimizerKind::kAdamW) {
    text = "adamw, betas " + shortest(optimizer.beta1) + " " + shortest(optimizer.beta2) + ", eps " +
           shortest(optimizer.eps);
  } else {
    text = "sgd, momentum " + shortest(optimizer.momentum) + (optimizer.nesterov ? ", nesterov" : "");
  }
  return options.clip_grad > 0 ? text + ", gradients clipped to norm " + shortest(options.clip_grad) : text;
}

std::string group_text(const ParamGroup& group, int64_t tensors, int64_t parameters) {
  std::string text = group.pattern + ": ";
  if (group.frozen) text += "frozen, ";
  if (group.lr_factor != 1) text += "learning rate x " + shortest(group.lr_factor) + ", ";
  if (group.weight_decay) text += "decay " + shortest(*group.weight_decay) + ", ";
  return text + thousands_text(tensors) + (tensors == 1 ? " tensor (" : " tensors (") +
         thousands_text(parameters) + (parameters == 1 ? " parameter)" : " parameters)");
}

// Counts of the groups, and of the parameters that no group gives a decay of their own.
void fill_groups(const Engine& engine, RunPlan& plan) {
  const std::vector<ParamGroup>& groups = engine.options().optimizer.groups;
  std::vector<int64_t> tensors(groups.size()), parameters(groups.size());
  const auto count = [&](const std::string& name, int64_t numel) {
    plan.num_parameters += numel;
    const std::optional<size_t> group = group_of(name, groups);
    if (!group) return false;
    ++tensors[*group];
    parameters[*group] += numel;
    return groups[*group].weight_decay.has_value();
  };
  for (const TrainedParameter& parameter : engine.optimizer().trained()) {
    const int64_t numel = parameter.tensor.numel();
    if (count(parameter.name, numel)) continue;
    ++(parameter.decays ? plan.decay_tensors : plan.no_decay_tensors);
    (parameter.decays ? plan.decay_parameters : plan.no_decay_parameters) += numel;
  }
  for (const auto& [name, tensor] : engine.frozen()) count(name, tensor.numel());
  for (size_t i = 0; i < groups.size(); ++i)
    plan.groups.push_back(group_text(groups[i], tensors[i], parameters[i]));
}

int64_t bytes_of(const NamedTensors& tensors) {
  int64_t bytes = 0;
  for (const auto& [name, tensor] : tensors) bytes += static_cast<int64_t>(tensor.nbytes());
  return bytes;
}

int64_t buffer_bytes(const torch::nn::Module& module) {
  int64_t bytes = 0;
  for (const at::Tensor& buffer : module.buffers()) bytes += static_cast<int64_t>(buffer.nbytes());
  return bytes;
}

}  // namespace

RunLength run_length(const JobLength& asked, int64_t windows_per_epoch) {
  RunLength length;
  length.max_updates = asked.max_updates.value_or(0);
  const bool without_end = !asked.epochs && !asked.max_updates && asked.max_seconds > 0;
  if (asked.epochs || (!asked.max_updates && !without_end)) length.max_epochs = asked.epochs.value_or(1);
  int64_t max_windows = 0;
  if (__builtin_mul_overflow(length.max_epochs, windows_per_epoch, &max_windows) || max_windows > kMaxUpdates)
    throw ConfigError("the job: " + std::to_string(length.max_epochs) +
                      " epochs have too many updates; give fewer");
  length.total_updates = max_windows == 0          ? length.max_updates
                         : length.max_updates == 0 ? max_windows
                                                   : std::min(length.max_updates, max_windows);
  return length;
}

double DueTimer::periods(const Elapsed& elapsed) const {
  if (interval_.value <= 0) return 0;
  double passed = elapsed.seconds;
  if (interval_.unit == Interval::Unit::kUpdates) passed = static_cast<double>(elapsed.updates);
  if (interval_.unit == Interval::Unit::kEpochs) passed = elapsed.epochs;
  return std::floor(passed / interval_.value);
}

int64_t planned_saves(const Interval& interval, const RunLength& length, int64_t windows_per_epoch) {
  if (interval.value <= 0 || interval.unit == Interval::Unit::kSeconds) return 1;
  const double updates =
      interval.value * static_cast<double>(interval.unit == Interval::Unit::kEpochs ? windows_per_epoch : 1);
  return 1 + static_cast<int64_t>(static_cast<double>(length.total_updates) / std::max(updates, 1.0));
}

int64_t updates_left(const RunLength& length, const Position& next, int64_t updates,
                     int64_t windows_per_epoch) {
  const int64_t windows =
      length.max_epochs > 0 ? (length.max_epochs - next.epoch) * windows_per_epoch - next.index : 0;
  const int64_t more = length.max_updates > 0 ? length.max_updates - updates : 0;
  if (length.max_epochs == 0) return std::max<int64_t>(more, 0);
  return std::max<int64_t>(length.max_updates == 0 ? windows : std::min(windows, more), 0);
}

int64_t largest_micro_batch(const Task& task, int64_t micro_batch, const Sampler& sampler,
                            int64_t world_size) {
  const int64_t share = array_split(sampler.window_range(0).size(), world_size, /*rank=*/0).size();
  return std::min(micro_batch_of(task, micro_batch, share), share);
}

void fill_length(const Job& job, const RunLength& length, const Engine& engine, RunPlan& plan) {
  plan.total_updates = length.total_updates;
  plan.lr_points.clear();
  const int64_t warmup_steps = job.engine.schedule.warmup_steps;
  const int64_t last = length.total_updates > 0 ? length.total_updates : warmup_steps + 1;
  std::vector<int64_t> points{1, warmup_steps, (warmup_steps + last) / 2, last - 1, last};
  for (const int64_t k : points) {
    const bool known = plan.lr_points.empty() || k > plan.lr_points.back().first;
    if (k >= 1 && k <= last && known) plan.lr_points.emplace_back(k, engine.options().schedule.at(k));
  }
}

void fill_plan(const Job& job, const Sampler& sampler, const RunLength& length, const Engine& engine,
               const World& world, RunPlan& plan) {
  plan.train_samples = sampler.num_samples();
  plan.world_size = world.size();
  const int64_t on_this_rank = array_split(sampler.window_range(0).size(), world.size(), world.rank()).size();
  plan.micro_batch = micro_batch_of(job.task, job.engine.micro_batch, on_this_rank);
  plan.global_batch = sampler.global_batch();
  plan.windows_per_epoch = sampler.windows_per_epoch();
  plan.last_window_samples = sampler.window_range(plan.windows_per_epoch - 1).size();
  plan.num_micro_batches = static_cast<int64_t>(micro_batches(on_this_rank, plan.micro_batch, false).size());
  plan.ends = describe_end(job.length);
  plan.schedule = describe_schedule(job.engine.schedule, job.names.warmup_reason);
  plan.optimizer = describe_optimizer(job.engine);
  plan.weight_decay = job.engine.optimizer.weight_decay;
  fill_length(job, length, engine, plan);
  fill_groups(engine, plan);
  const int64_t parameters = bytes_of(engine.optimizer().parameters());
  const int64_t moments = engine.optimizer().state_bytes();
  const int64_t averages = job.engine.ema_decay > 0 ? parameters : 0;
  plan.checkpoint_bytes =
      parameters + bytes_of(engine.frozen()) + moments + averages + buffer_bytes(*engine.task().module);
  if (job.task.user_state) {
    const UserState user = job.task.user_state();
    check_user_state(user);
    plan.checkpoint_bytes += bytes_of(user.tensors);
  }
  // What the process holds already has data set, libraries and parameters in it; gradients are as large as
  // these, and a copy of it all is taken while it is saved.
  plan.memory_bytes = resident_bytes() + parameters + moments + averages + plan.checkpoint_bytes;
  plan.memory_free_bytes = free_memory_bytes().value_or(0);
}

}  // namespace gradstep

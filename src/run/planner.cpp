// Nothing here has an effect; each function can be tested with numbers alone.
#include "run/planner.h"

#include <torch/torch.h>

#include <algorithm>

#include "base/number_text.h"
#include "gradstep/base/error.h"
#include "gradstep/base/machine.h"
#include "gradstep/model/registry.h"
#include "gradstep/step/micro_batches.h"
#include "report/format.h"

namespace gradstep {
namespace {

std::string describe_end(const RunConfig& config) {
  const auto count = [](int64_t n, const char* what) {
    return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
  };
  const std::string epochs = count(config.epochs.value_or(1), "epoch");
  if (!config.max_steps && !config.epochs && config.max_time > 0) return "when its time is over";
  if (!config.max_steps) return "after " + epochs;
  const std::string updates = count(*config.max_steps, "update");
  return config.epochs ? "after " + epochs + " or " + updates + ", whichever comes first"
                       : "after " + updates;
}

std::string describe_schedule(const RunConfig& config) {
  std::string text = config.sched + ", " + std::to_string(config.warmup_steps) + " warm-up updates, peak " +
                     shortest(config.lr);
  return config.sched == "constant" ? text : text + ", min " + shortest(config.min_lr);
}

std::string describe_optimizer(const RunConfig& config) {
  std::string text = config.opt;
  if (config.opt == "adamw") {
    text +=
        ", betas " + shortest(config.beta1) + " " + shortest(config.beta2) + ", eps " + shortest(config.eps);
  } else {
    text += ", momentum " + shortest(config.momentum) + (config.nesterov ? ", nesterov" : "");
  }
  return config.clip_grad > 0 ? text + ", gradients clipped to norm " + shortest(config.clip_grad) : text;
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

RunLength run_length(const RunConfig& config, int64_t windows_per_epoch) {
  RunLength length;
  length.max_updates = config.max_steps.value_or(0);
  const bool without_end = !config.epochs && !config.max_steps && config.max_time > 0;
  if (config.epochs || (!config.max_steps && !without_end)) length.max_epochs = config.epochs.value_or(1);
  const int64_t max_windows = length.max_epochs * windows_per_epoch;
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

int64_t planned_saves(const RunConfig& config, const RunLength& length, int64_t windows_per_epoch) {
  const Interval& interval = config.save_interval;
  if (interval.value <= 0 || interval.unit == Interval::Unit::kSeconds) return 1;
  const double updates =
      interval.value * static_cast<double>(interval.unit == Interval::Unit::kEpochs ? windows_per_epoch : 1);
  return 1 + static_cast<int64_t>(static_cast<double>(length.total_updates) / std::max(updates, 1.0));
}

int64_t largest_micro_batch(const RunConfig& config, const Sampler& sampler, int64_t world_size) {
  return std::min(config.batch_size,
                  array_split(sampler.window_range(0).size(), world_size, /*rank=*/0).size());
}

double least_memory(const RunConfig& config, const Sampler& sampler, const DatasetSpec& spec,
                    int64_t world_size) {
  const ModelSize size = model_size({.name = config.model, .hidden = config.hidden}, spec);
  const bool has_momentum = config.opt == "sgd" && config.momentum > 0;
  const int moments = config.opt == "adamw" ? 2 : has_momentum ? 1 : 0;
  const int saved = 1 + moments + (config.ema > 0 ? 1 : 0);
  const int tensors = 1 + 2 * saved;  // gradients, and what is saved with its copy
  const double parameters = 4.0 * tensors * static_cast<double>(size.parameters);
  double pixels = 1;
  for (const int64_t dimension : spec.input_shape) pixels *= static_cast<double>(dimension);
  const int64_t on_this_rank = array_split(sampler.window_range(0).size(), world_size, 0).size();
  // Each worker takes one at once, whether the run will get to it or not.
  const int64_t num_windows = std::max<int64_t>(config.workers, 1);
  const double windows = pixels * static_cast<double>(on_this_rank) * static_cast<double>(num_windows);
  // One sample at once is what a run comes down to where more find no memory.
  constexpr double kHalfBytes = 2;  // precision is not settled yet
  return parameters + windows + kHalfBytes * (pixels + static_cast<double>(size.activations));
}

void check_memory(double needed_bytes, int64_t free_bytes) {
  if (needed_bytes <= static_cast<double>(free_bytes)) return;
  constexpr double kMostBytes = 9e18;
  throw Error(ExitCode::kOutOfMemory,
              "out of memory: the run needs " +
                  bytes_text(static_cast<int64_t>(std::min(needed_bytes, kMostBytes))) +
                  " at the least, of which " + bytes_text(free_bytes) +
                  " are free; lower --batch-size, --workers or the size of the model (--hidden)");
}

EngineOptions engine_options(const RunConfig& config, int64_t total_updates) {
  return {.optimizer = {.kind = config.opt == "sgd" ? OptimizerKind::kSgd : OptimizerKind::kAdamW,
                        .weight_decay = config.weight_decay,
                        .beta1 = config.beta1,
                        .beta2 = config.beta2,
                        .eps = config.eps,
                        .momentum = config.momentum,
                        .nesterov = config.nesterov,
                        .decay_all = config.decay_all,
                        .groups = parse_param_groups(config.param_groups)},
          .schedule = {.shape = parse_lr_shape(config.sched),
                       .peak = config.lr,
                       .min = config.min_lr,
                       .warmup_steps = config.warmup_steps,
                       .total_steps = total_updates},
          .micro_batch = config.batch_size,
          .clip_grad = config.clip_grad,
          .seed = config.seed,
          .ema_decay = config.ema,
          .spikes = {.z_score = config.on_spike == "off" ? 0 : config.spike_zscore,
                     .window = config.spike_window}};
}

void fill_plan(const RunConfig& config, const Sampler& sampler, const RunLength& length, const Engine& engine,
               const World& world, RunPlan& plan) {
  plan.train_samples = sampler.num_samples();
  plan.world_size = world.size();
  plan.micro_batch = config.batch_size;
  plan.global_batch = sampler.global_batch();
  plan.windows_per_epoch = sampler.windows_per_epoch();
  plan.last_window_samples = sampler.window_range(plan.windows_per_epoch - 1).size();
  const int64_t on_this_rank = array_split(sampler.window_range(0).size(), world.size(), world.rank()).size();
  plan.num_micro_batches = static_cast<int64_t>(micro_batches(on_this_rank, config.batch_size, false).size());
  plan.total_updates = length.total_updates;
  plan.ends = describe_end(config);
  plan.schedule = describe_schedule(config);
  plan.optimizer = describe_optimizer(config);
  plan.weight_decay = config.weight_decay;
  const int64_t last = length.total_updates > 0 ? length.total_updates : config.warmup_steps + 1;
  std::vector<int64_t> points{1, config.warmup_steps, (config.warmup_steps + last) / 2, last - 1, last};
  for (const int64_t k : points) {
    const bool known = plan.lr_points.empty() || k > plan.lr_points.back().first;
    if (k >= 1 && k <= last && known) plan.lr_points.emplace_back(k, engine.options().schedule.at(k));
  }
  fill_groups(engine, plan);
  const int64_t parameters = bytes_of(engine.optimizer().parameters());
  const int64_t moments = engine.optimizer().state_bytes();
  const int64_t averages = config.ema > 0 ? parameters : 0;
  plan.checkpoint_bytes = parameters + bytes_of(engine.frozen()) + moments + averages +
                          buffer_bytes(*engine.task().module);
  // What the process holds already has data set, libraries and parameters in it; gradients are as large as
  // these, and a copy of it all is taken while it is saved.
  plan.memory_bytes = resident_bytes() + parameters + moments + averages + plan.checkpoint_bytes;
  plan.memory_free_bytes = free_memory_bytes();
}

}  // namespace gradstep

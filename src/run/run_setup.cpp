// Members are made in their order, and each step refuses what it can before the next, more expensive one.
#include "run/run_setup.h"

#include <ATen/Parallel.h>
#include <torch/torch.h>

#include <future>

#include "base/out_of_memory.h"
#include "gradstep/base/error.h"
#include "gradstep/base/machine.h"
#include "run/device.h"
#include "run/flag_table.h"

namespace gradstep {
namespace {

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t size : shape) text += (text.empty() ? "" : "x") + std::to_string(size);
  return text;
}

// Found out now rather than at the first evaluation.
void check_fit(const RunConfig& config, const Dataset& train, const Dataset& test) {
  const std::vector<int64_t>& wanted = train.spec().input_shape;
  if (test.spec().input_shape == wanted) return;
  throw DataError("data set " + config.dataset + ": expected test pictures of " + shape_text(wanted) +
                  " as in the training set, found " + shape_text(test.spec().input_shape) +
                  "; fetch all files again or correct the folder");
}

DatasetPair load_data(const RunConfig& config) {
  if (config.val_fraction > 0) {
    return split_validation(load_dataset(config.dataset, config.data_dir, Split::kTrain), config.val_fraction,
                            config.seed);
  }
  // Both parts are unpacked at the same time.
  auto test = std::async(std::launch::async,
                         [&config] { return load_dataset(config.dataset, config.data_dir, Split::kTest); });
  DatasetPair data;
  data.train = load_dataset(config.dataset, config.data_dir, Split::kTrain);
  data.test = test.get();
  check_fit(config, *data.train, *data.test);
  return data;
}

// Refuses what the memory cannot hold before anything large is made.
Task build_task(const RunConfig& config, const Sampler& sampler, const DatasetSpec& spec, at::Device device,
                int64_t world_size) {
  if (device.is_cpu()) check_memory(least_memory(config, sampler, spec, world_size), free_memory_bytes());
  torch::manual_seed(config.seed);
  Task task = make_task({config.model, config.hidden, config.dropout, config.label_smoothing}, spec);
  task.module->to(device);
  return task;
}

// Refuses a warm-up that does not fit, before a model is built.
RunLength checked_length(const RunConfig& config, int64_t windows_per_epoch) {
  const RunLength length = run_length(config, windows_per_epoch);
  check_warmup(config.warmup_steps, length.total_updates);
  return length;
}

// Measures with the largest micro-batch that finds memory; the engine will come down to it, too.
PrecisionChoice settle_precision(const RunConfig& config, const Task& task, const Dataset& train,
                                 int64_t micro_batch) {
  for (;; micro_batch /= 2) {
    try {
      PrecisionChoice choice =
          choose_precision(task, train.gather(at::arange(micro_batch)), config.precision, config.matmul);
      use_matmul(choice.matmul);
      return choice;
    } catch (const std::exception& error) {
      if (micro_batch == 1 || !is_out_of_memory(error)) throw;
    }
  }
}

EngineOptions with_precision(EngineOptions options, Precision precision) {
  options.precision = precision;
  return options;
}

std::string folder_of(const RunConfig& config) {
  return config.data_dir.empty() ? default_data_dir(config.dataset) : config.data_dir;
}

void fill_names(const RunSetup& setup, RunPlan& plan) {
  const RunConfig& config = setup.config;
  plan.dataset = config.dataset + " in " + folder_of(config);
  plan.eval_samples = setup.data.test->size();
  plan.eval_part = config.val_fraction > 0 ? "validation part of the training set" : "test set";
  plan.model = describe_model({.name = config.model, .hidden = config.hidden}, setup.data.train->spec());
  plan.device = describe_device(setup.device);
  plan.precision = to_string(setup.precision.precision) +
                   (setup.precision.matmul == Matmul::kOneDnn ? ", matrix products by oneDNN" : "");
  plan.precision_reason = setup.precision.reason;
  plan.output_dir = config.output_dir;
}

}  // namespace

RunSetup::RunSetup(const RunConfig& asked, World& ranks)
    : config(asked),
      world(ranks),
      device(settle_device(config)),
      data(load_data(config)),
      sampler(data.train->size(), config.global_batch(world.size()), config.seed),
      length(checked_length(config, sampler.windows_per_epoch())),
      task(build_task(config, sampler, data.train->spec(), device, world.size())),
      precision(
          settle_precision(config, task, *data.train, largest_micro_batch(config, sampler, world.size()))),
      best_metric(find_best_metric(config.best_metric, task, config.ema > 0)),
      engine(task, with_precision(engine_options(config, length.total_updates), precision.precision), world) {
  config.best_metric = best_metric.name;
  config.precision = to_string(precision.precision);
  config.matmul = to_string(precision.matmul);
  if (!precision.warning.empty()) warnings.push_back(precision.warning);
  fill_names(*this, plan);
  fill_plan(config, sampler, length, engine, world, plan);
}

RunConfig RunSetup::config_with_threads() const {
  RunConfig settled = config;
  settled.threads = at::get_num_threads();
  return settled;
}

ModelInfo RunSetup::model_info() const {
  return {.model = {config.model, config.hidden, config.dropout, config.label_smoothing},
          .dataset = data.train->spec(),
          .data_dir = folder_of(config),
          .val_fraction = config.val_fraction,
          .seed = config.seed,
          .precision = precision.precision,
          .matmul = precision.matmul,
          .update = engine.counters().updates};
}

RunStart RunSetup::run_start(const std::string& resumed_from) const {
  RunStart start{.plan = plan,
                 .world_size = world.size(),
                 .resumed_from = resumed_from,
                 .first_update = engine.counters().updates};
  for (const Flag<RunConfig>& flag : train_flags())
    start.settings.emplace_back(flag.info.key, flag.get(config));
  return start;
}

}  // namespace gradstep

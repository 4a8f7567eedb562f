// Each step refuses what it can before the next, more expensive one.
#include "app/make_job.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <future>
#include <limits>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "app/settle_speed.h"
#include "base/byte_count.h"
#include "base/error_text.h"
#include "base/machine.h"
#include "base/number_text.h"
#include "gradstep/base/error.h"
#include "report/format.h"
#include "run/planner.h"
#include "step/engine_setup.h"
#include "step/param_groups.h"

namespace gradstep {
namespace {

constexpr double kFloatBytes = 4;
constexpr double kWithCopy = 2;  // what is saved is copied first

// Found out now rather than at the first evaluation.
void check_fit(const std::string& name, const DatasetPair& data) {
  const std::vector<int64_t>& wanted = data.train->spec().input_shape;
  if (!data.eval || data.eval->spec().input_shape == wanted) return;
  throw DataError("data set " + name + ": expected test " + samples_text(data.train->spec().kind) + " of " +
                  input_shape_text(wanted) + " as in the training set, found " +
                  input_shape_text(data.eval->spec().input_shape) +
                  "; fetch all files again or correct the folder");
}

JobLength length_of(const RunConfig& config) {
  return {.epochs = config.epochs,
          .max_updates = config.max_steps,
          .max_seconds = config.max_time,
          .stop_after = config.stop_after};
}

// --max-time counts from the start of the process, a job from the making of its trainer.
double seconds_left(double max_time) {
  if (max_time == 0) return 0;
  return std::max(max_time - process_seconds(), std::numeric_limits<double>::min());
}

std::vector<ParamGroup> param_groups_of(const RunConfig& config) {
  return config.param_groups == "none" ? std::vector<ParamGroup>{} : parse_param_groups(config.param_groups);
}

Reaction reaction(OnTrouble asked) {
  switch (asked) {
    case OnTrouble::kOff:  // EngineOptions::spikes finds none then
    case OnTrouble::kSkip:
      return Reaction::kGoOn;
    case OnTrouble::kStop:
      return Reaction::kStop;
    case OnTrouble::kRollBack:
      return Reaction::kRollBack;
  }
  throw std::logic_error("no such reaction");
}

Task build_task(const RunSettings& settings, const DatasetSpec& spec, at::Device device) {
  torch::manual_seed(settings.config.seed);
  Task task = settings.model().task(spec);
  validate(task);
  task.module->to(device);
  return task;
}

std::map<std::string, std::string> model_settings(const RunSettings& settings, const DatasetSpec& spec) {
  std::map<std::string, std::string> texts = settings.rebuilding();
  texts["input_shape"] = input_shape_text(spec.input_shape);
  if (spec.num_classes > 0) texts["num_classes"] = std::to_string(spec.num_classes);
  if (spec.vocab_size > 0) texts["vocab_size"] = std::to_string(spec.vocab_size);
  if (const std::string folder = settings.dataset().folder(); !folder.empty()) {
    std::error_code ignored;  // absolute: an evaluation may begin in another folder
    texts["data_dir"] = std::filesystem::absolute(folder, ignored).lexically_normal().string();
  }
  texts.merge(settings.model().notes());
  return texts;
}

// The settings that follow from the job itself.
Settings own_settings(Job& job) {
  Settings texts = std::exchange(job.settings, {});
  Settings own = settings_of(job);
  job.settings = std::move(texts);
  return own;
}

// Lets the recipe change the job. What it changes in the engine options or the order becomes a setting, so
// that a resume compares it: a flag's text would say what the recipe has overruled.
void adjust(ModelRecipe& recipe, Job& job) {
  const Settings before = own_settings(job);
  recipe.adjust(job);
  Settings now = own_settings(job);
  for (size_t i = 0; i < now.size(); ++i) {
    if (now[i].text == before[i].text) continue;
    const auto found = std::ranges::find(job.settings, now[i].key, &Setting::key);
    if (found != job.settings.end()) {
      found->text = now[i].text;
    } else {
      now[i].default_text = before[i].text;
      job.settings.push_back(std::move(now[i]));
    }
  }
}

// Throws DataError if the recipe cannot read a file, and for a part without samples.
std::shared_ptr<const Dataset> load_part(const RunSettings& settings, Split split) {
  const std::string subject = "data set " + settings.config.dataset + ": ";
  try {
    std::shared_ptr<const Dataset> part = settings.dataset().load(split);
    if (!part || part->size() > 0) return part;
  } catch (const std::system_error& error) {  // of files that the recipe reads
    if (error.code() == std::errc::not_enough_memory) throw;
    throw DataError(subject + one_line(error) + "; give data that can be read");
  }
  throw DataError(subject + "its " + (split == Split::kTrain ? "training" : "evaluation") +
                  " part has no samples; give data with some, or correct its recipe");
}

// Before anything is split off.
std::shared_ptr<const Dataset> load_whole_train(const RunSettings& settings) {
  std::shared_ptr<const Dataset> train = load_part(settings, Split::kTrain);
  if (train) return train;
  throw DataError("data set " + settings.config.dataset + ": has no training part; correct its recipe");
}

// Both parts, if the evaluation part is split off the training part.
std::optional<DatasetPair> split_off(const RunSettings& settings) {
  const RunConfig& config = settings.config;
  if (config.val_fraction == 0) return std::nullopt;
  return split_validation(load_whole_train(settings), config.val_fraction, config.seed);
}

// Why the warm-up is as short as it is, if nobody asked for it.
std::string warmup_reason(const RunConfig& config, int64_t warmup_steps) {
  const bool gave_way = !config.warmup_steps && warmup_steps < config.warmup_steps_of(/*total_updates=*/0);
  return gave_way ? "a tenth of the run" : "";
}

// The plan's words for the model: the recipe's own, or its name with its options.
std::string model_text(const RunSettings& settings, const DatasetSpec& spec) {
  std::string text = settings.model().describe(spec);
  if (!text.empty()) return text;
  text = settings.config.model;
  if (const std::string options = settings.model_options(); !options.empty()) text += ", " + options;
  return text;
}

}  // namespace

std::string input_shape_text(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t size : shape) text += (text.empty() ? "" : "x") + std::to_string(size);
  return text;
}

std::string samples_text(SampleKind kind) {
  switch (kind) {
    case SampleKind::kImages:
      return "pictures";
    case SampleKind::kTokens:
      return "sequences";
    case SampleKind::kOther:
      break;
  }
  return "samples";
}

ProcessOptions process_options(const RunConfig& config) {
  return {.device = config.device,
          .threads = config.threads,
          .num_workers = config.workers,
          .memory_limit = config.memory_limit,
          .deterministic = config.deterministic};
}

EngineOptions engine_options(const RunConfig& config, int64_t total_updates) {
  return {.optimizer = {.kind = parse_optimizer_kind(config.opt),
                        .weight_decay = config.weight_decay,
                        .beta1 = config.beta1,
                        .beta2 = config.beta2,
                        .eps = config.eps,
                        .momentum = config.momentum,
                        .nesterov = config.nesterov,
                        .decay_all = config.decay_all,
                        .groups = param_groups_of(config)},
          .schedule = {.shape = parse_lr_shape(config.sched),
                       .peak = config.lr,
                       .min = config.min_lr,
                       .warmup_steps = config.warmup_steps_of(total_updates)},
          .micro_batch = config.batch_size,
          .clip_grad = config.clip_grad,
          .seed = config.seed,
          .ema_decay = config.ema,
          .spikes = {.z_score = config.on_spike == OnTrouble::kOff ? 0 : config.spike_zscore,
                     .window = config.spike_window}};
}

void validate_engine(const RunConfig& config, int64_t total_updates) {
  EngineOptions options = engine_options(config, total_updates);
  // While it is not known, it is long enough for the warm-up.
  options.schedule.total_steps =
      total_updates > 0 ? total_updates : std::max<int64_t>(options.schedule.warmup_steps, 1);
  validate(options);
}

std::shared_ptr<const Dataset> load_split(const RunSettings& settings, Split split) {
  const std::optional<DatasetPair> pair = split_off(settings);
  if (split == Split::kTrain) return pair ? pair->train : load_whole_train(settings);
  return pair ? pair->eval : load_part(settings, Split::kEval);
}

DatasetPair load_data(const RunSettings& settings) {
  if (std::optional<DatasetPair> pair = split_off(settings)) return *std::move(pair);
  // Both parts are unpacked at the same time.
  auto eval = std::async(std::launch::async, [&] { return load_part(settings, Split::kEval); });
  DatasetPair data;
  data.train = load_whole_train(settings);
  data.eval = eval.get();
  check_fit(settings.config.dataset, data);
  return data;
}

std::string split_off_name(const RunConfig& config) {
  return config.val_fraction > 0 ? "validation part of the training set" : "";
}

double least_memory(const RunConfig& config, const ModelSize& size, const Sampler& sampler,
                    const DatasetSpec& spec, int64_t world_size) {
  if (size.parameters == 0) return 0;
  const double parameters = kWithCopy * kFloatBytes * static_cast<double>(size.parameters);
  double pixels = 1;
  for (const int64_t dimension : spec.input_shape) pixels *= static_cast<double>(dimension);
  const int64_t on_this_rank = array_split(sampler.window_range(0).size(), world_size, 0).size();
  // Each worker gathers a window as soon as it starts, even if the run never gets to it.
  const int64_t num_windows = std::max<int64_t>(config.workers, 1);
  const double windows = pixels * static_cast<double>(on_this_rank) * static_cast<double>(num_windows);
  // The engine halves the micro-batch if memory runs out, so one sample is the least that must fit.
  constexpr double kHalfBytes = 2;  // precision is not settled yet
  return parameters + windows + kHalfBytes * (pixels + static_cast<double>(size.activations));
}

double training_memory(const Job& job) {
  const EngineOptions& engine = job.engine;
  const int64_t moments = engine.make_optimizer ? 0 : num_moments(engine.optimizer);
  const int64_t saved = moments + (engine.ema_decay > 0 ? 1 : 0);
  int64_t trained = 0;
  for (const TrainedParameter& each :
       apply_groups(distinct_parameters(*job.task.module), engine.optimizer).trained)
    trained += each.tensor.numel();
  const double gradients_and_saved = 1 + kWithCopy * static_cast<double>(saved);
  return gradients_and_saved * kFloatBytes * static_cast<double>(trained);
}

void check_memory(double needed_bytes, int64_t free_bytes, int64_t limit_bytes) {
  const bool is_limited = limit_bytes > 0 && limit_bytes < free_bytes;
  if (needed_bytes <= static_cast<double>(is_limited ? limit_bytes : free_bytes)) return;
  constexpr double kMostBytes = 9e18;
  throw Error(ExitCode::kOutOfMemory,
              "out of memory: the run needs " +
                  bytes_text(static_cast<int64_t>(std::min(needed_bytes, kMostBytes))) + " at the least, " +
                  (is_limited ? "and --memory-limit is " + bytes_text(limit_bytes) + "; raise it, or lower "
                              : "of which " + bytes_text(free_bytes) + " are free; lower ") +
                  "--batch-size, --workers or the size of the model");
}

PreparedJob make_job(const RunSettings& settings, const World& world, at::Device device,
                     const TrainState* before, const StopToken* stop) {
  const RunConfig& config = settings.config;
  PreparedJob prepared;
  Job& job = prepared.job;
  job.data = load_data(settings);
  const Dataset& train = *job.data.train;
  job.global_batch = config.global_batch(world.size());
  const Sampler sampler(train.size(), job.global_batch, config.seed);
  if (job.data.eval && job.data.eval->fingerprint() == train.fingerprint())
    prepared.warnings.push_back(
        "the evaluation data are the training data, so that evaluations say nothing of new samples");
  job.length = length_of(config);
  const int64_t total_updates = run_length(job.length, sampler.windows_per_epoch()).total_updates;
  // After accepted drift the schedule is longer than that: it begins with the updates so far.
  validate_engine(config, before != nullptr && config.accept_drift
                              ? std::max(total_updates, config.warmup_steps.value_or(0))
                              : total_updates);
  // What the memory cannot hold is refused before anything large is made.
  const int64_t free_bytes = free_memory_bytes().value_or(std::numeric_limits<int64_t>::max());
  const double least = device.is_cpu() ? least_memory(config, settings.model().size(train.spec()), sampler,
                                                      train.spec(), world.size())
                                       : 0;
  const int64_t limit_bytes = parse_byte_count(config.memory_limit).value_or(0);
  check_memory(least, free_bytes, limit_bytes);
  job.task = build_task(settings, train.spec(), device);

  const SettledSpeed speed =
      settle_speed(config, job.task, train,
                   largest_micro_batch(job.task, config.batch_size, sampler, world.size()), before, stop);
  const PrecisionChoice& choice = speed.precision;
  const double averaged_updates = 1 / (1 - config.ema);
  if (config.ema > 0 && total_updates > 0 && averaged_updates > static_cast<double>(total_updates))
    prepared.warnings.push_back("--ema " + shortest(config.ema) + " averages over about " +
                                thousands_text(std::llround(averaged_updates)) +
                                " updates, and the run has " + thousands_text(total_updates) +
                                ": the averages hold much of the initial weights; lower it");
  if (!choice.warning.empty()) prepared.warnings.push_back(choice.warning);
  prepared.settled = {{"precision", to_string(choice.precision)}, {"matmul", to_string(choice.matmul)}};
  if (!speed.threads_reason.empty()) prepared.settled["threads"] = std::to_string(at::get_num_threads());

  job.engine = engine_options(config, total_updates);
  job.engine.precision = choice.precision;
  // A warm-up that nobody asked for follows the length of the run; one that has begun stays.
  if (const std::optional<int64_t> begun = recorded_integer(before, "warmup_steps");
      begun && !config.warmup_steps && (total_updates == 0 || *begun <= total_updates))
    job.engine.schedule.warmup_steps = *begun;
  job.num_workers = config.workers;
  job.eval = {.interval = config.eval_interval,
              .best_metric = config.best_metric,
              .early_stop_patience = config.early_stop_patience};
  job.save = {.interval = config.save_interval,
              .keep = config.keep_checkpoints,
              .continue_on_error = config.on_save_error == OnSaveError::kContinue,
              .grace_seconds = config.grace};
  job.trouble = {.on_not_finite = reaction(config.on_nonfinite),
                 .on_spike = reaction(config.on_spike),
                 .max_rollbacks = config.max_rollbacks};
  job.accept_drift = config.accept_drift;
  const std::string folder = settings.dataset().folder();
  job.names = {.dataset = config.dataset + (folder.empty() ? "" : " in " + folder),
               .eval_part = split_off_name(config),
               .model = model_text(settings, train.spec()),
               .threads_reason = speed.threads_reason,
               .precision_reason = choice.reason,
               .warmup_reason = warmup_reason(config, job.engine.schedule.warmup_steps)};
  // The number of threads changes the bits, so the number in use is recorded, not "all cores".
  std::map<std::string, std::string> recorded = prepared.settled;
  recorded["warmup_steps"] = std::to_string(job.engine.schedule.warmup_steps);
  recorded["threads"] = std::to_string(at::get_num_threads());
  // In one form, so that a resume does not take two texts of the same groups for two runs.
  if (const std::string groups = to_string(job.engine.optimizer.groups); !groups.empty())
    recorded["param_groups"] = groups;
  job.settings = settings.texts(recorded);
  job.model_settings = model_settings(settings, train.spec());
  adjust(settings.model(), job);
  job.settings_are_complete = true;
  if (device.is_cpu()) check_memory(least + training_memory(job), free_bytes, limit_bytes);
  if (!job.order && config.order == SampleOrder::kSequential) job.order = sequential_order(train.size());
  job.length.max_seconds = seconds_left(job.length.max_seconds);
  return prepared;
}

}  // namespace gradstep

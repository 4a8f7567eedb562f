// The loop, and what has to be ready before it starts.
#include "gradstep/run/trainer.h"

#include <torch/torch.h>

#include <future>

#include "gradstep/base/error.h"
#include "gradstep/base/machine.h"
#include "gradstep/data/loader.h"
#include "gradstep/run/evaluator.h"
#include "gradstep/run/model_file.h"
#include "gradstep/step/engine.h"
#include "gradstep/step/precision_probe.h"
#include "run/device.h"
#include "run/planner.h"
#include "run/row_clock.h"

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

PrecisionChoice settle_precision(const RunConfig& config, const Task& task, const Batch& micro) {
  PrecisionChoice choice = choose_precision(task, micro, config.precision, config.matmul);
  use_matmul(choice.matmul);
  return choice;
}

EngineOptions with_precision(EngineOptions options, Precision precision) {
  options.precision = precision;
  return options;
}

}  // namespace

class Trainer::Impl {
 public:
  Impl(const RunConfig& config, World& world)
      : config_(config),
        world_(world),
        device_(settle_device(config)),
        data_(load_data(config)),
        sampler_(data_.train->size(), config.global_batch(world.size()), config.seed),
        length_(checked_length(config, sampler_.windows_per_epoch())),
        task_(build_task(config, sampler_, data_.train->spec(), device_, world.size())),
        precision_(settle_precision(
            config, task_,
            data_.train->gather(at::arange(largest_micro_batch(config, sampler_, world.size()))))),
        engine_(task_, with_precision(engine_options(config, length_.total_updates), precision_.precision),
                world),
        eval_timer_(config.eval_interval, sampler_.windows_per_epoch()) {
    if (!precision_.warning.empty()) warnings_.push_back(precision_.warning);
    plan_.dataset = config.dataset + " in " + data_dir();
    plan_.eval_samples = data_.test->size();
    plan_.eval_part = config.val_fraction > 0 ? "validation part of the training set" : "test set";
    plan_.model = describe_model({.name = config.model, .hidden = config.hidden}, data_.train->spec());
    plan_.device = describe_device(device_);
    plan_.precision = to_string(precision_.precision) +
                      (precision_.matmul == Matmul::kOneDnn ? ", matrix products by oneDNN" : "");
    plan_.precision_reason = precision_.reason;
    plan_.output_dir = config.output_dir;
    fill_plan(config, sampler_, length_, engine_, world, plan_);
  }

  RunEnd run(Sink& sinks, const StopToken& stop, FileSystem& file_system, const std::string& output_dir);

  RunConfig settled_config() const {
    RunConfig config = config_;
    config.precision = to_string(precision_.precision);
    config.matmul = to_string(precision_.matmul);
    return config;
  }

  RunPlan plan_;
  std::vector<std::string> warnings_;

 private:
  std::string data_dir() const {
    return config_.data_dir.empty() ? default_data_dir(config_.dataset) : config_.data_dir;
  }
  void evaluate_now(Sink& sinks, const StopToken& stop);
  void save(const char* name) const;
  bool out_of_patience() const {
    return config_.early_stop_patience > 0 && evals_without_best_ >= config_.early_stop_patience;
  }
  RunEnd finish(Sink& sinks, const StopToken& stop);
  std::string end_reason(const StopToken& stop) const;
  bool measured_last_update() const { return last_eval_ && last_eval_->update == engine_.counters().updates; }

  const RunConfig config_;
  World& world_;
  at::Device device_;
  DatasetPair data_;
  Sampler sampler_;
  RunLength length_;
  Task task_;
  PrecisionChoice precision_;
  Engine engine_;
  DueTimer eval_timer_;
  RowClock clock_;
  FileSystem* file_system_ = nullptr;
  std::string output_dir_;
  int64_t samples_ = 0;
  int64_t epoch_ = 0;
  int64_t evals_without_best_ = 0;
  std::optional<EvalRow> last_eval_;
  std::optional<EvalRow> best_eval_;
};

RunEnd Trainer::Impl::run(Sink& sinks, const StopToken& stop, FileSystem& file_system,
                          const std::string& output_dir) {
  file_system_ = &file_system;
  output_dir_ = output_dir;
  Loader loader(data_.train, sampler_,
                {.num_workers = config_.workers, .rank = world_.rank(), .world_size = world_.size()});
  clock_.start();
  while (!length_.reached(engine_.counters()) && !stop.requested() && !out_of_patience()) {
    const Window window = loader.next();
    clock_.data_ready();
    WindowRow row{.step = engine_.step(window)};
    samples_ += row.step.samples;
    epoch_ = row.step.epoch;
    row.window_of_epoch = window.position.index + 1;
    row.samples = samples_;
    clock_.finish_row(row);
    if (world_.rank() == 0) sinks.window(row);
    if (row.step.diverged) {
      sinks.flush();
      throw Diverged("diverged at window " + std::to_string(row.step.window) +
                     ": too many updates in a row were not finite, first in " + row.step.first_non_finite +
                     "; lower --lr or set --clip-grad");
    }
    const EngineCounters& counters = engine_.counters();
    if (eval_timer_.due(counters.updates, counters.windows, clock_.seconds())) evaluate_now(sinks, stop);
  }
  return finish(sinks, stop);
}

void Trainer::Impl::evaluate_now(Sink& sinks, const StopToken& stop) {
  const auto pause = clock_.pause();
  const EvalResult result =
      evaluate(task_, *data_.test, world_,
               {.precision = precision_.precision, .should_stop = [&] { return stop.requested(); }});
  if (!result.complete) return;
  EvalRow row{.update = engine_.counters().updates,
              .epoch = epoch_,
              .val_loss = result.loss,
              .val_acc = result.accuracy,
              .val_top5 = result.top5,
              .samples = result.samples,
              .time_eval = pause.seconds()};
  row.best = std::isfinite(result.loss) && (!best_eval_ || result.accuracy > best_eval_->val_acc);
  evals_without_best_ = row.best ? 0 : evals_without_best_ + 1;
  if (row.best) {
    best_eval_ = row;
    save("best.safetensors");
  }
  last_eval_ = row;
  if (world_.rank() == 0) sinks.eval(row);
}

RunEnd Trainer::Impl::finish(Sink& sinks, const StopToken& stop) {
  const int64_t updates = engine_.counters().updates;
  // A loss that nobody measured at the last update is measured now, unless somebody wants to leave.
  if (!stop.requested() && !measured_last_update()) evaluate_now(sinks, stop);
  save("model.safetensors");
  RunEnd end{.update = updates,
             .total_updates = length_.total_updates,
             .samples = samples_,
             .skipped_total = engine_.counters().skipped_total,
             .seconds = clock_.seconds(),
             .reason = end_reason(stop),
             .last_eval = last_eval_,
             .best_eval = best_eval_};
  if (!output_dir_.empty()) end.model_path = output_dir_ + "/model.safetensors";
  if (world_.rank() == 0) sinks.end(end);
  return end;
}

// A run with nothing left to do is done, whoever asked it to stop in its last moment, and however its last
// evaluation came out.
std::string Trainer::Impl::end_reason(const StopToken& stop) const {
  if (length_.reached(engine_.counters()) && measured_last_update()) return "done";
  if (stop.requested()) return stop_name(stop.reason());
  return "early stop";
}

void Trainer::Impl::save(const char* name) const {
  if (world_.rank() != 0 || output_dir_.empty()) return;
  save_model(*file_system_, output_dir_ + "/" + name, *task_.module,
             {.model = {config_.model, config_.hidden, config_.dropout, config_.label_smoothing},
              .dataset = data_.train->spec(),
              .data_dir = data_dir(),
              .val_fraction = config_.val_fraction,
              .seed = config_.seed,
              .precision = precision_.precision,
              .matmul = precision_.matmul,
              .update = engine_.counters().updates});
}

Trainer::Trainer(const RunConfig& config, World& world) : impl_(std::make_unique<Impl>(config, world)) {}
Trainer::~Trainer() = default;
const RunPlan& Trainer::plan() const { return impl_->plan_; }
RunConfig Trainer::settled_config() const { return impl_->settled_config(); }
const std::vector<std::string>& Trainer::warnings() const { return impl_->warnings_; }
RunEnd Trainer::run(Sink& sinks, const StopToken& stop, FileSystem& file_system,
                    const std::string& output_dir) {
  return impl_->run(sinks, stop, file_system, output_dir);
}

}  // namespace gradstep

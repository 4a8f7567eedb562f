// Members are made in their order, and each step refuses what it can before the next, more expensive one.
#include "run/run_setup.h"

#include <torch/torch.h>

#include "base/utf8.h"
#include "gradstep/base/error.h"
#include "gradstep/step/precision.h"
#include "run/device.h"
#include "run/single_samples.h"

namespace gradstep {
namespace {

Job checked(Job job, int64_t world_size) {
  validate(job);
  if (job.global_batch == 0) job.global_batch = job.engine.micro_batch * world_size;
  if (!job.data.eval) job.eval.interval = {};
  return job;
}

// Files hold only UTF-8, and a resume compares with what a file holds.
Settings cleaned(Settings settings) {
  for (Setting& setting : settings) {
    for (std::string* text : {&setting.key, &setting.text, &setting.default_text}) *text = to_utf8(*text);
  }
  return settings;
}

Sampler make_sampler(const Job& job) {
  const int64_t size = job.epoch_size > 0 ? job.epoch_size : job.data.train->size();
  if (!job.order) return {size, job.global_batch, job.engine.seed};
  return {size, job.global_batch, job.order};
}

EngineOptions engine_options(const Job& job, const RunLength& length) {
  EngineOptions options = job.engine;
  // After accepted drift the length follows at the resume.
  const int64_t least = job.accept_drift && length.total_updates > 0 ? options.schedule.warmup_steps : 0;
  if (options.schedule.total_steps == 0) options.schedule.total_steps = std::max(length.total_updates, least);
  return options;
}

// Of fp32 on a CPU, where there is a choice.
std::string matmul_text(Precision precision, c10::Device device) {
  if (precision != Precision::kFp32 || !device.is_cpu()) return {};
  return std::string(", matrix products by ") + (current_matmul() == Matmul::kOneDnn ? "oneDNN" : "torch");
}

RunPlan make_plan(const RunSetup& setup) {
  const Job& job = setup.job;
  RunPlan plan{.dataset = job.names.dataset,
               .eval_samples = job.data.eval ? job.data.eval->size() : 0,
               .eval_part = job.names.eval_part,
               .model = job.names.model,
               .device = describe_device(setup.device) +
                         (job.names.threads_reason.empty() ? "" : ": " + job.names.threads_reason),
               .precision = to_string(job.engine.precision) + matmul_text(job.engine.precision, setup.device),
               .precision_reason = job.names.precision_reason};
  if (plan.dataset.empty()) plan.dataset = job.data.train->spec().name;
  fill_plan(job, setup.sampler, setup.length, setup.engine, setup.world, plan);
  return plan;
}

}  // namespace

RunSetup::RunSetup(Job of, World& ranks)
    : job(checked(std::move(of), ranks.size())),
      world(ranks),
      device(job.task.module->parameters().front().device()),
      sampler(make_sampler(job)),
      length(run_length(job.length, sampler.windows_per_epoch())),
      planned_updates(length.total_updates),
      best_metric(find_best_metric(job.eval.best_metric, job.task, job.engine.ema_decay > 0)),
      settings(cleaned(settings_of(job))),
      dataset_fingerprint(to_utf8(job.data.train->fingerprint())),
      eval_fingerprint(job.data.eval ? to_utf8(job.data.eval->fingerprint()) : ""),
      engine(job.task, engine_options(job, length), world),
      plan(make_plan(*this)) {
  require_single_samples_pass(job, sampler, world);
}

ModelInfo RunSetup::model_info() const {
  return {.settings = job.model_settings,
          .precision = job.engine.precision,
          .matmul = current_matmul(),
          .update = engine.counters().updates,
          .train_data = dataset_fingerprint,
          .eval_data = eval_fingerprint};
}

void RunSetup::set_total_updates(int64_t total_updates) {
  length.total_updates = total_updates;
  if (job.engine.schedule.total_steps == 0) engine.set_total_steps(total_updates);
  fill_length(job, length, engine, plan);
}

std::map<std::string, std::string> RunSetup::setting_texts() const {
  std::map<std::string, std::string> texts;
  for (const Setting& setting : settings) texts[setting.key] = setting.text;
  return texts;
}

RunStart RunSetup::run_start(const std::string& resumed_from) const {
  RunStart start{.plan = plan,
                 .world_size = world.size(),
                 .resumed_from = resumed_from,
                 .first_update = engine.counters().updates};
  for (const Setting& setting : settings) start.settings.emplace_back(setting.key, setting.text);
  return start;
}

}  // namespace gradstep

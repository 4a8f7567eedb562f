// The update, in the order of docs/design.md section 4.
#include <torch/torch.h>

#include <cmath>
#include <exception>
#include <utility>

#include "dist/over_ranks.h"
#include "dist/together.h"
#include "gradstep/base/error.h"
#include "model/mode_guard.h"
#include "step/clip.h"
#include "step/engine_impl.h"
#include "step/named_tensors.h"
#include "step/non_finite.h"
#include "step/window_weight.h"

namespace gradstep {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

at::Tensor scalar(double value, at::Device device) {
  return at::full({}, value, at::TensorOptions(at::kFloat).device(device));
}

}  // namespace

Engine::Impl::Impl(Task task_, const EngineOptions& options_, World& world_)
    : task(std::move(task_)),
      options(options_),
      world(world_),
      parameters(engine_parameters(task, options)),
      optimizer(*parameters.optimizer),
      state_layout(optimizer),
      device(optimizer.parameters().front().second.device()),
      accumulator(task, options.precision, device),
      grad_sync(make_grad_sync(values(optimizer.parameters()), world)),
      scaler(options.precision == Precision::kFp16, options.scaler, device),
      snapshot(task),
      ema(optimizer.parameters(), options.ema_decay),
      spikes(options.spikes),
      micro_batch(options.micro_batch),
      host_scale(scaler.scale()),
      norm(scalar(0, device)),
      found_inf(scalar(0, device)) {
  if (!task.divisible && world.size() > 1) {
    throw ConfigError("the loss of the task needs its window in one piece, and " +
                      std::to_string(world.size()) + " ranks would cut it; train it on one rank");
  }
}

StepReport Engine::Impl::step(const Window& window, const GiveUp& give_up) {
  TORCH_CHECK(window.total_samples > 0, "Engine::step: the window has no samples on any rank");
  if (!has_stepped) require_same_user_state();
  has_stepped = true;
  StepReport report = begin_report(window);  // weight, learning rate
  if (report.divisor == 0) return pass_by(window, std::move(report), StepOutcome::kEmpty);

  zero_grad();
  save_task();
  const int64_t micro_batch_before = micro_batch;
  try {
    const Passes passes = make_gradients(window, give_up, report);
    if (passes.status == SyncStatus::kGivenUp)
      return give_up_on(window, std::move(report), micro_batch_before);
    report.micro_batch = micro_batch_for(window);
    report.num_micro_batches = static_cast<int64_t>(passes.loss_sums.size());
    owes_loss = true;

    // Unscale, norm, and what they say about the window.
    std::vector<at::Tensor> grads = gradients(optimizer.parameters());
    found_inf.zero_();
    scaler.unscale_(grads, found_inf);
    global_norm(grads, norm, found_inf);
    if (spikes.enabled()) judge(passes, report);

    // Clip, optimizer, scaler. A spike is finite, so the scale has no part in it. Where found_inf is 1, the
    // optimizer changes nothing.
    if (report.outcome != StepOutcome::kSpike) {
      clip_by_norm_(grads, norm, options.clip_grad);
      is_whole = false;
      optimizer.step(report.lr, found_inf);
      scaler.update(found_inf);
      if (spikes.enabled())
        host_scale = scaler.scale();  // a second wait for the device, under fp16
      else
        read_back(passes, report);
    }
  } catch (...) {
    const std::exception_ptr failure = std::current_exception();
    const bool others_wait = owes_loss;
    if (others_wait) (void)share_loss(0, /*failed=*/true);
    try {
      drop();
    } catch (...) {  // the first failure is the one that counts
    }
    if (is_whole) micro_batch = micro_batch_before;
    if (others_wait) throw_together(failure, device, world);
    std::rethrow_exception(failure);
  }
  zero_grad();
  report.skipped() ? note_skip(window, report) : note_update();
  end_report(report);
  return report;
}

StepReport Engine::Impl::pass_by(const Window& window, StepReport report, StepOutcome outcome) {
  report.outcome = outcome;
  if (outcome == StepOutcome::kEmpty) report.loss = report.grad_norm = kNan;
  report.micro_batch = micro_batch_for(window);
  ++counters.skipped_total;
  end_report(report);
  return report;
}

StepReport Engine::Impl::begin_report(const Window& window) {
  StepReport report;
  report.divisor = window_weight(task, window, counters.windows + 1, device, world);
  report.lr = window_lr(options.schedule, counters.updates + 1, device, world);
  report.epoch = window.position.epoch;
  report.loss_scale = host_scale;
  report.samples = window.total_samples;
  return report;
}

void Engine::Impl::end_report(StepReport& report) {
  is_whole = true;
  report.window = ++counters.windows;
  report.update = counters.updates;
  report.skipped_total = counters.skipped_total;
  // An optimizer that makes its state at its first step: said now, and not at a save in an hour.
  if (report.update == 1 && !report.skipped()) state_layout.require_unchanged(optimizer);
}

void Engine::Impl::judge(const Passes& passes, StepReport& report) {
  read_back(passes, report);
  is_whole = false;
  if (!report.skipped()) report.spike = spikes.observe(report.loss, report.grad_norm);
  if (report.spike) report.outcome = StepOutcome::kSpike;
}

// The only wait for the device: fills loss, norm and outcome, and mirrors the scale.
void Engine::Impl::read_back(const Passes& passes, StepReport& report) {
  double loss_sum = 0;
  bool is_finite = true;
  if (device.is_cpu()) {
    for (const at::Tensor& loss : passes.loss_sums) loss_sum += loss.item<double>();
    report.grad_norm = norm.item<double>();
    is_finite = found_inf.item<float>() == 0;
    host_scale = scaler.scale();
    const std::optional<double> sum = share_loss(loss_sum, /*failed=*/false);
    if (!sum) throw_together(nullptr, device, world);
    loss_sum = *sum;
  } else {
    const std::vector<at::Tensor>& sums = passes.loss_sums;
    at::Tensor loss = (sums.empty() ? at::zeros_like(norm) : at::stack(sums)).sum(at::kDouble);
    at::Tensor both = at::stack({loss, at::zeros_like(loss)});
    owes_loss = false;
    world.all_reduce_sum(both);
    const at::Tensor scale = scaler.enabled() ? scaler.scale_tensor() : at::ones_like(norm);
    const at::Tensor numbers =
        at::stack({both[0], norm.to(at::kDouble), found_inf.to(at::kDouble), scale.to(at::kDouble), both[1]})
            .cpu();
    const double* number = numbers.const_data_ptr<double>();
    loss_sum = number[0];
    report.grad_norm = number[1];
    is_finite = number[2] == 0;
    host_scale = number[3];
    if (number[4] > 0) throw_together(nullptr, device, world);
  }
  report.loss = loss_sum / report.divisor;
  report.outcome = is_finite ? StepOutcome::kApplied : StepOutcome::kNotFinite;
}

// The sum of the ranks' losses; nothing if one of them failed after the exchange of gradients.
std::optional<double> Engine::Impl::share_loss(double own, bool failed) {
  owes_loss = false;
  return sum_unless_failed(own, failed, device, world);
}

void Engine::Impl::note_update() {
  ++counters.updates;
  counters.skips_in_a_row = 0;
  first_non_finite.clear();
  counters.updates == 1 ? ema.reset() : ema.update();
}

void Engine::Impl::note_skip(const Window& window, StepReport& report) {
  restore_task();
  ++counters.skipped_total;
  ++counters.skips_in_a_row;
  report.diverged = counters.skips_in_a_row >= options.max_skips_in_a_row;
  if (report.outcome == StepOutcome::kSpike) return;
  // A row of skips may begin with spikes, which are not looked into.
  const bool first =
      counters.skips_in_a_row == 1 || (first_non_finite.empty() && (spikes.enabled() || report.diverged));
  if (first) {
    Examination seen = look_together(window, report);
    restore_task();
    first_non_finite = std::move(seen.first_non_finite);
    non_finite_rank = seen.rank;
    report.modules = std::move(seen.modules);
    if (first_non_finite.empty()) first_non_finite = kNotFiniteInTheSum;
  }
  if (!first && !report.diverged) return;
  report.first_non_finite = first_non_finite;
  report.non_finite_rank = non_finite_rank;
}

// Else some ranks would wait for the others below.
void Engine::Impl::require_same_user_state() {
  if (world.size() == 1) return;
  const int64_t num_ranks = std::llround(sum_over_ranks(task.user_state ? 1 : 0, device, world));
  if (num_ranks == 0 || num_ranks == world.size()) return;
  throw ConfigError("Task::user_state is there on " + std::to_string(num_ranks) + " of " +
                    std::to_string(world.size()) + " ranks; give it to all of them, or to none");
}

// Task::user_state may throw on this rank alone.
void Engine::Impl::save_task() {
  if (!task.user_state) return snapshot.save();
  together([&] { snapshot.save(); }, device, world);
}

void Engine::Impl::restore_task() {
  if (!task.user_state) return snapshot.restore();
  const bool was_whole = std::exchange(is_whole, false);
  together([&] { snapshot.restore(); }, device, world);
  is_whole = was_whole;
}

void Engine::Impl::drop() {
  zero_grad();
  const bool was_whole = std::exchange(is_whole, false);
  snapshot.restore();
  is_whole = was_whole;
}

void Engine::Impl::zero_grad() {
  for (const auto& [name, parameter] : optimizer.parameters()) parameter.mutable_grad().reset();
}

Engine::Engine(Task task, const EngineOptions& options, World& world)
    : impl_(std::make_unique<Impl>(std::move(task), options, world)) {}
Engine::~Engine() = default;
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;

StepReport Engine::step(const Window& window, const GiveUp& give_up) { return impl_->step(window, give_up); }

StepReport Engine::step(const at::Tensor& inputs, const at::Tensor& targets, int64_t epoch) {
  return step(window_of({inputs, targets}, epoch, impl_->device, impl_->world));
}

StepReport Engine::step_over(const Window& window) {
  return impl_->pass_by(window, impl_->begin_report(window), StepOutcome::kSteppedOver);
}

bool Engine::is_whole() const { return impl_->is_whole; }

EngineState Engine::state() const {
  impl_->state_layout.require_unchanged(impl_->optimizer);
  return {.counters = impl_->counters,
          .loss_scale = impl_->scaler.scale(),
          .num_good_updates = impl_->scaler.num_good_updates(),
          .micro_batch = impl_->micro_batch,
          .first_non_finite = impl_->first_non_finite,
          .spikes = impl_->spikes.history()};
}

void Engine::restore(const EngineState& state) {
  TORCH_CHECK(state.micro_batch >= 1, "Engine::restore: the micro-batch must be 1 sample or more");
  impl_->is_whole = true;
  impl_->first_non_finite = state.first_non_finite;
  impl_->counters = state.counters;
  impl_->scaler.restore(state.loss_scale, state.num_good_updates);
  impl_->host_scale = impl_->scaler.scale();
  impl_->micro_batch = state.micro_batch;
  impl_->spikes.restore(state.spikes);
}

void Engine::set_total_steps(int64_t total_steps) {
  LrSchedule schedule = impl_->options.schedule;
  schedule.total_steps = total_steps;
  validate(schedule);
  impl_->options.schedule = schedule;
}

double Engine::next_lr() const { return impl_->options.schedule.at(impl_->counters.updates + 1); }
const EngineCounters& Engine::counters() const { return impl_->counters; }
const EngineOptions& Engine::options() const { return impl_->options; }
const Task& Engine::task() const { return impl_->task; }
const Optimizer& Engine::optimizer() const { return impl_->optimizer; }
const NamedTensors& Engine::frozen() const { return impl_->parameters.frozen; }
NamedTensors Engine::averages() const { return impl_->ema.tensors(); }
void Engine::reset_averages() { impl_->ema.reset(); }
at::Device Engine::device() const { return impl_->device; }

AveragesGuard::AveragesGuard(Engine& engine) : engine_(engine) { engine_.impl_->ema.swap(); }
AveragesGuard::~AveragesGuard() { engine_.impl_->ema.swap(); }

}  // namespace gradstep

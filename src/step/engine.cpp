// The update, in the order of docs/design.md section 4.
#include "gradstep/step/engine.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <torch/torch.h>

#include "base/out_of_memory.h"
#include "gradstep/base/error.h"
#include "gradstep/step/clip.h"
#include "gradstep/step/micro_batches.h"
#include "gradstep/step/non_finite.h"
#include "gradstep/step/window_seed.h"
#include "model/mode_guard.h"

namespace gradstep {
namespace {

// Inputs up to this size are prepared once a window: more would fall out of the processor's cache before it
// is used.
constexpr int64_t kPrepareAtOnceBytes = int64_t{1} << 20;

// Parameters by name, each tensor once: named_parameters() lists a shared one under every name it has.
NamedTensors distinct_parameters(const torch::nn::Module& module) {
  NamedTensors parameters;
  std::vector<const void*> seen;
  for (const auto& item : module.named_parameters()) {
    const void* identity = item.value().unsafeGetTensorImpl();
    if (std::find(seen.begin(), seen.end(), identity) != seen.end()) continue;
    seen.push_back(identity);
    parameters.emplace_back(item.key(), item.value());
  }
  return parameters;
}

// Freezes what the groups freeze, and makes the optimizer of the rest.
std::unique_ptr<Optimizer> optimizer_of(const torch::nn::Module& module, const EngineOptions& options,
                                        NamedTensors& frozen) {
  validate(options);
  GroupedParameters grouped = apply_groups(distinct_parameters(module), options.optimizer);
  for (const TrainedParameter& parameter : grouped.trained) {
    if (parameter.tensor.scalar_type() == at::kFloat) continue;
    throw ConfigError(
        "parameter " + parameter.name + " is " + c10::toString(parameter.tensor.scalar_type()) +
        ", not fp32: keep the parameters in fp32 (module->to(torch::kFloat)) and choose --precision "
        "for the forward pass");
  }
  for (auto& [name, parameter] : grouped.frozen) parameter.requires_grad_(false);
  frozen = std::move(grouped.frozen);
  if (!options.make_optimizer) return make_optimizer(std::move(grouped.trained), options.optimizer);
  std::unique_ptr<Optimizer> own = options.make_optimizer(std::move(grouped.trained));
  if (!own || own->parameters().empty())
    throw ConfigError("EngineOptions::make_optimizer made no optimizer over the parameters it was given");
  return own;
}

bool contains_batch_norm(const torch::nn::Module& module) {
  for (const auto& child : module.modules()) {
    if (child->as<torch::nn::BatchNorm1dImpl>() || child->as<torch::nn::BatchNorm2dImpl>() ||
        child->as<torch::nn::BatchNorm3dImpl>()) {
      return true;
    }
  }
  return false;
}

std::vector<at::Tensor> values(const NamedTensors& named) {
  std::vector<at::Tensor> tensors;
  for (const auto& [name, tensor] : named) tensors.push_back(tensor);
  return tensors;
}

std::vector<at::Tensor> gradients(const NamedTensors& parameters) {
  std::vector<at::Tensor> grads;
  grads.reserve(parameters.size());
  for (const auto& [name, parameter] : parameters) {
    if (parameter.grad().defined()) grads.push_back(parameter.grad());
  }
  return grads;
}

at::Tensor scalar(double value, at::Device device) {
  return at::full({}, value, at::TensorOptions(at::kFloat).device(device));
}

}  // namespace

void validate(const EngineOptions& options) {
  const auto refuse = [](const std::string& message) { throw ConfigError("engine: " + message); };
  validate(options.optimizer);
  validate(options.schedule);
  if (options.micro_batch < 1) throw ConfigError("the micro-batch must be 1 sample or more");
  if (!(options.clip_grad >= 0)) refuse("clip_grad must be a norm of at least 0; 0 is off");
  if (options.max_skips_in_a_row < 1) refuse("max_skips_in_a_row must be 1 or more");
  if (!(options.ema_decay >= 0 && options.ema_decay < 1))
    refuse("ema_decay must be at least 0 and below 1; 0 is off");
  if (!(options.spikes.z_score >= 0)) refuse("spikes.z_score must be at least 0; 0 is off");
  if (options.spikes.window < 1) refuse("spikes.window must be 1 window or more");
  const GradScalerOptions& scaler = options.scaler;
  if (!(scaler.init_scale > 0 && std::isfinite(scaler.init_scale)))
    refuse("scaler.init_scale must be above 0 and finite");
  if (!(scaler.growth_factor >= 1) || !(scaler.backoff_factor > 0 && scaler.backoff_factor <= 1))
    refuse("scaler.growth_factor must be at least 1, and backoff_factor above 0 and at most 1");
  if (scaler.growth_interval < 1) refuse("scaler.growth_interval must be 1 update or more");
}

Engine::Engine(Task task, const EngineOptions& options, World& world)
    : task_(std::move(task)),
      options_(options),
      world_(world),
      optimizer_(optimizer_of(*task_.module, options, frozen_)),
      device_(optimizer_->parameters().front().second.device()),
      scaler_(options.precision == Precision::kFp16, options.scaler, device_),
      grad_sync_(values(optimizer_->parameters()), world),
      buffers_(*task_.module),
      ema_(optimizer_->parameters(), options.ema_decay),
      spikes_(options.spikes),
      has_batch_norm_(contains_batch_norm(*task_.module)),
      host_scale_(scaler_.scale()),
      seed_grad_(scalar(1, device_)),
      norm_(scalar(0, device_)),
      found_inf_(scalar(0, device_)) {}

StepReport Engine::step(const Window& window) {
  TORCH_CHECK(window.total_samples > 0, "Engine::step: the window has no samples on any rank");
  StepReport report = begin_report(window);

  zero_grad();
  buffers_.save();
  const std::vector<at::Tensor> loss_sums = accumulate_within_memory(window, report);
  try {
    grad_sync_.sum_();
    optimize(loss_sums, report);
  } catch (...) {
    give_up();
    throw;
  }
  report.skipped ? note_skip(window, report) : note_update();
  zero_grad();
  end_report(report);
  return report;
}

StepReport Engine::step(const at::Tensor& inputs, const at::Tensor& targets, int64_t epoch) {
  Window window;
  window.batch = {inputs, targets};
  window.position.epoch = epoch;
  window.total_samples = static_cast<int64_t>(sum_over_ranks(static_cast<double>(inputs.size(0))));
  return step(window);
}

StepReport Engine::step_over(const Window& window) {
  StepReport report = begin_report(window);
  report.skipped = true;
  report.micro_batch = options_.micro_batch;
  ++counters_.skipped_total;
  end_report(report);
  return report;
}

StepReport Engine::begin_report(const Window& window) {
  StepReport report;
  report.epoch = window.position.epoch;
  report.lr = next_lr();
  report.loss_scale = host_scale_;
  report.samples = window.total_samples;
  report.divisor = total_weight(window);
  return report;
}

void Engine::end_report(StepReport& report) {
  is_whole_ = true;
  report.window = ++counters_.windows;
  report.update = counters_.updates;
  report.skipped_total = counters_.skipped_total;
}

EngineState Engine::state() const {
  return {.counters = counters_,
          .loss_scale = scaler_.scale(),
          .num_good_updates = scaler_.num_good_updates(),
          .micro_batch = options_.micro_batch,
          .first_non_finite = first_non_finite_,
          .spikes = spikes_.history()};
}

void Engine::restore(const EngineState& state) {
  TORCH_CHECK(state.micro_batch >= 1, "Engine::restore: the micro-batch must be 1 sample or more");
  is_whole_ = true;
  first_non_finite_ = state.first_non_finite;
  counters_ = state.counters;
  scaler_.restore(state.loss_scale, state.num_good_updates);
  host_scale_ = scaler_.scale();
  options_.micro_batch = state.micro_batch;
  spikes_.restore(state.spikes);
}

double Engine::total_weight(const Window& window) {
  if (!task_.weight) return static_cast<double>(window.total_samples);
  return sum_over_ranks(weight_of(task_, window.batch));
}

double Engine::sum_over_ranks(double value) {
  if (world_.size() == 1) return value;
  at::Tensor total = at::full({}, value, at::TensorOptions(at::kDouble).device(device_));
  world_.all_reduce_sum(total);
  return total.item<double>();
}

std::vector<at::Tensor> Engine::accumulate_within_memory(const Window& window, StepReport& report) {
  // Each rank may do so by itself: ranks talk only after the last micro-batch.
  const int64_t micro_batch_before = options_.micro_batch;
  const int64_t smallest = has_batch_norm_ ? 2 : 1;  // batch norm has no variance over one sample
  std::vector<at::Tensor> loss_sums;
  while (!accumulate(window, report.loss_scale / report.divisor, loss_sums)) {
    // By now the graph and the exception of the failed try are gone, and their memory with them.
    const int64_t used = std::min(options_.micro_batch, window.batch.size());
    const int64_t half = std::max(used / 2, smallest);
    if (half >= used) {
      options_.micro_batch = micro_batch_before;
      throw Error(ExitCode::kOutOfMemory,
                  "out of memory in window " + std::to_string(counters_.windows + 1) +
                      " with a micro-batch of " + std::to_string(used) +
                      ": take a smaller model or a lower --precision, or free some memory");
    }
    options_.micro_batch = half;
    ++report.num_out_of_memory;
    if (!device_.is_cpu()) c10::getDeviceAllocator(device_.type())->emptyCache();
  }
  report.micro_batch = options_.micro_batch;
  report.num_micro_batches = static_cast<int64_t>(loss_sums.size());
  return loss_sums;
}

bool Engine::accumulate(const Window& window, double factor, std::vector<at::Tensor>& loss_sums) {
  if (!task_.module->is_training()) task_.module->train();
  seed_generators(mix32(options_.seed, counters_.windows, world_.rank()), device_);
  // d(loss_sum * c)/d(loss_sum) is c: handing c to backward saves a product forward and one backward. The
  // bits are those of loss_sum * (scale / W) in PyTorch.
  seed_grad_.fill_(factor);
  try {
    loss_sums = run_micro_batches(window);
    return true;
  } catch (const std::exception& error) {
    give_up();
    if (!is_out_of_memory(error)) throw;
  } catch (...) {
    give_up();
    throw;
  }
  return false;
}

std::vector<at::Tensor> Engine::run_micro_batches(const Window& window) {
  Batch batch = window.batch.to(device_);
  const bool prepare_at_once =
      task_.prepare && batch.size() > 0 &&
      batch.inputs.numel() * static_cast<int64_t>(sizeof(float)) <= kPrepareAtOnceBytes;
  if (prepare_at_once) batch = task_.prepare(batch);
  std::vector<at::Tensor> loss_sums;
  for (const Range range : micro_batches(batch.size(), options_.micro_batch, has_batch_norm_)) {
    const Batch piece = batch.narrow(range.begin, range.size());
    loss_sums.push_back(forward_backward(prepare_at_once ? piece : prepared(task_, piece)));
  }
  return loss_sums;
}

at::Tensor Engine::forward_backward(const Batch& batch) {
  at::Tensor loss_sum;
  {
    const AutocastGuard autocast(device_.type(), options_.precision);
    loss_sum = task_.loss_sum(task_.forward(batch), batch);
  }
  TORCH_CHECK(loss_sum.dim() == 0 && loss_sum.scalar_type() == at::kFloat,
              "Task::loss_sum must give an fp32 scalar");
  torch::autograd::backward({loss_sum}, {seed_grad_});
  return loss_sum.detach();
}

void Engine::optimize(const std::vector<at::Tensor>& loss_sums, StepReport& report) {
  std::vector<at::Tensor> grads = gradients(optimizer_->parameters());
  found_inf_.zero_();
  scaler_.unscale_(grads, found_inf_);
  global_norm(grads, norm_, found_inf_);
  if (spikes_.enabled()) {
    read_back(loss_sums, report);
    is_whole_ = false;
    if (!report.skipped) report.spike = spikes_.observe(report.loss, report.grad_norm);
    if (!report.spike.empty()) {  // finite, so the scale has no part in it
      report.skipped = true;
      return;
    }
  }
  clip_by_norm_(grads, norm_, options_.clip_grad);
  is_whole_ = false;
  optimizer_->step(report.lr, found_inf_);
  scaler_.update(found_inf_);
  if (spikes_.enabled())
    host_scale_ = scaler_.scale();  // a second wait for the device, under fp16
  else
    read_back(loss_sums, report);
}

void Engine::read_back(const std::vector<at::Tensor>& loss_sums, StepReport& report) {
  double loss_sum = 0;
  if (device_.is_cpu()) {
    for (const at::Tensor& loss : loss_sums) loss_sum += loss.item<double>();
    report.grad_norm = norm_.item<double>();
    report.skipped = found_inf_.item<float>() != 0;
    host_scale_ = scaler_.scale();
    loss_sum = sum_over_ranks(loss_sum);
  } else {
    at::Tensor loss = (loss_sums.empty() ? at::zeros_like(norm_) : at::stack(loss_sums)).sum(at::kDouble);
    world_.all_reduce_sum(loss);
    const at::Tensor scale = scaler_.enabled() ? scaler_.scale_tensor() : at::ones_like(norm_);
    const at::Tensor numbers =
        at::stack({loss, norm_.to(at::kDouble), found_inf_.to(at::kDouble), scale.to(at::kDouble)}).cpu();
    const double* number = numbers.const_data_ptr<double>();
    loss_sum = number[0];
    report.grad_norm = number[1];
    report.skipped = number[2] != 0;
    host_scale_ = number[3];
  }
  report.loss = loss_sum / report.divisor;
}

void Engine::note_update() {
  ++counters_.updates;
  counters_.skips_in_a_row = 0;
  first_non_finite_.clear();
  counters_.updates == 1 ? ema_.reset() : ema_.update();
}

void Engine::note_skip(const Window& window, StepReport& report) {
  buffers_.restore();
  ++counters_.skipped_total;
  ++counters_.skips_in_a_row;
  report.diverged = counters_.skips_in_a_row >= options_.max_skips_in_a_row;
  if (!report.spike.empty()) return;
  // A row of skips may begin with spikes, which are not looked into.
  const bool first =
      counters_.skips_in_a_row == 1 || (first_non_finite_.empty() && (spikes_.enabled() || report.diverged));
  if (first) {
    Examination seen = examine_as(window, report.loss_scale, report.divisor);
    first_non_finite_ = std::move(seen.first_non_finite);
    report.modules = std::move(seen.modules);
    if (first_non_finite_.empty()) first_non_finite_ = kNotFiniteInTheSum;
  }
  if (first || report.diverged) report.first_non_finite = first_non_finite_;
}

Examination Engine::examine(const Window& window) {
  std::optional<ModeGuard> training;
  if (!task_.module->is_training()) training.emplace(*task_.module, true);
  buffers_.save();
  return examine_as(window, host_scale_, total_weight(window));
}

Examination Engine::examine_as(const Window& window, double loss_scale, double divisor) {
  zero_grad();
  NamedTensors parameters = optimizer_->parameters();
  parameters.insert(parameters.end(), frozen_.begin(), frozen_.end());
  const NonFiniteFinder finder(parameters);
  std::vector<at::Tensor> loss_sums;
  if (!accumulate(window, loss_scale / divisor, loss_sums))
    return {.first_non_finite = "not known: there was no memory for a second look"};
  Examination seen{.first_non_finite = finder.first(), .modules = finder.modules(loss_scale)};
  give_up();
  return seen;
}

void Engine::give_up() {
  zero_grad();
  buffers_.restore();
}

void Engine::zero_grad() {
  for (const auto& [name, parameter] : optimizer_->parameters()) parameter.mutable_grad().reset();
}

}  // namespace gradstep

// Forward under autocast, backward outside, one micro-batch after the other.
#include "step/accumulator.h"

#include <torch/torch.h>

#include "gradstep/base/error.h"
#include "step/micro_batches.h"

namespace gradstep {
namespace {

// Inputs up to this size are prepared once a window: more would fall out of the processor's cache before it
// is used.
constexpr int64_t kPrepareAtOnceBytes = int64_t{1} << 20;

}  // namespace

void check_loss(const at::Tensor& loss) {
  const char* problem = !loss.defined()                    ? "nothing"
                        : loss.dim() != 0                  ? "a tensor with dimensions"
                        : loss.scalar_type() != at::kFloat ? "another type than fp32"
                        : !loss.requires_grad()            ? "a number without gradient"
                                                           : nullptr;
  if (problem != nullptr)
    throw ConfigError(std::string("Task::loss_sum gave ") + problem +
                      "; it must give an fp32 scalar with gradient");
}

Accumulator::Accumulator(const Task& task, Precision precision, at::Device device)
    : task_(task),
      precision_(precision),
      device_(device),
      has_batch_norm_(has_batch_norm(*task.module)),
      seed_grad_(at::ones({}, at::TensorOptions(at::kFloat).device(device))) {}

std::optional<std::vector<at::Tensor>> Accumulator::run(const Batch& stored, int64_t micro_batch,
                                                        double factor, GradSync* sync,
                                                        const GiveUp& give_up) {
  // d(loss_sum * c)/d(loss_sum) is c: handing c to backward saves a product forward and one backward. The
  // bits are those of loss_sum * (scale / W) in PyTorch.
  check_rows(stored, stored.size());
  seed_grad_.fill_(factor);
  Batch batch = stored.to(device_);
  const bool prepare_at_once =
      task_.prepare && batch.size() > 0 &&
      batch.inputs.numel() * static_cast<int64_t>(sizeof(float)) <= kPrepareAtOnceBytes;
  if (prepare_at_once) batch = prepared(task_, batch);
  const std::vector<Range> ranges = micro_batches(batch.size(), micro_batch, has_batch_norm_);
  if (ranges.empty() && sync != nullptr) sync->arm({});
  std::vector<at::Tensor> loss_sums;
  const auto num_ranges = static_cast<int64_t>(ranges.size());
  for (const Range& range : ranges) {
    const auto done = static_cast<int64_t>(loss_sums.size());
    if (give_up && give_up(done, num_ranges)) return std::nullopt;
    const bool is_last = &range == &ranges.back();
    const Batch piece = batch.narrow(range.begin, range.size());
    loss_sums.push_back(
        forward_backward(prepare_at_once ? piece : prepared(task_, piece), is_last ? sync : nullptr));
  }
  return loss_sums;
}

at::Tensor Accumulator::forward_backward(const Batch& batch, GradSync* sync) {
  at::Tensor loss_sum;
  {
    const AutocastGuard autocast(device_.type(), precision_);
    loss_sum = task_.loss_sum(task_.forward(batch), batch);
  }
  check_loss(loss_sum);
  if (sync != nullptr) sync->arm(loss_sum);
  torch::autograd::backward({loss_sum}, {seed_grad_});
  return loss_sum.detach();
}

}  // namespace gradstep

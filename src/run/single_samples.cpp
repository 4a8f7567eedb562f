// Tried rather than looked up: a layer in evaluation mode or a picture of many pixels takes one sample, and
// torch::batch_norm() in a forward is no layer.
#include "run/single_samples.h"

#include <ATen/record_function.h>
#include <torch/torch.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include "base/error_text.h"
#include "base/utf8.h"
#include "gradstep/base/error.h"
#include "report/format.h"
#include "step/micro_batches.h"
#include "step/trial_guard.h"

namespace gradstep {
namespace {

thread_local bool single_value_seen = false;

// A batch norm in training mode over one value per channel. torch::batch_norm() gives a variance that is no
// number without a word; torch::nn::BatchNorm1d throws.
std::unique_ptr<at::ObserverContext> look_at(const at::RecordFunction& op) {
  if (std::string_view(op.name()) != "aten::batch_norm") return nullptr;
  const auto inputs = op.inputs();
  constexpr size_t kInput = 0;
  constexpr size_t kTraining = 5;
  if (inputs.size() <= kTraining || !inputs[kInput].isTensor() || !inputs[kTraining].toBool()) return nullptr;
  const at::Tensor& input = inputs[kInput].toTensor();
  if (input.dim() >= 2 && input.numel() == input.size(1)) single_value_seen = true;
  return nullptr;
}

class SingleValueWatch {
 public:
  SingleValueWatch()
      : handle_(at::addThreadLocalCallback(
            at::RecordFunctionCallback(look_at).needsInputs(true).scopes({at::RecordScope::FUNCTION}))) {
    single_value_seen = false;
  }
  ~SingleValueWatch() { at::removeCallback(handle_); }
  SingleValueWatch(const SingleValueWatch&) = delete;
  SingleValueWatch& operator=(const SingleValueWatch&) = delete;

 private:
  at::CallbackHandle handle_;
};

// What torch says of it; empty if the first `size` samples pass.
std::string trouble_with(const Job& job, int64_t size) {
  const c10::Device device = job.task.module->parameters().front().device();
  TrialGuard guard(job.task, device);
  std::string trouble;
  try {
    const at::NoGradGuard no_grad;
    const Batch batch = job.data.train->gather(at::arange(size), {.seed = job.engine.seed, .training = true});
    const SingleValueWatch watch;
    (void)job.task.forward(prepared(job.task, batch.to(device)));
    if (single_value_seen) trouble = "batch norm over one value per channel";
  } catch (const std::exception& error) {
    trouble = one_line(error);
  }
  guard.undo();
  return trouble;
}

// The first window whose share on this rank has a piece of one sample, in words; empty if there is none.
std::string first_single(const Job& job, const Sampler& sampler, const World& world) {
  const bool joins = has_batch_norm(*job.task.module);
  const int64_t last = sampler.windows_per_epoch() - 1;
  for (const int64_t index : {int64_t{0}, last}) {
    const int64_t window = sampler.window_range(index).size();
    const int64_t share = array_split(window, world.size(), world.rank()).size();
    const std::vector<Range> pieces =
        micro_batches(share, micro_batch_of(job.task, job.engine.micro_batch, share), joins);
    if (std::ranges::none_of(pieces, [](const Range& piece) { return piece.size() == 1; })) continue;
    std::string text = index == last ? "the last window of an epoch has " : "a window has ";
    text += thousands_text(window) + (window == 1 ? " sample (" : " samples (") +
            thousands_text(sampler.num_samples()) + " samples, windows of " +
            thousands_text(sampler.global_batch());
    if (world.size() > 1) text += " over " + std::to_string(world.size()) + " ranks";
    if (share > 1) text += ", micro-batches of " + thousands_text(job.engine.micro_batch);
    return text + ")";
  }
  return {};
}

}  // namespace

void require_single_samples_pass(const Job& job, const Sampler& sampler, const World& world) {
  const std::string where = first_single(job, sampler, world);
  if (where.empty() || job.data.train->size() < 2) return;
  const std::string trouble = trouble_with(job, 1);
  if (trouble.empty() || !trouble_with(job, 2).empty()) return;
  throw ConfigError("the model cannot train on one sample alone (" + shortened(trouble) + "), and " + where +
                    "; choose another `batch_size` or `global_batch_size`");
}

}  // namespace gradstep

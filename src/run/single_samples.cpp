// Tried rather than looked up: a layer in evaluation mode or a picture of many pixels takes one sample, and
// torch::batch_norm() in a forward is no layer.
#include "run/single_samples.h"

#include <torch/torch.h>

#include <algorithm>

#include "base/error_text.h"
#include "base/utf8.h"
#include "gradstep/base/error.h"
#include "report/format.h"
#include "step/micro_batches.h"
#include "step/trial_guard.h"

namespace gradstep {
namespace {

// What torch says of it; empty if the first `size` samples pass.
std::string trouble_with(const Job& job, int64_t size) {
  const c10::Device device = job.task.module->parameters().front().device();
  TrialGuard guard(job.task, device);
  std::string trouble;
  try {
    const at::NoGradGuard no_grad;
    const Batch batch = job.data.train->gather(at::arange(size), {.seed = job.engine.seed, .training = true});
    (void)job.task.forward(prepared(job.task, batch.to(device)));
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

// The passes of a window over all ranks, and what ends them early: memory, a stop, an error.
#include <c10/core/CachingDeviceAllocator.h>
#include <torch/torch.h>

#include <algorithm>
#include <exception>
#include <limits>

#include "base/out_of_memory.h"
#include "dist/over_ranks.h"
#include "dist/together.h"
#include "gradstep/base/error.h"
#include "step/engine_impl.h"
#include "step/micro_batches.h"
#include "step/window_seed.h"

namespace gradstep {
namespace {

void require_dense_gradients(const NamedTensors& parameters) {
  for (const auto& [name, parameter] : parameters) {
    const at::Tensor& grad = parameter.grad();
    if (!grad.defined() || grad.layout() == at::kStrided) continue;
    throw ConfigError("parameter " + name +
                      " gets sparse gradients, which the engine does not take; make them dense, such as by "
                      "EmbeddingOptions::sparse(false)");
  }
}

}  // namespace

int64_t Engine::Impl::micro_batch_for(const Window& window) const {
  return micro_batch_of(task, micro_batch, window.batch.size());
}

// Accumulates and reduces. If memory runs out on any rank, all of them begin again in smaller pieces.
Passes Engine::Impl::make_gradients(const Window& window, const GiveUp& give_up, StepReport& report) {
  const double factor = report.loss_scale / report.divisor;
  for (;;) {
    Passes passes = accumulate(window, factor, grad_sync.get(), give_up);
    const SyncStatus worst = reduce(passes);
    if (worst == SyncStatus::kOutOfMemory) {
      shrink_micro_batch(window, passes, report);
      continue;
    }
    passes.status = worst;
    return passes;
  }
}

// Gradients are dropped and the task is restored. The next step makes the same window, bit for bit.
StepReport Engine::Impl::give_up_on(const Window& window, StepReport report, int64_t micro_batch_before) {
  micro_batch = micro_batch_before;
  report.outcome = StepOutcome::kGivenUp;
  report.micro_batch = micro_batch_for(window);
  report.loss = report.grad_norm = std::numeric_limits<double>::quiet_NaN();
  report.window = counters.windows;
  report.update = counters.updates;
  report.skipped_total = counters.skipped_total;
  return report;
}

Passes Engine::Impl::accumulate(const Window& window, double factor, GradSync* sync, const GiveUp& give_up) {
  if (!task.module->is_training()) task.module->train();
  GeneratorsGuard generators(device);
  generators.seed(mix32(options.seed, counters.windows, world.rank()));
  if (sync != nullptr) sync->begin(counters.windows + 1);
  Passes passes;
  try {
    require_same_parameters(*task.module, parameters);  // here, where other ranks hear of a failure
    auto loss_sums = accumulator.run(window.batch, micro_batch_for(window), factor, sync, give_up);
    if (loss_sums) {
      passes.loss_sums = *std::move(loss_sums);
      require_dense_gradients(optimizer.parameters());
      return passes;
    }
    passes.status = SyncStatus::kGivenUp;
  } catch (const std::exception& error) {
    passes.status = is_out_of_memory(error) ? SyncStatus::kOutOfMemory : SyncStatus::kFailed;
    if (passes.status == SyncStatus::kFailed) passes.error = std::current_exception();
  } catch (...) {
    passes.status = SyncStatus::kFailed;
    passes.error = std::current_exception();
  }
  // By now the graph of the failed passes is gone, and its memory with it.
  try {
    drop();
  } catch (...) {  // of Task::restore_user_state
    passes.status = SyncStatus::kFailed;
    if (!passes.error) passes.error = std::current_exception();
  }
  return passes;
}

// The worst status of all ranks. Unless it is kComplete no rank has gradients then.
SyncStatus Engine::Impl::reduce(Passes& passes) {
  const SyncStatus worst = grad_sync->finish(passes.status);
  if (worst == SyncStatus::kFailed) throw_together(passes.error, device, world);
  if (worst != SyncStatus::kComplete) {
    zero_grad();
    restore_task();
  }
  return worst;
}

void Engine::Impl::shrink_micro_batch(const Window& window, const Passes& passes, StepReport& report) {
  // The most that a rank without memory took at once.
  const bool is_short = passes.status == SyncStatus::kOutOfMemory;
  const int64_t used =
      max_over_ranks(is_short ? std::min(micro_batch_for(window), window.batch.size()) : 0, device, world);
  const int64_t half = std::max(used / 2, accumulator.smallest_micro_batch());
  if (half >= used || !task.divisible) {
    const std::string what = task.divisible ? "a micro-batch of " + std::to_string(used)
                                            : "a window of " + std::to_string(used) +
                                                  " samples, which its task "
                                                  "does not allow to be cut";
    throw Error(ExitCode::kOutOfMemory,
                "out of memory in window " + std::to_string(counters.windows + 1) + " with " + what +
                    ": take a smaller model or a lower `precision`, or free some memory");
  }
  micro_batch = half;
  ++report.num_out_of_memory;
  if (!device.is_cpu()) c10::getDeviceAllocator(device.type())->emptyCache();
}

}  // namespace gradstep

// Measured once, with the largest micro-batch, before the run.
#include "app/settle_speed.h"

#include <torch/torch.h>

#include <exception>
#include <functional>
#include <optional>

#include "base/machine.h"
#include "base/number_text.h"
#include "base/out_of_memory.h"
#include "gradstep/base/error.h"
#include "step/threads_probe.h"

namespace gradstep {
namespace {

// The number that a run began with, since another one changes bits; nothing where there are fewer cores now.
std::optional<int64_t> threads_before(const TrainState* before) {
  const std::optional<int64_t> threads = recorded_integer(before, "threads");
  return threads && *threads >= 1 && *threads <= num_usable_cores() ? threads : std::nullopt;
}

void use_threads(int64_t threads) { at::set_num_threads(static_cast<int>(threads)); }

}  // namespace

std::optional<int64_t> recorded_integer(const TrainState* before, const std::string& key) {
  if (before == nullptr) return std::nullopt;
  const auto found = before->settings.find(key);
  return found == before->settings.end() ? std::nullopt : parse_integer(found->second);
}

SettledSpeed settle_speed(const RunConfig& config, const Task& task, const Dataset& train,
                          int64_t micro_batch, const TrainState* before, const StopToken* stop) {
  SettledSpeed settled;
  std::optional<Precision> precision;
  std::optional<Matmul> matmul;
  if (before != nullptr) {
    precision = before->info.precision;
    matmul = before->info.matmul;
  }
  if (config.precision != "auto") precision = parse_precision(config.precision);
  if (config.matmul != "auto") matmul = parse_matmul(config.matmul);
  const bool is_cpu = task.module->parameters().front().device().is_cpu();
  const bool threads_are_open = config.threads == 0 && is_cpu && !threads_of_environment();
  if (const std::optional<int64_t> threads = threads_before(before); threads_are_open && threads) {
    settled.threads_reason = "as before";
    use_threads(*threads);
  } else {
    settled.measured_threads = threads_are_open && !config.deterministic;
  }
  // What a stopwatch chooses may be another thing in the next run.
  const bool was_open = !precision || !matmul;
  if (config.deterministic) {
    precision = precision.value_or(Precision::kFp32);
    matmul = matmul.value_or(Matmul::kTorch);
  }
  const auto check_stop = [&] {
    if (stop == nullptr || !stop->requested()) return;
    throw Error(stop->reason(), std::string("stopped by ") + stop_name(stop->reason()) +
                                    " before the first window; nothing was trained");
  };
  // With the largest micro-batch that fits into memory; the engine will halve down to it, too.
  const int64_t most_threads = at::get_num_threads();
  for (;; micro_batch /= 2) {
    try {
      use_threads(most_threads);
      const Batch batch = train.gather(at::arange(micro_batch), {.seed = config.seed, .training = true});
      if (settled.measured_threads) {
        const ThreadsChoice threads = choose_threads(task, batch, precision.value_or(Precision::kFp32),
                                                     matmul.value_or(Matmul::kTorch), check_stop);
        use_threads(threads.threads);
        settled.threads_reason = threads.reason;
      }
      settled.precision = choose_precision(task, batch, precision, matmul, check_stop);
      break;
    } catch (const std::exception& error) {
      if (micro_batch == 1 || !is_out_of_memory(error)) throw;
    }
  }
  use_matmul(settled.precision.matmul);
  if (config.deterministic && was_open)
    settled.precision.reason = "not measured, since the run is deterministic";
  return settled;
}

}  // namespace gradstep

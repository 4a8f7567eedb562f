// The best of a few runs; the order of preference breaks near ties, so that noise does not cost bits.
#include "step/precision_probe.h"

#include <torch/torch.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "gradstep/base/error.h"
#include "step/trial_guard.h"

namespace gradstep {
namespace {

constexpr int kMinRounds = 4;
constexpr int kMaxRounds = 8;
constexpr double kSecondsAWay = 0.1;  // no further round after that,
constexpr double kMaxSeconds = 5;     // and not even the fewest after that
constexpr double kMargin = 0.9;       // a less exact way must take at most this part of the time

void wait_for(at::Device device) {
  if (device.is_cuda()) torch::cuda::synchronize(device.index());
}

std::string name_of(const ProbeResult& result) {
  const bool fp32 = result.precision == Precision::kFp32;
  return to_string(result.precision) + (fp32 ? " (" + to_string(result.matmul) + ")" : "");
}

std::vector<Precision> precisions_to_try(std::optional<Precision> asked, at::Device device) {
  if (asked) return {*asked};
  // fp16 on a CPU is emulated nearly everywhere, and probing it there may take seconds.
  if (device.is_cpu()) return {Precision::kFp32, Precision::kBf16};
  return {Precision::kFp32, Precision::kFp16, Precision::kBf16};
}

std::vector<Matmul> matmuls_to_try(std::optional<Matmul> asked, Precision precision, at::Device device) {
  if (asked) return {*asked};
  if (precision != Precision::kFp32 || !device.is_cpu() || !has_onednn()) return {Matmul::kTorch};
  return {Matmul::kTorch, Matmul::kOneDnn};
}

// They are in the order of preference: a later one is taken only where it wins clearly.
const ProbeResult& best_of(const std::vector<ProbeResult>& measured) {
  const ProbeResult* best = &measured.front();
  for (const ProbeResult& result : measured) {
    if (wins_clearly(result, *best)) best = &result;
  }
  return *best;
}

void warn_of_slow_fp16(const Task& task, const Batch& micro, const std::function<void()>& check_stop,
                       PrecisionChoice& choice) {
  const std::vector<ProbeResult> measured =
      probe(task, micro, {{Precision::kFp32, choice.matmul}, {Precision::kFp16, choice.matmul}}, check_stop);
  const double fp32 = measured[0].seconds;
  const double fp16 = measured[1].seconds;
  if (fp16 < fp32 * 1.5) return;
  char ratio[32];
  std::snprintf(ratio, sizeof ratio, "%.1f", fp16 / fp32);
  choice.warning = "this processor emulates fp16: " + std::string(ratio) +
                   " times the time of fp32 for a micro-batch; use `precision` auto";
}

// Whether `rounds` rounds, the first one not counted, will do.
bool enough(int rounds, double seconds, size_t num_ways) {
  if (rounds < 2) return false;
  return seconds > kMaxSeconds ||
         (rounds > kMinRounds && seconds > kSecondsAWay * static_cast<double>(num_ways));
}

}  // namespace

std::vector<ProbeResult> probe(const Task& task, const Batch& micro, std::vector<ProbeResult> ways,
                               const std::function<void()>& check_stop) {
  const at::Device device = task.module->parameters().front().device();
  TrialGuard guard(task, device);
  const Batch batch = prepared(task, micro.to(device));
  const double begin = steady_seconds();
  // The ways take turns, so that a busy moment of the machine falls on all of them, and the fastest run
  // counts: the one that nothing else disturbed.
  for (int round = 0; round <= kMaxRounds && !enough(round, steady_seconds() - begin, ways.size()); ++round) {
    for (ProbeResult& way : ways) {
      if (check_stop) check_stop();
      use_matmul(way.matmul);
      const double start = steady_seconds();
      forward_backward(task, batch, way.precision);
      wait_for(device);
      const double seconds = steady_seconds() - start;
      // The first round builds kernels and caches.
      if (round > 0) way.rounds.push_back(seconds);
    }
  }
  guard.undo();
  for (ProbeResult& way : ways) way.seconds = std::ranges::min(way.rounds);
  return ways;
}

bool wins_clearly(const ProbeResult& way, const ProbeResult& more_exact) {
  const auto faster = [](double seconds, double other) { return seconds < other * kMargin; };
  size_t lost = 0;
  for (size_t i = 0; i < way.rounds.size(); ++i) lost += !faster(way.rounds[i], more_exact.rounds[i]);
  return faster(way.seconds, more_exact.seconds) && lost <= way.rounds.size() / 8;
}

PrecisionChoice choose_precision(const Task& task, const Batch& micro, std::optional<Precision> precision,
                                 std::optional<Matmul> matmul, const std::function<void()>& check_stop) {
  const at::Device device = task.module->parameters().front().device();
  std::vector<ProbeResult> ways;
  for (const Precision p : precisions_to_try(precision, device)) {
    for (const Matmul m : matmuls_to_try(matmul, p, device)) ways.push_back({p, m});
  }
  PrecisionChoice choice{ways.front().precision, ways.front().matmul, "as asked", "", {}};
  if (ways.size() > 1) {
    choice.measured = probe(task, micro, ways, check_stop);
    const ProbeResult& best = best_of(choice.measured);  // the more exact ones are preferred
    choice.precision = best.precision;
    choice.matmul = best.matmul;
    std::vector<std::pair<std::string, double>> times;
    for (const ProbeResult& way : choice.measured) times.emplace_back(name_of(way), way.seconds);
    choice.reason = times_text(times);
  }
  if (precision == Precision::kFp16 && device.is_cpu()) warn_of_slow_fp16(task, micro, check_stop, choice);
  return choice;
}

}  // namespace gradstep

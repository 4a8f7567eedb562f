// The best of a few runs; the order of preference breaks near ties, so that noise does not cost bits.
#include "step/precision_probe.h"

#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "gradstep/base/error.h"
#include "model/mode_guard.h"
#include "step/accumulator.h"
#include "step/task_snapshot.h"

namespace gradstep {
namespace {

constexpr int kMinRounds = 4;
constexpr int kMaxRounds = 8;
constexpr double kSecondsAWay = 0.1;  // no further round after that,
constexpr double kMaxSeconds = 5;     // and not even the fewest after that
constexpr double kMargin = 0.9;       // a less exact way must take at most this part of the time

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void wait_for(at::Device device) {
  if (device.is_cuda()) torch::cuda::synchronize(device.index());
}

// Puts a device's generator back to where it was.
class GeneratorGuard {
 public:
  explicit GeneratorGuard(at::Device device)
      : generator_(at::globalContext().defaultGenerator(device)), state_(generator_.get_state()) {}
  ~GeneratorGuard() { generator_.set_state(state_); }
  GeneratorGuard(const GeneratorGuard&) = delete;
  GeneratorGuard& operator=(const GeneratorGuard&) = delete;

 private:
  at::Generator generator_;
  at::Tensor state_;
};

// Undoes what a probe does to the module and to the process.
class ProbeGuard {
 public:
  ProbeGuard(const Task& task, at::Device device)
      : task_(task),
        snapshot_(task),
        mode_(*task.module, /*training=*/true),
        host_generator_(at::kCPU),
        device_generator_(device),
        matmul_(current_matmul()) {
    snapshot_.save();
  }
  ~ProbeGuard() {
    if (undone_) return;
    try {
      undo();
    } catch (...) {  // the error that ended the probe is the one that counts
    }
  }
  // Throws what Task::restore_user_state throws. The generators follow in the destructor.
  void undo() {
    undone_ = true;
    task_.module->zero_grad(/*set_to_none=*/true);
    use_matmul(matmul_);
    snapshot_.restore();
  }
  ProbeGuard(const ProbeGuard&) = delete;
  ProbeGuard& operator=(const ProbeGuard&) = delete;

 private:
  const Task& task_;
  TaskSnapshot snapshot_;
  bool undone_ = false;
  ModeGuard mode_;
  GeneratorGuard host_generator_;
  GeneratorGuard device_generator_;  // the host's once more on a CPU
  Matmul matmul_;
};

std::string name_of(const ProbeResult& result) {
  const bool fp32 = result.precision == Precision::kFp32;
  return to_string(result.precision) + (fp32 ? " (" + to_string(result.matmul) + ")" : "");
}

std::string milliseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f ms", seconds * 1e3);
  return text;
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

std::string reason_for(const std::vector<ProbeResult>& measured) {
  std::string text = "measured a micro-batch:";
  for (const ProbeResult& result : measured) {
    text +=
        (&result == &measured.front() ? " " : ", ") + name_of(result) + " " + milliseconds(result.seconds);
  }
  return text;
}

void warn_of_slow_fp16(const Task& task, const Batch& micro, PrecisionChoice& choice) {
  const std::vector<ProbeResult> measured =
      probe(task, micro, {{Precision::kFp32, choice.matmul}, {Precision::kFp16, choice.matmul}});
  const double fp32 = measured[0].seconds;
  const double fp16 = measured[1].seconds;
  if (fp16 < fp32 * 1.5) return;
  char ratio[32];
  std::snprintf(ratio, sizeof ratio, "%.1f", fp16 / fp32);
  choice.warning = "this processor emulates fp16: " + std::string(ratio) +
                   " times the time of fp32 for a micro-batch; use `precision` auto";
}

void forward_backward(const Task& task, const Batch& batch, at::Device device, Precision precision) {
  at::Tensor loss;
  {
    const AutocastGuard autocast(device.type(), precision);
    loss = task.loss_sum(task.forward(batch), batch);
  }
  if (!loss.requires_grad()) return;  // the engine will refuse a module that is frozen altogether
  check_loss(loss);
  loss.backward();
}

// Whether `rounds` rounds, the first one not counted, will do.
bool enough(int rounds, double seconds, size_t num_ways) {
  if (rounds < 2) return false;
  return seconds > kMaxSeconds ||
         (rounds > kMinRounds && seconds > kSecondsAWay * static_cast<double>(num_ways));
}

}  // namespace

std::vector<ProbeResult> probe(const Task& task, const Batch& micro, std::vector<ProbeResult> ways) {
  const at::Device device = task.module->parameters().front().device();
  ProbeGuard guard(task, device);
  const Batch batch = prepared(task, micro.to(device));
  const auto begin = Clock::now();
  // The ways take turns, so that a busy moment of the machine falls on all of them, and the fastest run
  // counts: the one that nothing else disturbed.
  for (int round = 0; round <= kMaxRounds && !enough(round, seconds_since(begin), ways.size()); ++round) {
    for (ProbeResult& way : ways) {
      use_matmul(way.matmul);
      const auto start = Clock::now();
      forward_backward(task, batch, device, way.precision);
      wait_for(device);
      const double seconds = seconds_since(start);
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
                                 std::optional<Matmul> matmul) {
  const at::Device device = task.module->parameters().front().device();
  std::vector<ProbeResult> ways;
  for (const Precision p : precisions_to_try(precision, device)) {
    for (const Matmul m : matmuls_to_try(matmul, p, device)) ways.push_back({p, m});
  }
  PrecisionChoice choice{ways.front().precision, ways.front().matmul, "as asked", "", {}};
  if (ways.size() > 1) {
    choice.measured = probe(task, micro, ways);
    // Ways are in order of exactness: a later one is taken only when it wins clearly.
    const ProbeResult* best = &choice.measured.front();
    for (const ProbeResult& result : choice.measured) {
      if (wins_clearly(result, *best)) best = &result;
    }
    choice.precision = best->precision;
    choice.matmul = best->matmul;
    choice.reason = reason_for(choice.measured);
  }
  if (precision == Precision::kFp16 && device.is_cpu()) warn_of_slow_fp16(task, micro, choice);
  return choice;
}

}  // namespace gradstep

// The probe of precision "auto": what does this device run fastest with this very model?
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gradstep/data/dataset.h"
#include "gradstep/model/task.h"
#include "gradstep/step/precision.h"

namespace gradstep {

// A way to compute the forward and backward of a micro-batch, and how long it took.
struct ProbeResult {
  Precision precision = Precision::kFp32;
  Matmul matmul = Matmul::kTorch;
  double seconds = 0;            // fastest forward and backward of a few
  std::vector<double> rounds{};  // each of the few
};

struct PrecisionChoice {
  Precision precision = Precision::kFp32;
  Matmul matmul = Matmul::kTorch;
  std::string reason;  // one line for the start summary: what was measured, or "as asked"
  std::string
      warning;  // such as "fp16 is emulated on this processor: 34 times slower than fp32"; mostly empty
  std::vector<ProbeResult> measured;  // empty when nothing was left to choose
};

// Fills `seconds` of each way: its fastest forward and backward of `micro` (on any device) with the module in
// training mode as it is. The ways take turns for a few rounds, 0.1 s a way at most unless a run alone takes
// longer. Gradients are empty afterwards; buffers, modes and generators are as before; use_matmul is left as
// it was. check_stop, unless empty, is called before each of them; what it
// throws ends the probe.
[[nodiscard]] std::vector<ProbeResult> probe(const Task& task, const Batch& micro,
                                             std::vector<ProbeResult> ways,
                                             const std::function<void()>& check_stop = {});

// Whether a way saves a tenth of the time of a more exact one that took turns with it: at its fastest, and in
// all rounds but one in eight. On a busy machine single times tell little, and the more exact way stays.
[[nodiscard]] bool wins_clearly(const ProbeResult& way, const ProbeResult& more_exact);

// What is left open is measured and the fastest taken; a lower precision, or rounding other than libtorch's,
// must win clearly. fp16 asked for is measured against fp32 on a CPU, for the warning.
[[nodiscard]] PrecisionChoice choose_precision(const Task& task, const Batch& micro,
                                               std::optional<Precision> precision,
                                               std::optional<Matmul> matmul,
                                               const std::function<void()>& check_stop = {});

}  // namespace gradstep

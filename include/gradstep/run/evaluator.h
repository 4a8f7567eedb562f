// evaluate: loss and accuracies of a classifier over a data set.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "gradstep/data/dataset.h"
#include "gradstep/data/sampler.h"
#include "gradstep/dist/world.h"
#include "gradstep/model/task.h"
#include "gradstep/step/precision.h"

namespace gradstep {

struct EvaluateOptions {
  Precision precision = Precision::kFp32;  // autocast as in training
  int64_t batch_size = 0;                  // samples; 0: as many as make good use of the device
  // Called between batches; true ends the evaluation early. Empty: never.
  std::function<bool()> should_stop{};
  // Called with each batch's first sample number, scores (n, classes) fp32 and targets (n), on this rank.
  // Empty: not.
  std::function<void(int64_t first, const at::Tensor& scores, const at::Tensor& targets)> on_batch{};
};

// Over all ranks. Sums are kept in fp64 and divided by the number of real samples.
struct EvalResult {
  double loss = 0;
  double accuracy = 0;
  double top5 = 0;
  int64_t samples = 0;
  std::vector<int64_t> class_samples;  // (classes)
  std::vector<int64_t> class_hits;     // (classes)
  bool complete = true;                // false: should_stop ended it
};

// Each rank takes a contiguous part, and the buffers (batch norm statistics) of rank 0, which it keeps. The
// module is in evaluation mode meanwhile, and each part of it in its former mode afterwards; gradients,
// random numbers and the training's autocast cache are not touched. The loss has no label smoothing. Where
// memory runs out for a batch it is halved. Waits for the device.
[[nodiscard]] EvalResult evaluate(const Task& task, const Dataset& dataset, World& world,
                                  const EvaluateOptions& options = {});

}  // namespace gradstep

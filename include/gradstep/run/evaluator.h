// evaluate: the loss and the metrics of a task over a data set.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gradstep/data/dataset.h"
#include "gradstep/dist/world.h"
#include "gradstep/model/task.h"
#include "gradstep/report/rows.h"
#include "gradstep/step/precision.h"

namespace gradstep {

struct EvaluateOptions {
  Precision precision = Precision::kFp32;  ///< autocast as in training
  int64_t batch_size = 0;                  ///< samples; 0: as many as make good use of the device
  bool tables = true;                      ///< false: leave out metrics with a table
  /// Called between batches; true ends the evaluation early. Empty: never.
  std::function<bool()> should_stop{};
  /// Called with each batch's first sample number, outputs (fp32) and the batch as forward took it, on this
  /// rank. Empty: not.
  std::function<void(int64_t first, const at::Tensor& outputs, const Batch& batch)> on_batch{};
};

/// A metric by row, such as hits by class.
struct MetricTable {
  std::string name;     ///< of the metric: "accuracy"
  std::string rows_of;  ///< "class"
  std::vector<double> sums;
  std::vector<double> weights;
  std::vector<double> values;
};

/// Over all ranks. Sums and weights are kept in fp64.
struct EvalResult {
  double loss = 0;  ///< the task's loss sum / its weight
  int64_t samples = 0;
  std::vector<MetricValue> metrics{};  ///< in the order of the task
  std::vector<MetricTable> tables{};
  bool complete = true;  ///< false: should_stop ended it

  /// Of the metric with this name. Throws std::out_of_range.
  [[nodiscard]] double at(const std::string& name) const;
};

/// Each rank takes a contiguous part, and the buffers (batch norm statistics) of rank 0, which it keeps. The
/// module is in evaluation mode meanwhile, and each part of it in its former mode afterwards; gradients,
/// random numbers and the training's autocast cache are not touched. If memory runs out for a batch, its size
/// is halved. An error on one rank is an error on all. Waits for the device.
[[nodiscard]] EvalResult evaluate(const Task& task, const Dataset& dataset, World& world,
                                  const EvaluateOptions& options = {});

}  // namespace gradstep

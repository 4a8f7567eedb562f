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

/// How evaluate() works.
struct EvaluateOptions {
  Precision precision = Precision::kFp32;  ///< autocast as in training
  int64_t batch_size = 0;                  ///< samples that go through the model at once; 0: 1000
  uint64_t seed = 0;                       ///< Draw::seed, which gather() gets
  bool tables = true;                      ///< false: leave out metrics with a table
  /// Called before each batch; true ends the evaluation early. Empty: it is never ended.
  std::function<bool()> should_stop{};
  /// Called after each batch of this rank with the number of its first sample, the outputs (fp32), and the
  /// batch as forward took it. Empty: not called.
  std::function<void(int64_t first, const at::Tensor& outputs, const Batch& batch)> on_batch{};
};

/// A metric with a value for each row, such as the accuracy of each class.
struct MetricTable {
  std::string name;             ///< of the metric: "accuracy"
  std::string rows_of;          ///< what a row stands for: "class"
  std::vector<double> sums;     ///< for each row its MetricSum::sum, such as hits
  std::vector<double> weights;  ///< for each row its MetricSum::weight, such as samples
  std::vector<double> values;   ///< for each row its value
};

/// What evaluate() measured over all ranks. Sums and weights are added up in fp64.
struct EvalResult {
  double loss = 0;                     ///< sum of the losses / sum of the weights
  int64_t samples = 0;                 ///< over all ranks
  std::vector<MetricValue> metrics{};  ///< in the order of the task
  std::vector<MetricTable> tables{};   ///< metrics with Metric::table_of, in the order of the task
  bool complete = true;                ///< false: should_stop ended it

  /// The value of the metric with this name. Throws std::out_of_range if there is none.
  [[nodiscard]] double at(const std::string& name) const;
};

/// Measures the loss and the metrics of a task over a data set. Each rank takes a contiguous part of the
/// samples, and the buffers (batch norm statistics) of rank 0, which it keeps. The module is in evaluation
/// mode meanwhile, and each part of it in its former mode afterwards. Does not touch gradients, random
/// numbers and the autocast cache of a training forward around it. If memory runs out for a batch, batches
/// are halved. Waits for the device. Throws what task and data set throw; an error on one rank is an error on
/// all.
[[nodiscard]] EvalResult evaluate(const Task& task, const Dataset& dataset, World& world,
                                  const EvaluateOptions& options = {});

}  // namespace gradstep

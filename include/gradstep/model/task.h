// Task: a module together with its loss and its metrics. What the engine trains and the evaluator measures.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gradstep/data/dataset.h"
#include "gradstep/io/safetensors.h"

namespace torch::nn {
class Module;
}

namespace gradstep {

/// Which values of a metric are better.
enum class Direction {
  kHigher,  ///< higher ones: an accuracy
  kLower,   ///< lower ones: an error
  kNone     ///< neither: it is only reported, and cannot choose the best model
};

/// What one batch adds to a metric: two tensors of one element each, or of Metric::num_rows elements for a
/// table.
struct MetricSum {
  at::Tensor sum;     ///< such as the number of hits
  at::Tensor weight;  ///< such as the number of samples
};

/// A named number of an evaluation. Sums and weights are added up in fp64 over batches and ranks.
struct Metric {
  std::string name;  ///< "acc": reported as val_acc, and as ema_val_acc for the moving average
  Direction direction = Direction::kHigher;  ///< which values are better
  /// Outputs and batch -> what they add. Empty: what they add to the loss (loss_sum and weight).
  std::function<MetricSum(const at::Tensor& outputs, const Batch& batch)> measure{};
  /// Total sum and weight -> the value. Empty: sum / weight.
  std::function<double(double sum, double weight)> value{};
  /// What a row of a table stands for, such as "class". A table takes the place of one number, and only the
  /// eval command shows it. Empty: no table.
  std::string table_of{};
  int64_t num_rows = 1;  ///< of the table

  /// The value for a total sum and weight.
  [[nodiscard]] double of(double sum, double weight) const {
    return value ? value(sum, weight) : sum / weight;
  }
};

/// What you want back after a resume besides model and optimizer: the stage of a curriculum, running
/// statistics, the weights of a teacher.
struct UserState {
  std::map<std::string, std::string> values{};  ///< texts by name, in UTF-8
  NamedTensors tensors{};                       ///< of any type and shape, on any device; names are unique
  /// True if there is neither a value nor a tensor.
  [[nodiscard]] bool empty() const { return values.empty() && tensors.empty(); }
};

/// A module with the functions that train and measure it. classification_task(), regression_task() and
/// language_task() fill it in; so can you.
struct Task {
  /// Owns the parameters: fp32, on one device.
  std::shared_ptr<torch::nn::Module> module;
  /// One micro-batch -> outputs, in training or evaluation mode as the module is. Runs under autocast.
  std::function<at::Tensor(const Batch& batch)> forward;
  /// Sum (not mean) of the losses, an fp32 scalar that can be differentiated. Runs under autocast. Evaluation
  /// uses it too, with the module in evaluation mode.
  std::function<at::Tensor(const at::Tensor& outputs, const Batch& batch)> loss_sum;
  /// Stored samples -> what forward takes, without gradient; rows stay rows. Empty: as stored.
  std::function<Batch(const Batch& batch)> prepare{};
  /// What the loss sum of these samples is divided by, known before the forward. Empty: the number of
  /// samples.
  std::function<double(const Batch& batch)> weight{};
  /// What evaluations measure besides the loss, in the order of the report. By default the first one with a
  /// direction says which evaluation is the best.
  std::vector<Metric> metrics{};
  /// False: the loss of a sample depends on the other samples of its window (a contrastive loss). The window
  /// is not cut into micro-batches then, nor among ranks: an Engine takes such a task on one rank only.
  bool divisible = true;
  /// Gives what a checkpoint keeps for you; the tensors may be live ones. Empty: nothing. Called between two
  /// windows: for each checkpoint on the rank that writes it, and before each window on every rank, so it
  /// must be there on all ranks or on none. Its tensors are copied each time: forward and loss may run more
  /// than once a window. They also run for windows that are then skipped, and `precision` auto tries them
  /// before the first window. What they changed in the state is taken back by restore_user_state. Black boxes
  /// do not have it.
  std::function<UserState()> user_state{};
  /// Takes back what user_state gave: at a resume and at a rollback, on every rank, with tensors on the CPU,
  /// and where a window is undone. The tensors are copies. The state is empty if the checkpoint was written
  /// without one.
  std::function<void(const UserState& state)> restore_user_state{};
};

/// The batch as task.forward takes it.
[[nodiscard]] Batch prepared(const Task& task, const Batch& batch);

/// The weight of the batch: task.weight, or the number of samples; 0 if it has no samples.
[[nodiscard]] inline double weight_of(const Task& task, const Batch& batch) {
  if (batch.size() == 0) return 0;
  return task.weight ? task.weight(batch) : static_cast<double>(batch.size());
}

/// Throws ConfigError for a task without module, forward, loss or parameters, for a metric whose name is
/// empty, taken, "loss" or "samples", or has a space, and for parameters and buffers that no checkpoint can
/// hold or restore: a type that safetensors files lack, a name that is not UTF-8 or is taken, elements that
/// share memory (expand()).
void validate(const Task& task);

}  // namespace gradstep

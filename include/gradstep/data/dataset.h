// Batch and Dataset: numbered samples that can be gathered by number. Dataset is the interface of every data
// set.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace gradstep {

/// Some samples: those of a micro-batch, a window or an evaluation batch. Each tensor has n rows, one for
/// each sample.
struct Batch {
  at::Tensor inputs;                           ///< (n, ...), as stored: bytes for images
  at::Tensor targets;                          ///< (n, ...) of any type; undefined if the task needs none
  std::map<std::string, at::Tensor> extras{};  ///< (n, ...) each: a mask, weights, a second input

  /// n, the number of samples.
  [[nodiscard]] int64_t size() const { return inputs.defined() ? inputs.size(0) : 0; }
  /// Rows [first, first + count) of every tensor. Shares memory, as torch.Tensor.narrow does.
  [[nodiscard]] Batch narrow(int64_t first, int64_t count) const;
  /// A batch whose tensors are on `device`. Does not wait for the device.
  [[nodiscard]] Batch to(at::Device device) const;
};

/// Throws DataError, naming the tensor and both counts, unless every tensor of the batch has `expected` rows.
void check_rows(const Batch& batch, int64_t expected);

/// What the inputs of a data set are.
enum class SampleKind {
  kOther,   ///< numbers of any other kind
  kImages,  ///< images, as bytes
  kTokens   ///< token numbers
};

/// A target that counts neither in loss nor in weight, unless a task is told another one. PyTorch:
/// torch.nn.CrossEntropyLoss, ignore_index.
inline constexpr int64_t kIgnoreIndex = -100;

/// What a model must know about a data set to be built for it.
struct DatasetSpec {
  std::string name;                      ///< "fashion-mnist"
  std::vector<int64_t> input_shape;      ///< of one sample: {28, 28}
  int64_t num_classes = 0;               ///< if targets are class indices; 0: they are something else
  SampleKind kind = SampleKind::kOther;  ///< what the inputs are
  int64_t vocab_size = 0;                ///< if inputs are tokens; 0: they are something else
};

/// What a data set draws its random numbers from when it gathers. The augmentation of a sample must depend on
/// the draw and the number of the sample alone: then it is the same after a resume, and with any number of
/// workers and ranks.
struct Draw {
  uint64_t seed = 0;      ///< of the run
  int64_t epoch = 0;      ///< from 0
  bool training = false;  ///< false: evaluation, which augments nothing

  /// A seed for the random numbers of sample `id`, such as for std::mt19937_64.
  [[nodiscard]] uint64_t sample_seed(int64_t id) const;
};

/// Samples numbered from 0. TensorDataset keeps them in memory; derive from Dataset for data that does not
/// fit, or that augments. Threads: any number may call a data set at once.
class Dataset {
 public:
  virtual ~Dataset() = default;
  /// What a model must know about the data.
  [[nodiscard]] virtual const DatasetSpec& spec() const = 0;
  /// The number of samples, at least 1.
  [[nodiscard]] virtual int64_t size() const = 0;
  /// Copies the samples `ids` (n, int64, contiguous, on the CPU, each in [0, size())) into a new batch of n
  /// rows, in that order. Random numbers come from `draw`, never from a generator of the process. Threads:
  /// any number may call it at once.
  [[nodiscard]] virtual Batch gather(const at::Tensor& ids, const Draw& draw = {}) const = 0;
  /// A short text that differs if the content differs: a hash over all bytes. The first call, when a run
  /// begins, may take milliseconds. A resume refuses data with another fingerprint.
  [[nodiscard]] virtual std::string fingerprint() const = 0;
};

/// A data set in memory. Its tensors are contiguous, on the CPU and of any type, and their owner does not
/// change them any more. gather() copies bytes in the calling thread and draws no random numbers.
class TensorDataset final : public Dataset {
 public:
  /// inputs (N, ...), targets (N, ...) or undefined. If spec.num_classes is above 0, targets are int64 class
  /// indices or kIgnoreIndex. Throws DataError naming the row if a target is neither, and if counts
  /// differ, a tensor is not contiguous and on the CPU, or there is no sample.
  TensorDataset(DatasetSpec spec, at::Tensor inputs, at::Tensor targets);
  /// The same with extras, (N, ...) each.
  TensorDataset(DatasetSpec spec, Batch samples);
  [[nodiscard]] const DatasetSpec& spec() const override { return spec_; }
  [[nodiscard]] int64_t size() const override;
  [[nodiscard]] Batch gather(const at::Tensor& ids, const Draw& draw = {}) const override;
  [[nodiscard]] std::string fingerprint() const override;

 private:
  DatasetSpec spec_;
  Batch samples_;
  mutable std::once_flag fingerprint_once_;
  mutable std::string fingerprint_;
};

/// Some samples of another data set, renumbered from 0. PyTorch: torch.utils.data.Subset.
class SubsetDataset final : public Dataset {
 public:
  /// The samples `ids` of `parent`, in that order. REQUIRES: ids (n) int64, contiguous, on the CPU, each in
  /// [0, parent->size()); n >= 1.
  SubsetDataset(std::shared_ptr<const Dataset> parent, at::Tensor ids);
  [[nodiscard]] const DatasetSpec& spec() const override { return parent_->spec(); }
  [[nodiscard]] int64_t size() const override;
  [[nodiscard]] Batch gather(const at::Tensor& ids, const Draw& draw = {}) const override;
  [[nodiscard]] std::string fingerprint() const override;

 private:
  std::shared_ptr<const Dataset> parent_;
  at::Tensor ids_;
  mutable std::once_flag fingerprint_once_;
  mutable std::string fingerprint_;
};

/// The training part and the evaluation part of a data set.
struct DatasetPair {
  std::shared_ptr<const Dataset> train;  ///< to learn from
  std::shared_ptr<const Dataset> eval;   ///< to evaluate on; null: nothing is evaluated
};

/// Splits `fraction` of `train` off as the evaluation part. At least one sample stays on either side, and
/// both parts keep the order of `train`. With n = round(fraction * size) the evaluation part is made of the
/// samples torch.randperm(size, generator = manual_seed(seed))[:n]. Throws ConfigError for a fraction outside
/// (0, 1), for fewer than two samples, and for a seed above 2^32 - 1.
[[nodiscard]] DatasetPair split_validation(const std::shared_ptr<const Dataset>& train, double fraction,
                                           uint64_t seed);

/// The names that load_dataset() takes: "fashion-mnist", "mnist", "cifar10".
[[nodiscard]] std::vector<std::string> dataset_names();

/// The folder of data set `name` if the user gives none: the folder of the Debian package if it is installed
/// (fashion-mnist), else data/NAME.
[[nodiscard]] std::string default_data_dir(const std::string& name);

/// One of the two parts of a data set.
enum class Split {
  kTrain,  ///< DatasetPair::train
  kEval    ///< DatasetPair::eval
};

/// Reads one part of a data set by name. An empty data_dir means default_data_dir(name). Throws ConfigError
/// for an unknown name, listing those known, and DataError for a missing or broken folder, with the cure
/// ("run gradstep fetch mnist").
[[nodiscard]] std::shared_ptr<const Dataset> load_dataset(const std::string& name,
                                                          const std::string& data_dir, Split split);

}  // namespace gradstep

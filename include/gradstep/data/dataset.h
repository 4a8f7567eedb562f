// Batch and Dataset: numbered samples that can be gathered by number. The interface behind which every data
// set stands.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace gradstep {

/// Some samples: of a micro-batch, a window or an evaluation batch. All tensors have n rows, one a sample.
struct Batch {
  at::Tensor inputs;                           ///< (n, ...), as stored: bytes for pictures
  at::Tensor targets;                          ///< (n, ...) of any type; undefined if the task needs none
  std::map<std::string, at::Tensor> extras{};  ///< (n, ...) each: a mask, weights, a second input

  [[nodiscard]] int64_t size() const { return inputs.defined() ? inputs.size(0) : 0; }
  /// Rows [first, first + count) of every tensor; shares memory.
  [[nodiscard]] Batch narrow(int64_t first, int64_t count) const;
  /// Every tensor on `device`.
  [[nodiscard]] Batch to(at::Device device) const;
};

/// Throws DataError naming the tensor and both counts unless every tensor of the batch has `expected` rows.
void check_rows(const Batch& batch, int64_t expected);

/// What the inputs of a data set are.
enum class SampleKind { kOther, kPictures, kTokens };

/// What a model must know to be built for a data set.
struct DatasetSpec {
  std::string name;                  ///< "fashion-mnist"
  std::vector<int64_t> input_shape;  ///< of one sample: {28, 28}
  int64_t num_classes = 0;           ///< of targets that are class indices; 0: the targets are something else
  SampleKind kind = SampleKind::kOther;
  int64_t vocab_size = 0;  ///< of inputs that are tokens; 0: they are something else
};

/// What a data set may draw random numbers from when it gathers. A sample's augmentation must be a function
/// of the draw and its number alone: then it is the same after a resume, with any number of workers and
/// ranks.
struct Draw {
  uint64_t seed = 0;
  int64_t epoch = 0;
  bool training = false;  ///< false: evaluation, which augments nothing

  /// A seed for the random numbers of sample `id`, such as for std::mt19937_64.
  [[nodiscard]] uint64_t sample_seed(int64_t id) const;
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  [[nodiscard]] virtual const DatasetSpec& spec() const = 0;
  [[nodiscard]] virtual int64_t size() const = 0;
  /// Copies the samples `ids` (n, int64, contiguous, on the CPU, each in [0, size())) into a new batch of n
  /// rows, in that order. Random numbers come from `draw`, never from a generator of the process. Threads:
  /// any number may call it at once.
  [[nodiscard]] virtual Batch gather(const at::Tensor& ids, const Draw& draw = {}) const = 0;
  // A short text that differs when the content does (hash over all bytes); may take milliseconds, computed
  // once.
  [[nodiscard]] virtual std::string fingerprint() const = 0;
};

/// A data set held in memory. Its tensors are contiguous, on the CPU, of any type, and not changed any more
/// by their owner. gather copies bytes in the calling thread only, and draws nothing.
class TensorDataset final : public Dataset {
 public:
  /// inputs (N, ...), targets (N, ...). If spec.num_classes is above 0, targets are int64 class indices.
  /// Throws DataError naming the row when one lies outside [0, num_classes), when counts differ, or when
  /// there is no sample at all.
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

// The samples `ids` of another data set, renumbered from 0 in that order.
class SubsetDataset final : public Dataset {
 public:
  // REQUIRES: ids (n) int64, contiguous, on the CPU, each in [0, parent->size()); n >= 1.
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

// Training and evaluation part of a data set.
struct DatasetPair {
  std::shared_ptr<const Dataset> train;
  std::shared_ptr<const Dataset> test;
};

// Splits `fraction` of `train` off as the evaluation part; at least one sample stays on either side. With n =
// round(fraction * size) it is made of the samples torch.randperm(size, generator = manual_seed(seed))[:n];
// both parts keep the order of `train`. Throws ConfigError for a fraction outside (0, 1) and for fewer than
// two samples.
[[nodiscard]] DatasetPair split_validation(const std::shared_ptr<const Dataset>& train, double fraction,
                                           uint64_t seed);

// Names that load_dataset takes, for help texts: "fashion-mnist", "mnist", "cifar10".
[[nodiscard]] std::vector<std::string> dataset_names();

// Folder looked into for `name` when the user gives none: the Debian package's for fashion-mnist where it is
// installed, else data/<name>.
[[nodiscard]] std::string default_data_dir(const std::string& name);

// Which of the two parts to read.
enum class Split { kTrain, kTest };

// Reads one part of a data set by name; an empty data_dir means default_data_dir(name). Throws ConfigError
// for an unknown name (with the known ones) and DataError, one line with the cure ("run gradstep fetch
// mnist"), for a missing or broken folder.
[[nodiscard]] std::shared_ptr<const Dataset> load_dataset(const std::string& name,
                                                          const std::string& data_dir, Split split);

}  // namespace gradstep

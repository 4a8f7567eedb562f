// Dataset: numbered samples that can be gathered by number. The interface behind which every data set stands.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gradstep/data/batch.h"

namespace gradstep {

// What a model must know to be built for a data set.
struct DatasetSpec {
  std::string name;                  // "fashion-mnist"
  std::vector<int64_t> input_shape;  // of one sample: {28, 28}
  int64_t num_classes = 0;
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  [[nodiscard]] virtual const DatasetSpec& spec() const = 0;
  [[nodiscard]] virtual int64_t size() const = 0;
  // Copies the samples `ids` (n, int64, contiguous, on the CPU, each in [0, size())) into a new batch, in
  // that order. Threads: any number may call it at once.
  [[nodiscard]] virtual Batch gather(const at::Tensor& ids) const = 0;
  // A short text that differs when the content does (hash over all bytes); may take milliseconds, computed
  // once.
  [[nodiscard]] virtual std::string fingerprint() const = 0;
};

// A data set held in memory. inputs (N, ...), targets (N) or (N, seq) int64; both contiguous, on the CPU, and
// not changed any more by their owner. gather copies bytes in the calling thread only.
class TensorDataset final : public Dataset {
 public:
  // Throws DataError naming the row when a target lies outside [0, num_classes) (case H6; not checked where
  // num_classes is 0), when counts differ, or when there is no sample at all.
  TensorDataset(DatasetSpec spec, at::Tensor inputs, at::Tensor targets);
  [[nodiscard]] const DatasetSpec& spec() const override { return spec_; }
  [[nodiscard]] int64_t size() const override;
  [[nodiscard]] Batch gather(const at::Tensor& ids) const override;
  [[nodiscard]] std::string fingerprint() const override;

 private:
  DatasetSpec spec_;
  at::Tensor inputs_;
  at::Tensor targets_;
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
  [[nodiscard]] Batch gather(const at::Tensor& ids) const override;
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
// for an unknown name (with the nearest known one) and DataError, one line with the cure ("run gradstep fetch
// mnist"), for a missing or broken folder.
[[nodiscard]] std::shared_ptr<const Dataset> load_dataset(const std::string& name,
                                                          const std::string& data_dir, Split split);

}  // namespace gradstep

// TensorDataset, SubsetDataset and the validation split: samples held in memory, gathered by copying rows.
#include "gradstep/data/dataset.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "data/permutation.h"
#include "gradstep/base/error.h"
#include "gradstep/io/hash.h"

namespace gradstep {
namespace {

void check_ids(const at::Tensor& ids, int64_t size) {
  TORCH_CHECK(ids.dim() == 1 && ids.scalar_type() == at::kLong && ids.is_contiguous() && ids.is_cpu(),
              "ids must be a contiguous int64 vector on the CPU");
  const int64_t* const id = ids.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < ids.numel(); ++i) {
    TORCH_CHECK(id[i] >= 0 && id[i] < size, "sample ", id[i], " of ", size);
  }
}

// Rows `ids` of `source` (N, ...) as a new tensor. Bytes only: no tensor operation a sample, no other thread.
at::Tensor gather_rows(const at::Tensor& source, const at::Tensor& ids) {
  std::vector<int64_t> shape = source.sizes().vec();
  shape[0] = ids.numel();
  at::Tensor result = at::empty(shape, source.options());
  const size_t row_bytes = static_cast<size_t>(source.numel() / source.size(0)) * source.element_size();
  const int64_t* const id = ids.const_data_ptr<int64_t>();
  const char* const from = static_cast<const char*>(source.const_data_ptr());
  char* to = static_cast<char*>(result.mutable_data_ptr());
  for (int64_t i = 0; i < ids.numel();) {
    // Neighbours in order (evaluation, mostly) go in one piece.
    int64_t run = 1;
    while (i + run < ids.numel() && id[i + run] == id[i] + run) ++run;
    const size_t bytes = row_bytes * static_cast<size_t>(run);
    std::memcpy(to, from + row_bytes * static_cast<size_t>(id[i]), bytes);
    to += bytes;
    i += run;
  }
  return result;
}

void check_targets(const DatasetSpec& spec, const at::Tensor& targets) {
  if (spec.num_classes == 0) return;
  const int64_t* const target = targets.const_data_ptr<int64_t>();
  const int64_t row_size = targets.numel() / targets.size(0);
  for (int64_t i = 0; i < targets.numel(); ++i) {
    if (target[i] < 0 || target[i] >= spec.num_classes) {
      throw DataError("data set " + spec.name + ": row " + std::to_string(i / row_size) +
                      ": expected a target from 0 to " + std::to_string(spec.num_classes - 1) + ", found " +
                      std::to_string(target[i]) + "; correct the targets or the number of classes");
    }
  }
}

std::string hash_bytes(const at::Tensor& tensor) { return xxh3(tensor.const_data_ptr(), tensor.nbytes()); }

std::string describe(const at::Tensor& tensor) {
  std::string text = std::string(c10::toString(tensor.scalar_type())) + " (";
  for (const int64_t size : tensor.sizes()) text += std::to_string(size) + ",";
  return text + ") ";
}

}  // namespace

TensorDataset::TensorDataset(DatasetSpec spec, at::Tensor inputs, at::Tensor targets)
    : spec_(std::move(spec)), inputs_(std::move(inputs)), targets_(std::move(targets)) {
  TORCH_CHECK(inputs_.is_cpu() && inputs_.is_contiguous() && inputs_.dim() >= 1,
              "inputs must be contiguous, on the CPU");
  TORCH_CHECK(targets_.is_cpu() && targets_.is_contiguous() && targets_.dim() >= 1 &&
                  targets_.scalar_type() == at::kLong,
              "targets must be contiguous int64, on the CPU");
  if (inputs_.size(0) != targets_.size(0)) {
    throw DataError("data set " + spec_.name + ": expected as many targets as inputs, found " +
                    std::to_string(inputs_.size(0)) + " inputs and " + std::to_string(targets_.size(0)) +
                    " targets; give each input its target");
  }
  if (inputs_.size(0) == 0) {
    throw DataError("data set " + spec_.name +
                    ": expected samples, found none; check the folder it is read from");
  }
  check_targets(spec_, targets_);
}

int64_t TensorDataset::size() const { return inputs_.size(0); }

Batch TensorDataset::gather(const at::Tensor& ids) const {
  check_ids(ids, size());
  return {gather_rows(inputs_, ids), gather_rows(targets_, ids)};
}

std::string TensorDataset::fingerprint() const {
  std::call_once(fingerprint_once_, [this] {
    const std::string text = spec_.name + "\n" + std::to_string(spec_.num_classes) + "\n" +
                             describe(inputs_) + hash_bytes(inputs_) + "\n" + describe(targets_) +
                             hash_bytes(targets_);
    fingerprint_ = xxh3(text.data(), text.size());
  });
  return fingerprint_;
}

SubsetDataset::SubsetDataset(std::shared_ptr<const Dataset> parent, at::Tensor ids)
    : parent_(std::move(parent)), ids_(std::move(ids)) {
  check_ids(ids_, parent_->size());
  TORCH_CHECK(ids_.numel() >= 1, "a subset needs a sample");
}

int64_t SubsetDataset::size() const { return ids_.numel(); }

Batch SubsetDataset::gather(const at::Tensor& ids) const {
  check_ids(ids, size());
  at::Tensor parent_ids = at::empty({ids.numel()}, at::kLong);
  const int64_t* const from = ids_.const_data_ptr<int64_t>();
  const int64_t* const id = ids.const_data_ptr<int64_t>();
  int64_t* const to = parent_ids.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < ids.numel(); ++i) to[i] = from[id[i]];
  return parent_->gather(parent_ids);
}

std::string SubsetDataset::fingerprint() const {
  std::call_once(fingerprint_once_, [this] {
    const std::string text = parent_->fingerprint() + "\n" + describe(ids_) + hash_bytes(ids_);
    fingerprint_ = xxh3(text.data(), text.size());
  });
  return fingerprint_;
}

DatasetPair split_validation(const std::shared_ptr<const Dataset>& train, double fraction, uint64_t seed) {
  if (!(fraction > 0 && fraction < 1)) {
    throw ConfigError("--val-fraction: expected a number between 0 and 1, both excluded, found " +
                      std::to_string(fraction));
  }
  const int64_t size = train->size();
  if (size < 2) {
    throw ConfigError("--val-fraction: a data set of " + std::to_string(size) +
                      " sample cannot be split; leave the flag out");
  }
  const int64_t wanted = std::llround(fraction * static_cast<double>(size));
  const int64_t num_held_out = std::clamp<int64_t>(wanted, 1, size - 1);
  const at::Tensor order = random_permutation(size, seed);
  int64_t* const id = order.mutable_data_ptr<int64_t>();
  std::sort(id, id + num_held_out);
  std::sort(id + num_held_out, id + size);
  return {std::make_shared<SubsetDataset>(train, order.slice(0, num_held_out).clone()),
          std::make_shared<SubsetDataset>(train, order.slice(0, 0, num_held_out).clone())};
}

}  // namespace gradstep

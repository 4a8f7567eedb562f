// TensorDataset, SubsetDataset and the validation split: samples held in memory, gathered by copying rows.
#include "gradstep/data/dataset.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/seed.h"
#include "data/permutation.h"
#include "gradstep/base/error.h"
#include "io/hash.h"

namespace gradstep {
namespace {

// The finaliser of splitmix64: every bit of the result depends on every bit of the input.
uint64_t mix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

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

void check_tensor(const DatasetSpec& spec, const std::string& name, const at::Tensor& tensor) {
  if (tensor.defined() && tensor.is_cpu() && tensor.is_contiguous() && tensor.dim() >= 1) return;
  throw DataError("data set " + spec.name + ": expected " + name +
                  " that are contiguous, on the CPU, with a row a sample; call .cpu().contiguous() on them");
}

void check_count(const DatasetSpec& spec, int64_t size, const std::string& name, const at::Tensor& tensor) {
  if (tensor.size(0) == size) return;
  throw DataError("data set " + spec.name + ": expected as many " + name + " as inputs, found " +
                  std::to_string(size) + " inputs and " + std::to_string(tensor.size(0)) + " " + name +
                  "; give each input its own");
}

void check_targets(const DatasetSpec& spec, const at::Tensor& targets) {
  if (spec.num_classes == 0) return;
  if (targets.scalar_type() != at::kLong) {
    throw DataError("data set " + spec.name + ": expected int64 class indices as targets, found " +
                    c10::toString(targets.scalar_type()) +
                    "; convert them, or leave num_classes 0 if they are no classes");
  }
  const int64_t* const target = targets.const_data_ptr<int64_t>();
  const int64_t row_size = targets.numel() / targets.size(0);
  for (int64_t i = 0; i < targets.numel(); ++i) {
    const bool is_class = target[i] >= 0 && target[i] < spec.num_classes;
    if (!is_class && target[i] != kIgnoreIndex) {
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

uint64_t Draw::sample_seed(int64_t id) const {
  uint64_t state = mix64(seed);
  for (const uint64_t part : {static_cast<uint64_t>(epoch), static_cast<uint64_t>(id)})
    state = mix64(state ^ part);
  return state;
}

TensorDataset::TensorDataset(DatasetSpec spec, at::Tensor inputs, at::Tensor targets)
    : TensorDataset(std::move(spec), Batch{std::move(inputs), std::move(targets)}) {}

TensorDataset::TensorDataset(DatasetSpec spec, Batch samples)
    : spec_(std::move(spec)), samples_(std::move(samples)) {
  check_tensor(spec_, "inputs", samples_.inputs);
  const int64_t size = samples_.size();
  if (size == 0) {
    throw DataError("data set " + spec_.name +
                    ": expected samples, found none; check the folder it is read from");
  }
  if (samples_.targets.defined()) check_tensor(spec_, "targets", samples_.targets);
  for (const auto& [name, tensor] : samples_.extras) {
    check_tensor(spec_, name, tensor);
    check_count(spec_, size, name, tensor);
  }
  if (!samples_.targets.defined()) return;
  check_count(spec_, size, "targets", samples_.targets);
  check_targets(spec_, samples_.targets);
}

int64_t TensorDataset::size() const { return samples_.size(); }

Batch TensorDataset::gather(const at::Tensor& ids, const Draw& /*draw*/) const {
  check_ids(ids, size());
  Batch batch{gather_rows(samples_.inputs, ids), {}};
  if (samples_.targets.defined()) batch.targets = gather_rows(samples_.targets, ids);
  for (const auto& [name, tensor] : samples_.extras) batch.extras.emplace(name, gather_rows(tensor, ids));
  return batch;
}

std::string TensorDataset::fingerprint() const {
  std::call_once(fingerprint_once_, [this] {
    std::string text = spec_.name + "\n" + std::to_string(spec_.num_classes) + "\n" +
                       describe(samples_.inputs) + hash_bytes(samples_.inputs);
    if (samples_.targets.defined()) text += "\n" + describe(samples_.targets) + hash_bytes(samples_.targets);
    for (const auto& [name, tensor] : samples_.extras)
      text += "\n" + name + " " + describe(tensor) + hash_bytes(tensor);
    fingerprint_ = xxh3(text.data(), text.size());
  });
  return fingerprint_;
}

SubsetDataset::SubsetDataset(std::shared_ptr<const Dataset> parent, at::Tensor ids)
    : parent_(std::move(parent)), ids_(std::move(ids)) {
  if (!parent_) throw ConfigError("SubsetDataset: there is no data set to take samples from; give one");
  check_ids(ids_, parent_->size());
  TORCH_CHECK(ids_.numel() >= 1, "a subset needs a sample");
}

int64_t SubsetDataset::size() const { return ids_.numel(); }

Batch SubsetDataset::gather(const at::Tensor& ids, const Draw& draw) const {
  check_ids(ids, size());
  at::Tensor parent_ids = at::empty({ids.numel()}, at::kLong);
  const int64_t* const from = ids_.const_data_ptr<int64_t>();
  const int64_t* const id = ids.const_data_ptr<int64_t>();
  int64_t* const to = parent_ids.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < ids.numel(); ++i) to[i] = from[id[i]];
  return parent_->gather(parent_ids, draw);
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
    throw ConfigError("`val_fraction`: expected a number between 0 and 1, both excluded, found " +
                      std::to_string(fraction));
  }
  check_seed(seed);
  if (!train) throw ConfigError("split_validation: there is no data set to split; give one");
  const int64_t size = train->size();
  if (size < 2) {
    throw ConfigError("`val_fraction`: a data set of " + std::to_string(size) +
                      " sample cannot be split; leave it out");
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

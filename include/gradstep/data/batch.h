// Batch and Window: what the loader hands to the engine, and the slices that go through the model.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>

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

// Where a window lies in the run. Counts windows consumed, never windows prefetched.
struct Position {
  int64_t epoch = 0;   // from 0
  int64_t index = 0;   // window of the epoch, from 0
  int64_t number = 0;  // running number over epochs, from 0
};

// All samples of one update on this rank. May be empty where there are more ranks than samples.
struct Window {
  Batch batch;
  at::Tensor ids;  // (n) int64: sample numbers in the data set
  Position position;
  int64_t total_samples = 0;  // over all ranks
  bool last_of_epoch = false;
};

}  // namespace gradstep

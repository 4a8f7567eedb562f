// Batch and Window: what the loader hands to the engine, and the slices the engine chews it in.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace gradstep {

// Some samples: of a micro-batch, a window or an evaluation batch.
struct Batch {
  at::Tensor inputs;   // (n, ...), as stored: bytes for pictures
  at::Tensor targets;  // (n) int64 class indices, or (n, seq) int64 tokens
  [[nodiscard]] int64_t size() const { return inputs.defined() ? inputs.size(0) : 0; }
};

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

// The mlp for samples of a kind, in one line.
#pragma once

#include "gradstep/data/dataset.h"
#include "model/mlp.h"

namespace gradstep::testing {

struct ModelOptions {
  int64_t hidden = 256;
  double dropout = 0;
  double label_smoothing = 0;
};

inline Task make_task(const ModelOptions& options, const DatasetSpec& spec) {
  int64_t num_inputs = 1;
  for (const int64_t size : spec.input_shape) num_inputs *= size;
  return mlp_task({.num_inputs = num_inputs,
                   .hidden = options.hidden,
                   .num_classes = spec.num_classes,
                   .dropout = options.dropout},
                  options.label_smoothing);
}

}  // namespace gradstep::testing

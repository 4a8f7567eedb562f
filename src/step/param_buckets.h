// Parameters that one call of a fused kernel updates: those with the same learning rate and weight decay.
#pragma once

#include <algorithm>
#include <vector>

#include "gradstep/step/optimizer.h"

namespace gradstep {

struct ParamBucket {
  double lr_factor = 1;
  double weight_decay = 0;
  std::vector<size_t> members{};  // indices of parameters, ascending
};

[[nodiscard]] inline std::vector<ParamBucket> param_buckets(const std::vector<TrainedParameter>& parameters) {
  std::vector<ParamBucket> buckets;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const TrainedParameter& parameter = parameters[i];
    const auto same = [&](const ParamBucket& bucket) {
      return bucket.lr_factor == parameter.lr_factor && bucket.weight_decay == parameter.weight_decay;
    };
    auto found = std::find_if(buckets.begin(), buckets.end(), same);
    if (found == buckets.end())
      found = buckets.insert(found, {parameter.lr_factor, parameter.weight_decay, {}});
    found->members.push_back(i);
  }
  return buckets;
}

}  // namespace gradstep

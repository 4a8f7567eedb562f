// StateLayout: names, types and shapes of what an optimizer remembers. A checkpoint is copied into the state
// that a new optimizer has, so they must be the same at each call.
#pragma once

#include <string>
#include <vector>

#include "gradstep/step/optimizer.h"

namespace gradstep {

class StateLayout {
 public:
  // The layout of now. Throws ConfigError naming the tensor that no checkpoint can hold or restore.
  explicit StateLayout(const Optimizer& optimizer);
  // Throws ConfigError naming the first tensor that is no longer as it was.
  void require_unchanged(const Optimizer& optimizer) const;

 private:
  std::vector<std::string> tensors_;  // "fc1.weight.sum Float (8, 4)"
};

}  // namespace gradstep

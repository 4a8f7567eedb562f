// Remembers one mode a part.
#include "model/mode_guard.h"

#include <torch/torch.h>

namespace gradstep {

ModeGuard::ModeGuard(torch::nn::Module& module, bool training) {
  for (const auto& part : module.modules()) former_.emplace_back(part, part->is_training());
  module.train(training);
}

ModeGuard::~ModeGuard() {
  // train() reaches all parts below, so those come after the one they belong to.
  for (const auto& [part, was_training] : former_) part->train(was_training);
}

}  // namespace gradstep

// ModeGuard: training or evaluation mode for a while, for a module and all its parts.
#pragma once

#include <memory>
#include <utility>
#include <vector>

namespace torch::nn {
class Module;
}

namespace gradstep {

// Afterwards each part is in the mode it had before: one that its owner has frozen by eval() stays frozen.
class ModeGuard {
 public:
  ModeGuard(torch::nn::Module& module, bool training);
  ~ModeGuard();
  ModeGuard(const ModeGuard&) = delete;
  ModeGuard& operator=(const ModeGuard&) = delete;

 private:
  std::vector<std::pair<std::shared_ptr<torch::nn::Module>, bool>> former_;  // parents before their parts
};

}  // namespace gradstep

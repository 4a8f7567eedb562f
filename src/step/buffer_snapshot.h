// BufferSnapshot: a module's buffers (batch norm statistics) as they were, so that a window can be undone.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace torch::nn {
class Module;
}

namespace gradstep {

class BufferSnapshot {
 public:
  explicit BufferSnapshot(const torch::nn::Module& module);
  // Copies the buffers; costs nothing for a module without any. Never waits for the device.
  void save();
  // Puts back what the last save() copied.
  void restore();

 private:
  std::vector<at::Tensor> buffers_;
  std::vector<at::Tensor> saved_;
};

}  // namespace gradstep

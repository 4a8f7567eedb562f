// NonFiniteFinder: watches the ops of a forward and backward and remembers the first whose output is not
// finite, and how large what each module gave was.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "gradstep/base/step_report.h"
#include "gradstep/io/safetensors.h"

namespace gradstep {

// Stands for an op where each value was finite and yet the update was not.
inline constexpr const char* kNotFiniteInTheSum =
    "the norm of the gradients, or their sum over micro-batches and ranks";

// Observes this thread, and the backward threads it starts, while it lives. Slow (it reads every output and
// waits for the device), so it watches only a window that is known to go wrong. One at a time in a process: a
// second one, of another thread, waits until the first is gone.
class NonFiniteFinder {
 public:
  // `parameters`: (name, tensor), to name the parameter an op used; the module is the name up to its last
  // dot.
  explicit NonFiniteFinder(const NamedTensors& parameters);
  ~NonFiniteFinder();
  NonFiniteFinder(const NonFiniteFinder&) = delete;
  NonFiniteFinder& operator=(const NonFiniteFinder&) = delete;

  // Such as "aten::addmm with parameter fc1.weight (module fc1)"; empty when every output was finite.
  [[nodiscard]] std::string first() const;

  // Of each module with parameters: the norm of what its ops gave forward (those that take a parameter of it,
  // or a cast of one; not the cast itself), over all forwards since this object was made, and the norm of its
  // parameters' .grad, both summed in fp64. loss_scale: what the gradients are multiplied by.
  [[nodiscard]] std::vector<ModuleNorms> modules(double loss_scale) const;

 private:
  std::unique_lock<std::mutex> turn_;
  NamedTensors parameters_;
  uint64_t handle_;  // an at::CallbackHandle
};

}  // namespace gradstep

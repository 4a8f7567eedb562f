// NonFiniteFinder: watches the ops of a forward and backward and remembers the first whose output is not
// finite.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

#include <string>
#include <utility>
#include <vector>

namespace gradstep {

// Observes this thread, and the backward threads it starts, while it lives. Slow (it reads every output and
// waits for the device), so it watches only a window that is known to go wrong. One at a time in a process.
class NonFiniteFinder {
 public:
  // `parameters`: (name, tensor), to name the parameter an op used; the module is the name up to its last
  // dot.
  explicit NonFiniteFinder(const std::vector<std::pair<std::string, at::Tensor>>& parameters);
  ~NonFiniteFinder();
  NonFiniteFinder(const NonFiniteFinder&) = delete;
  NonFiniteFinder& operator=(const NonFiniteFinder&) = delete;

  // Such as "aten::addmm with parameter fc1.weight (module fc1)"; empty when every output was finite.
  [[nodiscard]] std::string first() const;

 private:
  at::CallbackHandle handle_;
};

}  // namespace gradstep

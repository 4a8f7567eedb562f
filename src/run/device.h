// The device of a run, and the process-wide settings that go with it.
#pragma once

#include <c10/core/Device.h>

#include <string>

#include "gradstep/run/trainer.h"

namespace gradstep {

// "auto" (an accelerator where there is one), "cpu", "cuda", "cuda:N" -> device. Throws ConfigError for any
// other text, and if the device is not there.
[[nodiscard]] c10::Device parse_device(const std::string& text);

// Number of compute threads: as asked, or (0) the cores within the cgroup's quota. Throws ConfigError when
// the system does not let the process start them and `num_others` threads beside them.
void set_threads(int64_t threads, int64_t num_others = 0);

// Bytes for tensors on the CPU by `memory_limit` ("auto", "none", "8g"); 0: no limit. Throws ConfigError for
// any other text.
[[nodiscard]] int64_t tensor_memory_limit(const std::string& text);

// "cpu, 2 threads"
[[nodiscard]] std::string describe_device(c10::Device device);

}  // namespace gradstep

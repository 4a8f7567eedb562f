// configure_process: the one place that changes what belongs to the whole process.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <string>

namespace gradstep {

struct ProcessOptions {
  std::string device = "auto";        ///< auto, cpu, cuda or cuda:N
  int64_t threads = 0;                ///< that compute; 0: the cores within the cgroup quota
  int64_t num_workers = 1;            ///< that will gather data; they must be startable, too
  std::string memory_limit = "auto";  ///< of tensors on the CPU: auto (what is free), none, or bytes: "8g"
  bool deterministic = false;         ///< only operations that give the same bits in each run
};

/// Sets the number of threads, the memory limit and deterministic algorithms of this process, and returns the
/// device that the options name. A program calls it once, before it makes tensors; the library never does.
/// Throws ConfigError for a device that is not there and for threads that cannot be started.
[[nodiscard]] c10::Device configure_process(const ProcessOptions& options = {});

}  // namespace gradstep

// What this machine gives the process: cores, memory, processor. Linux; reads /proc and the cgroup.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gradstep {

// More threads than any machine needs.
inline constexpr int64_t kMaxThreads = 4096;

// Cores this process may use: those of its affinity mask, and no more than the cgroup's quota rounded up; at
// least 1. cgroup_root: the folder to look for quotas in; membership: the file that names the process's
// groups (a test passes its own).
[[nodiscard]] int64_t num_usable_cores(const std::string& cgroup_root = "/sys/fs/cgroup",
                                       const std::string& membership = "/proc/self/cgroup");

// OMP_NUM_THREADS, which schedulers and launchers set: 1 to kMaxThreads. Nothing if it is not set, or no
// number.
[[nodiscard]] std::optional<int64_t> threads_of_environment();
// The threads to compute with if nobody says: threads_of_environment(), else the usable cores.
[[nodiscard]] int64_t num_default_threads();

// What keeps this process from its cores, as the kernel counts it. 0 where it cannot be read.
struct CpuPressure {
  int64_t preemptions = 0;       // times that a thread of it had to leave its core to another
  double throttled_seconds = 0;  // that quotas of its cgroups held it up, since they were made
  int64_t num_runnable = 0;      // threads on this machine that want a core now
};
[[nodiscard]] CpuPressure cpu_pressure(const std::string& cgroup_root = "/sys/fs/cgroup",
                                       const std::string& membership = "/proc/self/cgroup");

// What num_usable_cores() is made of: the cores of the affinity mask, at least 1, and those of the tightest
// quota of the process's cgroups; infinity without one.
[[nodiscard]] int64_t num_affinity_cores();
[[nodiscard]] double cgroup_quota_cores(const std::string& cgroup_root = "/sys/fs/cgroup",
                                        const std::string& membership = "/proc/self/cgroup");

// How often a quota made the processes of a cgroup wait, since the group exists.
struct Throttling {
  int64_t periods = 0;    // in which they wanted to run
  int64_t throttled = 0;  // in which they had to wait
};
// Of the process's group, or the one above it, that waits most; zeros if there is no quota.
[[nodiscard]] Throttling cgroup_throttling(const std::string& cgroup_root = "/sys/fs/cgroup",
                                           const std::string& membership = "/proc/self/cgroup");

// Bytes of memory this process holds (resident set); 0 when it cannot be read.
[[nodiscard]] int64_t resident_bytes();

// Bytes this process may still take: of the machine, and of its cgroup's limit if it has one. Nothing if
// neither is known (no /proc).
[[nodiscard]] std::optional<int64_t> free_memory_bytes(const std::string& cgroup_root = "/sys/fs/cgroup",
                                                       const std::string& membership = "/proc/self/cgroup");

// The most that this process may take: of the machine, or of its cgroup if that has less.
struct MemoryTotal {
  int64_t bytes = 0;
  bool of_cgroup = false;
};
// Nothing if neither is known.
[[nodiscard]] std::optional<MemoryTotal> total_memory(const std::string& cgroup_root = "/sys/fs/cgroup",
                                                      const std::string& membership = "/proc/self/cgroup");

// The name of this machine in the network; "localhost" if it has none.
[[nodiscard]] std::string host_name();

// Seconds since this process was started, by the kernel's account; 0 when it cannot be read.
[[nodiscard]] double process_seconds();

// "AMD EPYC ..." as the kernel names it, and the names of the vector extensions that matter for training.
[[nodiscard]] std::string processor_name();
[[nodiscard]] std::vector<std::string> processor_features();

}  // namespace gradstep

// What gradstep doctor says of the machine: processor, kernels, memory, threads, load, limits, clock.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/machine.h"
#include "commands/finding.h"

namespace gradstep {

// The machine as this process sees it. A test makes its own.
struct MachineFacts {
  static constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

  std::string processor{};
  std::vector<std::string> features{};
  std::string kernels{};  // of libtorch: "AVX2"
  bool has_default_kernels =
      false;                    // libtorch falls back to plain ones, on a processor that could have better
  std::string asked_kernels{};  // ATEN_CPU_CAPABILITY; empty: not set
  bool onednn = false;
  int64_t num_gpus = 0;         // that libtorch sees
  bool has_gpu_driver = false;  // the system has a card of NVIDIA
  std::optional<int64_t> free_memory{};
  std::optional<MemoryTotal> memory{};
  int64_t affinity_cores = 1;
  int64_t online_cores = 1;  // of the whole machine
  double quota_cores = std::numeric_limits<double>::infinity();
  Throttling throttling{};
  std::string omp_num_threads{};       // the variable; empty: not set
  std::string threads_error{};         // why the default number of threads cannot be started; empty: it can
  double load = 0;                     // of the last minute, of all processes of the machine
  std::optional<double> busy_cores{};  // right now, of the whole machine
  uint64_t max_open_files = kNoLimit;
  uint64_t max_file_bytes = kNoLimit;
  uint64_t max_address_bytes = kNoLimit;
  int64_t year = 2026;           // by the wall clock
  bool clock_goes_back = false;  // the monotonic one, between two looks
};

// Takes a fifth of a second, in which the load is measured. Sets the number of threads and the memory limit
// of this process, as a run would.
[[nodiscard]] MachineFacts machine_facts();

// One finding a check. `run_goes_on`: the run that is looked at, whose own work is no load of others.
void examine_machine(const MachineFacts& facts, bool run_goes_on, const Tell& tell);

}  // namespace gradstep

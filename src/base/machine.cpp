// no torch
// Small readers of /proc and the cgroup files; whatever cannot be read counts as absent.
#include "base/machine.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

namespace gradstep {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

// First word of a file, "" when it cannot be read; `rest` gets the second.
std::string first_word(const std::string& path, std::string* rest = nullptr) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  if (rest != nullptr) file >> *rest;
  return word;
}

int64_t number_or(const std::string& text, int64_t otherwise) {
  char* end = nullptr;
  const long long number = std::strtoll(text.c_str(), &end, 10);
  return text.empty() || end == text.c_str() ? otherwise : static_cast<int64_t>(number);
}

// The value of "key" in a file of lines "key : value" or "key value".
std::string field(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (line.compare(0, key.size(), key) != 0) continue;
    const size_t begin = line.find_first_not_of(" \t:", key.size());
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

// Folders of the process's groups, from the root down: a quota of any group above counts too.
std::vector<std::string> folders_down(const std::string& root, const std::string& group) {
  std::vector<std::string> folders{root};
  std::string folder = root;
  std::istringstream parts(group);
  for (std::string part; std::getline(parts, part, '/');) {
    if (!part.empty()) folders.push_back(folder += "/" + part);
  }
  return folders;
}

// The process's group by a line "number:controllers:/group" of its cgroup file. Version 2 has one line,
// without controllers; version 1 has a tree for each controller.
std::string group_of(const std::string& membership, const std::string& controller) {
  std::ifstream file(membership);
  for (std::string line; std::getline(file, line);) {
    const size_t begin = line.find(':') + 1;
    const size_t end = line.find(':', begin);
    if (begin == 0 || end == std::string::npos) continue;
    const std::string controllers = line.substr(begin, end - begin);
    const bool named = ("," + controllers + ",").find("," + controller + ",") != std::string::npos;
    if (controllers == controller || (!controller.empty() && named)) return line.substr(end + 1);
  }
  return "";
}

double cores_of(const std::string& quota, const std::string& period) {
  const int64_t microseconds = number_or(quota, -1);
  const int64_t of = number_or(period, 0);
  if (microseconds <= 0 || of <= 0) return std::numeric_limits<double>::infinity();
  return static_cast<double>(microseconds) / static_cast<double>(of);
}

// `reclaimable`: the key in memory.stat of the cached files that the kernel drops when it needs their memory.
int64_t bytes_left(const std::string& folder, const char* limit_name, const char* used_name,
                   const char* reclaimable) {
  const int64_t limit = number_or(first_word(folder + limit_name), kNoLimit);
  if (limit == kNoLimit) return kNoLimit;
  const int64_t used = number_or(first_word(folder + used_name), 0);
  const int64_t cached = number_or(field(folder + "/memory.stat", std::string(reclaimable) + " "), 0);
  return std::max<int64_t>(0, limit - std::max<int64_t>(0, used - cached));
}

// By the tightest limit; kNoLimit without one.
int64_t cgroup_free_bytes(const std::string& root, const std::string& membership) {
  int64_t bytes = kNoLimit;
  for (const std::string& folder : folders_down(root, group_of(membership, ""))) {
    bytes = std::min(bytes, bytes_left(folder, "/memory.max", "/memory.current", "inactive_file"));
  }
  for (const std::string& folder : folders_down(root + "/memory", group_of(membership, "memory"))) {
    bytes = std::min(
        bytes, bytes_left(folder, "/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_inactive_file"));
  }
  return bytes;
}

// The tightest limit itself; kNoLimit without one.
int64_t cgroup_limit_bytes(const std::string& root, const std::string& membership) {
  int64_t bytes = kNoLimit;
  for (const std::string& folder : folders_down(root, group_of(membership, "")))
    bytes = std::min(bytes, number_or(first_word(folder + "/memory.max"), kNoLimit));
  for (const std::string& folder : folders_down(root + "/memory", group_of(membership, "memory")))
    bytes = std::min(bytes, number_or(first_word(folder + "/memory.limit_in_bytes"), kNoLimit));
  return bytes;
}

// Of the machine, by a line of /proc/meminfo; kNoLimit if it has none.
int64_t machine_bytes(const char* key) {
  const int64_t kilobytes = number_or(field("/proc/meminfo", key), 0);
  return kilobytes > 0 ? kilobytes * 1024 : kNoLimit;
}

// When the process was started, in seconds of the kernel's clock; negative when it cannot be read.
double process_start() {
  std::ifstream file("/proc/self/stat");
  std::string text;
  std::getline(file, text);
  // The second field is the program's name in brackets, which may hold anything; the start time is the 22nd.
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return -1;
  std::istringstream fields(text.substr(name_end + 1));
  std::string field;
  for (int i = 3; i <= 22; ++i) fields >> field;
  if (!fields) return -1;
  return static_cast<double>(number_or(field, 0)) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace

// The mask may be longer than cpu_set_t on the largest machines.
int64_t num_affinity_cores() {
  for (size_t num_cpus = CPU_SETSIZE; num_cpus <= size_t{1} << 20; num_cpus *= 2) {
    cpu_set_t* mask = CPU_ALLOC(num_cpus);
    if (mask == nullptr) break;
    const size_t size = CPU_ALLOC_SIZE(num_cpus);
    const bool fits = sched_getaffinity(0, size, mask) == 0;
    const int count = fits ? CPU_COUNT_S(size, mask) : 0;
    CPU_FREE(mask);
    if (fits) return std::max(count, 1);
  }
  return 1;
}

// Version 2 has cpu.max ("200000 100000"), version 1 cpu.cfs_quota_us.
double cgroup_quota_cores(const std::string& cgroup_root, const std::string& membership) {
  double cores = std::numeric_limits<double>::infinity();
  for (const std::string& folder : folders_down(cgroup_root, group_of(membership, ""))) {
    std::string period;
    const std::string quota = first_word(folder + "/cpu.max", &period);
    cores = std::min(cores, cores_of(quota, period));
  }
  for (const std::string& folder : folders_down(cgroup_root + "/cpu", group_of(membership, "cpu"))) {
    cores = std::min(
        cores, cores_of(first_word(folder + "/cpu.cfs_quota_us"), first_word(folder + "/cpu.cfs_period_us")));
  }
  return cores;
}

Throttling cgroup_throttling(const std::string& cgroup_root, const std::string& membership) {
  std::vector<std::string> folders = folders_down(cgroup_root, group_of(membership, ""));
  for (std::string& folder : folders_down(cgroup_root + "/cpu", group_of(membership, "cpu")))
    folders.push_back(std::move(folder));
  Throttling most;
  for (const std::string& folder : folders) {
    const int64_t throttled = number_or(field(folder + "/cpu.stat", "nr_throttled "), 0);
    if (throttled >= most.throttled)
      most = {.periods = number_or(field(folder + "/cpu.stat", "nr_periods "), 0), .throttled = throttled};
  }
  return most;
}

int64_t num_usable_cores(const std::string& cgroup_root, const std::string& membership) {
  const double cores = std::min(static_cast<double>(num_affinity_cores()),
                                std::ceil(cgroup_quota_cores(cgroup_root, membership)));
  return std::max<int64_t>(1, static_cast<int64_t>(cores));
}

std::optional<int64_t> threads_of_environment() {
  const char* const asked = std::getenv("OMP_NUM_THREADS");  // "4", or a list by level: "4,2"
  const int64_t threads = asked == nullptr ? 0 : number_or(asked, 0);
  return threads >= 1 ? std::optional(std::min(threads, kMaxThreads)) : std::nullopt;
}

int64_t num_default_threads() { return threads_of_environment().value_or(num_usable_cores()); }

CpuPressure cpu_pressure(const std::string& cgroup_root, const std::string& membership) {
  CpuPressure pressure;
  std::error_code error;  // a thread may end meanwhile
  for (std::filesystem::directory_iterator task("/proc/self/task", error), end; !error && task != end;
       task.increment(error))
    pressure.preemptions +=
        number_or(field(task->path().string() + "/status", "nonvoluntary_ctxt_switches"), 0);
  // Each group counts its own quota, so the sum is what the process has lost at most.
  for (const std::string& folder : folders_down(cgroup_root, group_of(membership, "")))
    pressure.throttled_seconds +=
        1e-6 * static_cast<double>(number_or(field(folder + "/cpu.stat", "throttled_usec"), 0));
  for (const std::string& folder : folders_down(cgroup_root + "/cpu", group_of(membership, "cpu")))
    pressure.throttled_seconds +=
        1e-9 * static_cast<double>(number_or(field(folder + "/cpu.stat", "throttled_time"), 0));
  pressure.num_runnable = number_or(field("/proc/stat", "procs_running"), 0);
  return pressure;
}

int64_t resident_bytes() {
  // Read for every row, so with bare calls: a stream would cost more than the number is worth.
  const int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  std::array<char, 128> text{};
  const ssize_t n = read(fd, text.data(), text.size() - 1);
  close(fd);
  if (n <= 0) return 0;
  char* end = nullptr;
  std::strtoll(text.data(), &end, 10);  // the whole size comes first
  return static_cast<int64_t>(std::strtoll(end, nullptr, 10)) * sysconf(_SC_PAGESIZE);
}

std::optional<int64_t> free_memory_bytes(const std::string& cgroup_root, const std::string& membership) {
  const int64_t bytes = std::min(machine_bytes("MemAvailable"), cgroup_free_bytes(cgroup_root, membership));
  return bytes == kNoLimit ? std::nullopt : std::optional(bytes);
}

std::optional<MemoryTotal> total_memory(const std::string& cgroup_root, const std::string& membership) {
  const int64_t machine = machine_bytes("MemTotal");
  const int64_t group = cgroup_limit_bytes(cgroup_root, membership);
  const MemoryTotal total{.bytes = std::min(machine, group), .of_cgroup = group < machine};
  return total.bytes == kNoLimit ? std::nullopt : std::optional(total);
}

std::string processor_name() {
  const std::string name = field("/proc/cpuinfo", "model name");
  return name.empty() ? "unknown processor" : name;
}

std::vector<std::string> processor_features() {
  std::istringstream flags(field("/proc/cpuinfo", "flags"));
  static constexpr std::array kKnown{"avx2",        "fma",         "f16c",     "avx512f",  "avx512_bf16",
                                     "avx512_fp16", "avx512_vnni", "amx_tile", "amx_bf16", "amx_fp16"};
  std::vector<std::string> found;
  for (std::string flag; flags >> flag;) {
    if (std::find(kKnown.begin(), kKnown.end(), flag) != kKnown.end()) found.push_back(flag);
  }
  return found;
}

std::string host_name() {
  char name[256] = "";
  if (gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "localhost";
  return name;
}

double process_seconds() {
  static const double start = process_start();  // asked for at each window of a run with a limit of time
  timespec now{};
  if (start < 0 || clock_gettime(CLOCK_BOOTTIME, &now) != 0) return 0;
  const double up = static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
  return std::max(0.0, up - start);
}

}  // namespace gradstep

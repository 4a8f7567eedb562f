// no torch
// Small readers of /proc and the cgroup files; whatever cannot be read counts as absent.
#include "gradstep/base/machine.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
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

// The value behind "key" in a file of lines "key : value" or "key value".
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

// Folder of this process's own group below the root (v2), or the root itself, as inside a container.
std::vector<std::string> cgroup_dirs(const std::string& root) {
  std::vector<std::string> dirs{root};
  const std::string group = field("/proc/self/cgroup", "0:");
  // A quota of any group above counts too, so each folder on the way down is looked at.
  std::string dir = root;
  std::istringstream parts(group.empty() || group[0] != '/' ? "" : group.substr(1));
  for (std::string part; std::getline(parts, part, '/');) dirs.push_back(dir += "/" + part);
  return dirs;
}

// Cores by cgroup v2 (cpu.max: "200000 100000") or v1 (cpu.cfs_quota_us); infinity without a quota.
double quota_cores(const std::string& dir) {
  std::string period;
  std::string quota = first_word(dir + "/cpu.max", &period);
  if (quota.empty()) {
    quota = first_word(dir + "/cpu/cpu.cfs_quota_us");
    period = first_word(dir + "/cpu/cpu.cfs_period_us");
  }
  const int64_t microseconds = number_or(quota, -1);
  const int64_t of = number_or(period, 0);
  if (microseconds <= 0 || of <= 0) return std::numeric_limits<double>::infinity();
  return static_cast<double>(microseconds) / static_cast<double>(of);
}

int64_t cgroup_free_bytes(const std::string& dir) {
  int64_t limit = number_or(first_word(dir + "/memory.max"), kNoLimit);
  int64_t used = number_or(first_word(dir + "/memory.current"), 0);
  if (limit == kNoLimit) {
    limit = number_or(first_word(dir + "/memory/memory.limit_in_bytes"), kNoLimit);
    used = number_or(first_word(dir + "/memory/memory.usage_in_bytes"), 0);
  }
  return limit == kNoLimit ? kNoLimit : std::max<int64_t>(0, limit - used);
}

}  // namespace

int64_t num_usable_cores(const std::string& cgroup_root) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  double cores = 1;
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) cores = CPU_COUNT(&mask);
  for (const std::string& dir : cgroup_dirs(cgroup_root)) cores = std::min(cores, std::ceil(quota_cores(dir)));
  return std::max<int64_t>(1, static_cast<int64_t>(cores));
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

int64_t free_memory_bytes(const std::string& cgroup_root) {
  int64_t bytes = number_or(field("/proc/meminfo", "MemAvailable"), 0) * 1024;
  for (const std::string& dir : cgroup_dirs(cgroup_root)) bytes = std::min(bytes, cgroup_free_bytes(dir));
  return bytes;
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

}  // namespace gradstep

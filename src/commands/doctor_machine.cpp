// Facts are asked for in one function and judged in others, so that tests can judge machines they do not
// have.
#include "commands/doctor_machine.h"

#include <sys/resource.h>
#include <torch/torch.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/number_text.h"
#include "gradstep/run/trainer.h"
#include "gradstep/step/precision.h"
#include "report/format.h"

namespace gradstep {
namespace {

constexpr int64_t kLittleMemory = 1'000'000'000;         // libtorch and a small run
constexpr uint64_t kFewOpenFiles = 256;                  // libraries, data, rows, a checkpoint
constexpr uint64_t kSmallFile = 100'000'000;             // a checkpoint of a small model
constexpr uint64_t kLittleAddressSpace = 8'000'000'000;  // libtorch and the stacks of its threads
constexpr int kFirstSaneYear = 2024;

std::string text_of_variable(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? "" : text;
}

uint64_t soft_limit(__rlimit_resource resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return MachineFacts::kNoLimit;
  return limit.rlim_cur;
}

// Processor time of the whole machine so far, in ticks; zeros if it cannot be read.
struct Ticks {
  double busy = 0;
  double all = 0;
};
Ticks machine_ticks() {
  std::ifstream file("/proc/stat");
  std::string label;
  file >> label;
  Ticks ticks;
  constexpr int kNumFields = 8;  // user nice system idle iowait irq softirq steal
  for (int i = 0; i < kNumFields; ++i) {
    double value = 0;
    if (!(file >> value)) return {};
    ticks.all += value;
    if (i != 3 && i != 4) ticks.busy += value;
  }
  return ticks;
}

// Nothing if the kernel does not tell.
std::optional<double> measure_busy_cores(int64_t online_cores) {
  const Ticks before = machine_ticks();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const Ticks after = machine_ticks();
  if (after.all <= before.all) return std::nullopt;
  return (after.busy - before.busy) / (after.all - before.all) * static_cast<double>(online_cores);
}

double load_of_last_minute() {
  double load = 0;
  return getloadavg(&load, 1) == 1 ? load : 0;
}

int64_t current_year() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  return gmtime_r(&now, &parts) == nullptr ? 0 : 1900 + parts.tm_year;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string cores_text(double cores) {
  return cores == std::floor(cores) ? fixed_text(cores, 0) : fixed_text(cores, 1);
}

int64_t usable_cores(const MachineFacts& facts) {
  const double cores = std::min(static_cast<double>(facts.affinity_cores), std::ceil(facts.quota_cores));
  return std::max<int64_t>(1, static_cast<int64_t>(cores));
}

Finding examine_processor(const MachineFacts& facts) {
  const std::string features = joined(facts.features);
  return fine("processor", facts.processor + (features.empty() ? "" : " (" + features + ")"));
}

Finding examine_kernels(const MachineFacts& facts) {
  const std::string text =
      "libtorch uses " + facts.kernels + (facts.onednn ? ", oneDNN is there" : ", without oneDNN");
  if (!facts.has_default_kernels) return fine("kernels", text);
  if (!facts.asked_kernels.empty())
    return warning("kernels", text + ": slow; unset ATEN_CPU_CAPABILITY, which is " + facts.asked_kernels);
  return warning("kernels", text + ": slow; use a processor (or a type of virtual machine) with AVX2");
}

Finding examine_devices(const MachineFacts& facts) {
  if (facts.num_gpus > 0) return fine("devices", "cpu and " + std::to_string(facts.num_gpus) + " CUDA");
  if (facts.has_gpu_driver)
    return fine("devices",
                "cpu; this LibTorch does not see the NVIDIA card that is here: to use it, build with "
                "a CUDA LibTorch");
  return fine("devices", "cpu");
}

Finding examine_memory(const MachineFacts& facts) {
  if (!facts.free_memory)
    return warning("memory", "not known: /proc/meminfo cannot be read; give --memory-limit");
  std::string text = bytes_text(*facts.free_memory) + " free";
  if (facts.memory)
    text += " of " + bytes_text(facts.memory->bytes) + (facts.memory->of_cgroup ? " (cgroup)" : "");
  if (*facts.free_memory >= kLittleMemory) return fine("memory", text);
  const bool limited = facts.memory && facts.memory->of_cgroup;
  return warning("memory", text + ": little; end other programs" +
                               (limited ? " or raise the limit of the container" : "") +
                               ", or lower --batch-size");
}

Finding examine_threads(const MachineFacts& facts) {
  const int64_t usable = usable_cores(facts);
  std::string text = std::to_string(usable) + (usable == 1 ? " core" : " cores") + " of " +
                     std::to_string(facts.online_cores) + " may be used (affinity " +
                     std::to_string(facts.affinity_cores) + ", quota " +
                     (std::isinf(facts.quota_cores) ? "none" : cores_text(facts.quota_cores)) + ")";
  if (facts.throttling.throttled > 0) {
    text += "; the quota held back in " + thousands_text(facts.throttling.throttled) + " of " +
            thousands_text(facts.throttling.periods) + " periods so far";
  }
  if (!facts.threads_error.empty())
    return problem("threads", text + ": " + facts.threads_error, ExitCode::kUsage);
  if (facts.omp_num_threads.empty()) return fine("threads", text);
  text += "; OMP_NUM_THREADS is " + facts.omp_num_threads;
  // "4", or a list by level: "4,2".
  const std::string first = facts.omp_num_threads.substr(0, facts.omp_num_threads.find(','));
  const std::optional<int64_t> asked = parse_integer(first);
  if (!asked || *asked < 1) return warning("threads", text + ", which is no number of threads; unset it");
  if (*asked <= usable) return fine("threads", text);
  return warning("threads",
                 text + ": threads wait for each other; unset it, or set it to " + std::to_string(usable));
}

// Warns if less than half of our cores are free, by the load of the last minute and at this moment: a run
// that has just ended is still in the first, and a short burst is in the second.
Finding examine_load(const MachineFacts& facts, bool run_goes_on) {
  std::string text = fixed_text(facts.load, 1) + " in the last minute";
  if (facts.busy_cores) text += ", " + fixed_text(*facts.busy_cores, 1) + " now";
  text += ", on " + std::to_string(facts.online_cores) + (facts.online_cores == 1 ? " core" : " cores");
  if (run_goes_on) return fine("load", text + ", the run itself included");
  const double spare =
      static_cast<double>(facts.online_cores) - 0.5 * static_cast<double>(usable_cores(facts));
  if (facts.load <= spare || facts.busy_cores.value_or(facts.load) <= spare) return fine("load", text);
  return warning("load", text +
                             ": others want the cores, and threads wait for each other; end the other "
                             "programs, or lower --threads");
}

std::string limit_text(const std::string& what, uint64_t limit, bool is_bytes) {
  const auto number = static_cast<int64_t>(std::min<uint64_t>(limit, INT64_MAX));
  return what + " " +
         (limit == MachineFacts::kNoLimit ? "none"
          : is_bytes                      ? bytes_text(number)
                                          : thousands_text(number));
}

Finding examine_limits(const MachineFacts& facts) {
  const std::string text = limit_text("open files", facts.max_open_files, false) + ", " +
                           limit_text("size of a file", facts.max_file_bytes, true) + ", " +
                           limit_text("address space", facts.max_address_bytes, true);
  std::string cure;
  if (facts.max_open_files < kFewOpenFiles) cure = "ulimit -n";
  if (facts.max_file_bytes < kSmallFile) cure += (cure.empty() ? "" : ", ") + std::string("ulimit -f");
  if (facts.max_address_bytes < kLittleAddressSpace)
    cure += (cure.empty() ? "" : ", ") + std::string("ulimit -v");
  return cure.empty() ? fine("limits", text) : warning("limits", text + ": low; raise it with " + cure);
}

Finding examine_clock(const MachineFacts& facts) {
  const std::string text = "the year is " + std::to_string(facts.year);
  if (facts.clock_goes_back)
    return warning("clock", text + ", and the monotonic clock went back: times in rows will be wrong");
  if (facts.year >= kFirstSaneYear) return fine("clock", text);
  return warning("clock", text + ": the clock is wrong, and so will be the times of files; set it");
}

// The threads that a run would start. An empty text if it may.
std::string try_threads() try {
  (void)configure_process({.device = "cpu"});
  return "";
} catch (const Error& error) {
  return error.what();
}

}  // namespace

MachineFacts machine_facts() {
  MachineFacts facts{.processor = processor_name(), .features = processor_features()};
  facts.kernels = at::get_cpu_capability();
#ifdef __x86_64__
  facts.has_default_kernels = facts.kernels == "DEFAULT";
#endif
  facts.asked_kernels = text_of_variable("ATEN_CPU_CAPABILITY");
  facts.onednn = has_onednn();
  facts.num_gpus = static_cast<int64_t>(torch::cuda::device_count());
  std::error_code ignored;
  facts.has_gpu_driver = std::filesystem::exists("/proc/driver/nvidia/version", ignored);
  facts.free_memory = free_memory_bytes();
  facts.memory = total_memory();
  facts.affinity_cores = num_affinity_cores();
  facts.online_cores = std::max<int64_t>(sysconf(_SC_NPROCESSORS_ONLN), facts.affinity_cores);
  facts.quota_cores = cgroup_quota_cores();
  facts.throttling = cgroup_throttling();
  facts.omp_num_threads = text_of_variable("OMP_NUM_THREADS");
  facts.load = load_of_last_minute();
  const auto before = std::chrono::steady_clock::now();
  facts.busy_cores = measure_busy_cores(facts.online_cores);
  facts.clock_goes_back = std::chrono::steady_clock::now() < before;
  facts.max_open_files = soft_limit(RLIMIT_NOFILE);
  facts.max_file_bytes = soft_limit(RLIMIT_FSIZE);
  facts.max_address_bytes = soft_limit(RLIMIT_AS);
  facts.year = current_year();
  facts.threads_error = try_threads();
  return facts;
}

void examine_machine(const MachineFacts& facts, bool run_goes_on, const Tell& tell) {
  tell(examine_processor(facts));
  tell(examine_kernels(facts));
  tell(examine_devices(facts));
  tell(examine_memory(facts));
  tell(examine_threads(facts));
  tell(examine_load(facts, run_goes_on));
  tell(examine_limits(facts));
  tell(examine_clock(facts));
}

}  // namespace gradstep

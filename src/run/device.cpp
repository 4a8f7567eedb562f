// One place that touches libtorch's process-wide switches.
#include "run/device.h"

#include <ATen/Parallel.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstdlib>
#include <latch>
#include <optional>
#include <system_error>
#include <thread>

#include "base/byte_count.h"
#include "base/machine.h"
#include "base/memory_limit.h"
#include "gradstep/base/error.h"

namespace gradstep {
namespace {

// OpenMP ends the process if it cannot start a thread, so the threads are tried out beforehand.
void require_threads(int64_t num_threads) {
  std::latch done(1);
  std::vector<std::thread> threads;
  bool refused = false;
  try {
    for (int64_t i = 0; i < num_threads; ++i) threads.emplace_back([&done] { done.wait(); });
  } catch (const std::system_error&) {
    refused = true;
  }
  done.count_down();
  for (std::thread& thread : threads) thread.join();
  if (!refused) return;
  throw ConfigError(
      "needs " + std::to_string(num_threads) + " threads beside the first, and may start " +
      std::to_string(threads.size()) +
      "; lower `threads` or `workers`, or raise the limit (ulimit -u, or that of the container)");
}

c10::Device cuda_device(const std::string& text) {
  if (text == "cuda") return {c10::kCUDA, 0};
  try {
    const c10::Device device(text);
    if (device.is_cuda() && device.index() >= 0) return device;
  } catch (const c10::Error&) {  // no device at all
  }
  throw ConfigError("`device` " + text + ": must be auto, cpu, cuda or cuda:N");
}

}  // namespace

c10::Device parse_device(const std::string& text) {
  const int64_t num_gpus = static_cast<int64_t>(torch::cuda::device_count());
  if (text == "auto") return num_gpus > 0 ? c10::Device(c10::kCUDA, 0) : c10::Device(c10::kCPU);
  if (text == "cpu") return c10::Device(c10::kCPU);
  const c10::Device device = cuda_device(text);
  if (device.index() < num_gpus) return device;
  throw ConfigError("`device` " + text + ": this machine shows " + std::to_string(num_gpus) +
                    " CUDA devices to this LibTorch; use `device` auto");
}

void set_threads(int64_t threads, int64_t num_others) {
  if (threads < 0 || threads > kMaxThreads)
    throw ConfigError("`threads` " + std::to_string(threads) + ": must be 0 (chosen) to " +
                      std::to_string(kMaxThreads));
  if (threads == 0) threads = num_default_threads();
  // After a smaller team OpenMP starts new threads while the old ones are still ending.
  require_threads(2 * (threads - 1) + num_others);
  at::set_num_threads(static_cast<int>(threads));
}

// Not all free memory is taken: threads, files and libraries need some of it.
int64_t tensor_memory_limit(const std::string& text) {
  if (text == "none") return 0;
  if (text != "auto") {
    if (const std::optional<int64_t> bytes = parse_byte_count(text)) return *bytes;
    throw ConfigError("`memory_limit` " + text + ": must be auto, none, or bytes such as 512m or 8g");
  }
  constexpr int64_t kMostReserve = int64_t{1} << 30;
  const std::optional<int64_t> free = free_memory_bytes();
  return free ? std::max<int64_t>(*free - std::min(*free / 10, kMostReserve), 1) : 0;
}

c10::Device configure_process(const ProcessOptions& options) {
  const c10::Device device = parse_device(options.device);
  const int64_t memory_limit = tensor_memory_limit(options.memory_limit);
  constexpr int64_t kReaders = 1;  // unpacks the evaluation part
  constexpr int64_t kSavers = 1;   // writes checkpoints
  set_threads(options.threads, std::max(options.num_workers, kReaders) + kSavers);
  // cuBLAS reads it when it starts, and libtorch refuses deterministic products without it.
  if (options.deterministic && device.is_cuda())
    setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
  if (device.is_cpu()) limit_tensor_memory(memory_limit);
  at::globalContext().setDeterministicAlgorithms(options.deterministic, /*warn_only=*/false);
  return device;
}

std::string describe_device(c10::Device device) {
  if (!device.is_cpu()) return device.str();
  const int threads = at::get_num_threads();
  return "cpu, " + std::to_string(threads) + (threads == 1 ? " thread" : " threads");
}

}  // namespace gradstep

// Everything a bug report should say about the machine.
#include "commands/env_command.h"

#include <torch/torch.h>

#include <cstdio>

#include "base/machine.h"
#include "commands/terminal.h"
#include "gradstep/base/version.h"
#include "model/mlp.h"
#include "report/format.h"
#include "run/device.h"
#include "step/precision_probe.h"

namespace gradstep {
namespace {

void print(const char* name, const std::string& value) { std::printf("%-12s %s\n", name, value.c_str()); }

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text.empty() ? "none of those that matter here" : text;
}

// The reference model on random pictures: what --precision auto would look at.
void print_probe(at::Device device) {
  constexpr int64_t kMicroBatch = 32;
  const Task task = mlp_task({});
  task.module->to(device);
  const Batch micro{at::randint(256, {kMicroBatch, 28, 28}, at::kByte),
                    at::randint(10, {kMicroBatch}, at::kLong)};
  std::vector<ProbeResult> ways{{Precision::kFp32, Matmul::kTorch}};
  if (device.is_cpu() && has_onednn()) ways.push_back({Precision::kFp32, Matmul::kOneDnn});
  ways.push_back({Precision::kBf16, Matmul::kTorch});
  ways.push_back({Precision::kFp16, Matmul::kTorch});
  ways = probe(task, micro, ways);
  std::printf("probe        forward and backward of 32 pictures through a reference MLP on %s\n",
              device.str().c_str());
  for (const ProbeResult& way : ways) {
    const std::string name =
        to_string(way.precision) + (way.precision == Precision::kFp32 ? ", " + to_string(way.matmul) : "");
    std::printf("  %-14s %8.3f ms  %6.2f x the speed of fp32\n", name.c_str(), way.seconds * 1e3,
                ways.front().seconds / way.seconds);
  }
}

}  // namespace

int run_env() {
  set_threads(0);
  print("gradstep",
        std::string(version()) + (git_commit().empty() ? "" : " (" + std::string(git_commit()) + ")"));
  print("libtorch", TORCH_VERSION);
  print("compiler", __VERSION__);
  print("processor", processor_name());
  print("features", joined(processor_features()));
  print("kernels", "libtorch uses " + at::get_cpu_capability() +
                       (has_onednn() ? ", oneDNN is there" : ", without oneDNN"));
  print("threads", std::to_string(at::get_num_threads()) + " (cores within affinity and cgroup quota)");
  const std::optional<int64_t> free = free_memory_bytes();
  print("memory", free ? bytes_text(*free) + " free" : "not known");
  const int num_gpus = static_cast<int>(torch::cuda::device_count());
  print("devices", num_gpus == 0 ? "cpu" : "cpu and " + std::to_string(num_gpus) + " CUDA");
  print_probe(parse_device("auto"));
  flush_stdout();
  return 0;
}

}  // namespace gradstep

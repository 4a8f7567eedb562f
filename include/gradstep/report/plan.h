// RunPlan: what a run is going to do, computed before it does anything. --dry-run prints it; it heads each
// run.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace gradstep {

struct RunPlan {
  std::string dataset{};  // name and folder
  int64_t train_samples = 0;
  int64_t eval_samples = 0;
  std::string eval_part{};  // "test set" or "validation part of the training set"
  std::string model{};      // "mlp 784-256-10"
  int64_t num_parameters = 0;
  std::string device{};     // "cpu, 2 threads"
  std::string precision{};  // "bf16"
  std::string precision_reason{};
  int64_t world_size = 1;
  int64_t micro_batch = 0;
  int64_t num_micro_batches = 0;  // in a full window, on rank 0
  int64_t global_batch = 0;
  int64_t windows_per_epoch = 0;
  int64_t last_window_samples = 0;  // of an epoch
  int64_t total_updates = 0;
  std::string ends{};                                   // "after 3 epochs", "after 500 updates"
  std::vector<std::pair<int64_t, double>> lr_points{};  // (update, lr) at five points
  std::string schedule{};                               // "cosine, 100 warm-up updates, peak 0.001, min 0"
  std::string optimizer{};                              // "adamw, betas 0.9 0.999, eps 1e-08"
  int64_t decay_tensors = 0, decay_parameters = 0;
  int64_t no_decay_tensors = 0, no_decay_parameters = 0;
  double weight_decay = 0;
  std::vector<std::string> groups{};  // "embed.*: learning rate x 0.1, 2 tensors (100 parameters)"
  int64_t checkpoint_bytes = 0;
  int64_t memory_bytes = 0;       // estimate: the process with data set and libraries, gradients, moments
  int64_t memory_free_bytes = 0;  // of the machine or its cgroup
  std::string output_dir{};
};

// Several lines of text, each ended by \n, aligned in two columns.
[[nodiscard]] std::string format_plan(const RunPlan& plan);

}  // namespace gradstep

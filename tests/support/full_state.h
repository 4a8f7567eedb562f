// full_state: a TrainState in which every field has a value of its own, and the tensors of a small model.
#pragma once

#include <torch/torch.h>

#include <limits>

#include "gradstep/checkpoint/checkpoint.h"

namespace gradstep::testing {

// A number of its own for each element, from the seed.
inline at::Tensor numbers(at::IntArrayRef shape, double seed) {
  return (torch::arange(torch::zeros(shape).numel(), at::kFloat) * 0.37 + seed).sin().reshape(shape);
}

// Parameters fc1 (2, 3) and fc2 (4, 2) of an mlp, a buffer, AdamW's moments and averages. `seed` tells one
// state's tensors from another's.
inline void fill_tensors(TrainState& state, double seed) {
  state.model = {{"fc1.weight", numbers({2, 3}, seed)},
                 {"fc1.bias", numbers({2}, seed + 1)},
                 {"fc2.weight", numbers({4, 2}, seed + 2)},
                 {"fc2.bias", numbers({4}, seed + 3)}};
  state.num_buffers = 1;  // the last one, for the count's sake
  state.optimizer.clear();
  state.ema.clear();
  state.user.tensors = {{"teacher.weight", numbers({2, 3}, seed + 7)},
                        {"places", torch::tensor({int64_t{3}, int64_t{1}})}};
  for (const auto& [name, tensor] : state.model) {
    state.optimizer.emplace_back(name + ".exp_avg", numbers(tensor.sizes(), seed + 4));
    state.optimizer.emplace_back(name + ".exp_avg_sq", numbers(tensor.sizes(), seed + 5).abs());
    state.optimizer.emplace_back(name + ".step", torch::full({}, seed + 6));
    state.ema.emplace_back(name, tensor * 0.5);
  }
}

inline TrainState full_state(int64_t update = 120, double seed = 0.5) {
  TrainState state;
  fill_tensors(state, seed);
  state.engine = {
      .counters = {.windows = 9007199254740993, .updates = update, .skipped_total = 11, .skips_in_a_row = 2},
      .loss_scale = 256,
      .num_good_updates = 7,
      .micro_batch = 5,
      .first_non_finite = "aten::mm after parameter fc2.weight",
      .spikes = {.losses = {0.1, 5e-324, -0.0}, .grad_norms = {1e300, 3, 1.0 / 3}}};
  state.next = {.epoch = 3, .index = 4, .number = 9223372036854775807};
  state.samples = 4611686018427387905;
  state.seconds = 1234.5678901234567;
  state.evals_due = 2.5;
  state.saves_due = 3.25;
  state.stepped_over = {{.window = 17, .loss = std::numeric_limits<double>::quiet_NaN(), .grad_norm = 0.125},
                        {.window = 18, .loss = 9.5, .grad_norm = std::numeric_limits<double>::infinity()}};
  state.num_rollbacks = 1;
  state.scale_history = {{1, 65536}, {40, 256}};
  state.last_eval = {.update = 119,
                     .epoch = 2,
                     .val_loss = -std::numeric_limits<double>::infinity(),
                     .metrics = {{"acc", 0.8665}, {"top5", 0.99}},
                     .samples = 10000,
                     .time_eval = 0.75,
                     .best = false,
                     .ema_val_loss = 0.25,
                     .ema_metrics = {{"acc", 0.875}}};
  state.best_eval = {.update = 60,
                     .epoch = 1,
                     .val_loss = 0.5,
                     .metrics = {{"acc", 0.9}, {"top5", 1}},
                     .samples = 9999,
                     .time_eval = 0.5,
                     .best = true};
  state.evals_without_best = 6;
  state.best_metric = "val_acc";
  state.asked_micro_batch = 32;
  state.eval_interval = {.value = 2, .unit = Interval::Unit::kEpochs};
  state.save_interval = {.value = 1, .unit = Interval::Unit::kEpochs};
  state.settings = {{"batch_size", "32"},
                    {"best_metric", "val_acc"},
                    {"data_dir", "/some where/\"quoted\" \xc3\xa9"},
                    {"eval_interval", "2ep"},
                    {"hidden", "2"},
                    {"lr", "0.30000000000000004"},
                    {"save_interval", "1ep"},
                    {"seed", "18446744073709551615"}};
  state.info = {.settings = {{"model", "mlp"},
                             {"hidden", "2"},
                             {"dropout", "0.25"},
                             {"label_smoothing", "0.1"},
                             {"dataset", "mnist"},
                             {"input_shape", "1x3"},
                             {"num_classes", "4"},
                             {"data_dir", "/data"},
                             {"val_fraction", "0.1"},
                             {"seed", "18446744073709551615"}},
                .precision = Precision::kBf16,
                .matmul = Matmul::kTorch,
                .update = update};
  state.user.values = {{"stage", "3"}, {"odd \"key\"", "two\nlines, \xc3\xa9"}};
  state.world_size = 2;
  state.global_batch = 96;
  state.total_updates = 500;
  state.planned_updates = 5000;
  state.eval_fingerprint = "fedcba9876543210";
  state.dataset_fingerprint = "0123456789abcdef";
  state.report_positions = {{"metrics.jsonl", "4711 bytes"}, {"odd \"name\"", ""}};
  state.version = "0.9.8";
  state.git_commit = "abcdef012345";
  state.torch_version = "2.13.0";
  return state;
}

}  // namespace gradstep::testing

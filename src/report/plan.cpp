// The plan as aligned text.
// no torch
#include <algorithm>

#include "base/number_text.h"
#include "gradstep/report/rows.h"
#include "report/format.h"

namespace gradstep {
namespace {

using Rows = std::vector<std::pair<std::string, std::string>>;

// "1 update", "5 updates"
std::string counted(int64_t count, const std::string& noun) {
  return thousands_text(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string batch_text(const RunPlan& plan) {
  std::string text = counted(plan.global_batch, "sample") + " an update: ";
  if (plan.world_size > 1) text += counted(plan.world_size, "rank") + ", on each ";
  const std::string micro_batches =
      plan.num_micro_batches == 1 ? " micro-batch of " : " micro-batches of up to ";
  return text + thousands_text(plan.num_micro_batches) + micro_batches + thousands_text(plan.micro_batch);
}

std::string epoch_text(const RunPlan& plan) {
  std::string text = counted(plan.windows_per_epoch, "window");
  if (plan.last_window_samples != plan.global_batch) {
    text += ", the last one of " + counted(plan.last_window_samples, "sample");
  }
  return text;
}

std::string lr_text(const RunPlan& plan) {
  std::string text;
  for (const auto& [update, lr] : plan.lr_points) {
    text += (text.empty() ? "" : ", ") + scientific_text(lr) + " at " + std::to_string(update);
  }
  return text;
}

std::string decay_text(const RunPlan& plan) {
  return shortest(plan.weight_decay) + " on " + counted(plan.decay_tensors, "tensor") + " (" +
         counted(plan.decay_parameters, "parameter") + "), none on " +
         counted(plan.no_decay_tensors, "tensor") + " (" + counted(plan.no_decay_parameters, "parameter") +
         ")";
}

std::string memory_text(const RunPlan& plan) {
  std::string text = "about " + bytes_text(plan.memory_bytes);
  if (plan.memory_free_bytes > 0) text += " of " + bytes_text(plan.memory_free_bytes) + " free";
  return text;
}

// With a comma between them, unless one is empty.
std::string joined(const std::string& first, const std::string& second) {
  return first + (first.empty() || second.empty() ? "" : ", ") + second;
}

// Empty: nothing is evaluated.
std::string eval_text(const RunPlan& plan) {
  return plan.eval_samples == 0 ? "" : joined(counted(plan.eval_samples, "sample"), plan.eval_part);
}

std::string length_text(const RunPlan& plan) {
  return joined(plan.total_updates == 0 ? "" : counted(plan.total_updates, "update"),
                plan.ends.empty() ? "" : "ends " + plan.ends);
}

// Rows with an empty text are left out.
Rows plan_rows(const RunPlan& plan) {
  Rows rows{
      {"data", joined(plan.dataset, counted(plan.train_samples, "training sample"))},
      {"evaluation", eval_text(plan)},
      {"model", joined(plan.model, counted(plan.num_parameters, "parameter"))},
      {"device", plan.device},
      {"precision", plan.precision + (plan.precision_reason.empty() ? "" : ": " + plan.precision_reason)},
      {"batch", batch_text(plan)},
      {"epoch", epoch_text(plan)},
      {"length", length_text(plan)},
      {"schedule", plan.schedule},
      {"lr", lr_text(plan)},
      {"optimizer", plan.optimizer},
      {"decay", decay_text(plan)}};
  for (const std::string& group : plan.groups) rows.emplace_back("group", group);
  const Rows rest{{"checkpoint", bytes_text(plan.checkpoint_bytes)},
                  {"memory", memory_text(plan)},
                  {"output", plan.output_dir}};
  rows.insert(rows.end(), rest.begin(), rest.end());
  return rows;
}

}  // namespace

std::string format_plan(const RunPlan& plan) {
  const Rows rows = plan_rows(plan);
  size_t column = 0;
  for (const auto& row : rows) column = std::max(column, row.first.size() + 2);
  std::string text;
  for (const auto& [name, value] : rows) {
    if (value.empty()) continue;
    std::string line = name;
    line.resize(column, ' ');
    text += line + value + "\n";
  }
  return text;
}

}  // namespace gradstep

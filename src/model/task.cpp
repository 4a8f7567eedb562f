// What a task must keep to, checked where its functions come back.
#include "gradstep/model/task.h"

#include <ATen/MemoryOverlap.h>
#include <torch/torch.h>

#include <algorithm>
#include <set>

#include "gradstep/base/error.h"

namespace gradstep {
namespace {

// Rows, console and files use the name as it is.
bool is_plain(const std::string& name) {
  return !name.empty() &&
         std::ranges::all_of(name, [](unsigned char c) { return c > 0x20 && c < 0x7f && c != '"'; });
}

// Such a tensor, made by expand(), can be saved but never restored.
void check_overlap(const std::string& name, const at::Tensor& tensor) {
  if (at::has_internal_overlap(tensor) != at::MemOverlap::Yes) return;
  throw ConfigError(name +
                    ": its elements share memory, so that no checkpoint can be restored; register a "
                    "clone() of it");
}

}  // namespace

Batch prepared(const Task& task, const Batch& batch) {
  if (!task.prepare) return batch;
  Batch result = task.prepare(batch);
  if (result.size() != batch.size()) {
    throw DataError("Task::prepare made " + std::to_string(result.size()) + " rows of " +
                    std::to_string(batch.size()) + "; each sample must stay one row");
  }
  return result;
}

void validate(const Task& task) {
  if (!task.module || !task.forward || !task.loss_sum)
    throw ConfigError(
        "the task lacks its module, forward or loss_sum; fill them in, such as by "
        "classification_task(module)");
  if (task.module->parameters().empty())
    throw ConfigError("the model has no parameters to train; register some with requires_grad");
  for (const auto& item : task.module->named_parameters())
    check_overlap("parameter " + item.key(), item.value());
  for (const auto& item : task.module->named_buffers()) check_overlap("buffer " + item.key(), item.value());
  std::set<std::string> names;
  for (const Metric& metric : task.metrics) {
    if (!is_plain(metric.name))
      throw ConfigError("metric \"" + metric.name +
                        "\": a name has letters, digits and signs only, without spaces");
    if (metric.name == "loss" || metric.name == "samples")
      throw ConfigError("metric \"" + metric.name + "\": rows have val_" + metric.name +
                        " already; choose another name");
    if (!names.insert(metric.name).second)
      throw ConfigError("two metrics are named " + metric.name + "; rename one");
    if (metric.num_rows < 1) throw ConfigError("metric " + metric.name + ": num_rows must be 1 or more");
  }
}

}  // namespace gradstep

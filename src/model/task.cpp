// What a task must keep to, checked where its functions come back.
#include "gradstep/model/task.h"

#include <torch/torch.h>

#include <algorithm>
#include <set>

#include "base/is_within.h"
#include "gradstep/base/error.h"
#include "io/storable.h"

namespace gradstep {
namespace {

// Rows, console and files use the name as it is.
bool is_plain(const std::string& name) {
  return !name.empty() &&
         std::ranges::all_of(name, [](unsigned char c) { return c > 0x20 && c < 0x7f && c != '"'; });
}

// Files and checkpoints must be able to hold the module, and to give it back.
void check_tensors(const torch::nn::Module& module) {
  const auto parameters = module.named_parameters();
  const auto buffers = module.named_buffers();
  const auto check = [](const std::string& kind, const auto& items) {
    NamedTensors tensors;
    for (const auto& item : items) tensors.emplace_back(item.key(), item.value());
    const std::string fault = why_not_restorable(tensors);
    if (!fault.empty()) throw ConfigError(kind + " " + fault);
  };
  check("parameter", parameters);
  check("buffer", buffers);
  for (const auto& item : buffers) {
    if (parameters.contains(item.key()))
      throw ConfigError("buffer " + item.key() + " has the name of a parameter; rename one");
  }
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
  check_tensors(*task.module);
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
    if (!is_within(metric.direction, Direction::kHigher, Direction::kNone))
      throw ConfigError("metric " + metric.name + ": direction must be Direction::kHigher, kLower or kNone");
    if (metric.num_rows < 1) throw ConfigError("metric " + metric.name + ": num_rows must be 1 or more");
  }
}

}  // namespace gradstep

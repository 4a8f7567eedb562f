// Batches in order, sums on the device, one look at them at the end.
#include "gradstep/run/evaluator.h"

#include <torch/torch.h>

#include "base/out_of_memory.h"
#include "dist/over_ranks.h"
#include "dist/together.h"
#include "gradstep/base/error.h"
#include "gradstep/data/loader.h"
#include "model/mode_guard.h"

namespace gradstep {
namespace {

constexpr int64_t kDefaultBatch = 1000;
// Everything the ranks add up, in one fp64 vector on the device: samples, the loss's sum and weight, then the
// sums and weights of each metric.
class Sums {
 public:
  Sums(const Task& task, bool tables, at::Device device) : task_(task) {
    int64_t size = kMetrics;
    for (const Metric& metric : task.metrics) {
      if (!tables && !metric.table_of.empty()) continue;
      metrics_.push_back(&metric);
      size += 2 * metric.num_rows;
    }
    values_ = at::zeros({size}, at::TensorOptions(at::kDouble).device(device));
  }

  // What a batch adds.
  [[nodiscard]] at::Tensor of(const at::Tensor& outputs, const Batch& batch) const {
    at::Tensor values = at::zeros_like(values_);
    const at::Tensor loss = task_.loss_sum(outputs, batch);
    const double weight = weight_of(task_, batch);
    values[kSamples] = static_cast<double>(batch.size());
    values[kLoss].copy_(loss);
    values[kWeight] = weight;
    int64_t first = kMetrics;
    for (const Metric* metric : metrics_) {
      const int64_t num_rows = metric->num_rows;
      if (metric->measure) {
        const MetricSum sum = metric->measure(outputs, batch);
        check(*metric, sum);
        values.narrow(0, first, num_rows).copy_(sum.sum.reshape({num_rows}));
        values.narrow(0, first + num_rows, num_rows).copy_(sum.weight.reshape({num_rows}));
      } else {
        values[first].copy_(loss);
        values[first + 1] = weight;
      }
      first += 2 * num_rows;
    }
    return values;
  }

  // To be added up over ranks.
  at::Tensor& values() { return values_; }

  [[nodiscard]] EvalResult result() const {
    const at::Tensor host = values_.cpu();
    const double* value = host.const_data_ptr<double>();
    EvalResult result{.loss = value[kLoss] / value[kWeight],
                      .samples = static_cast<int64_t>(value[kSamples])};
    value += kMetrics;
    for (const Metric* each : metrics_) {
      const Metric& metric = *each;
      const double* weight = value + metric.num_rows;
      if (metric.table_of.empty()) {
        result.metrics.push_back({metric.name, metric.of(*value, *weight)});
      } else {
        MetricTable table{.name = metric.name,
                          .rows_of = metric.table_of,
                          .sums = {value, weight},
                          .weights = {weight, weight + metric.num_rows}};
        for (size_t i = 0; i < table.sums.size(); ++i)
          table.values.push_back(metric.of(table.sums[i], table.weights[i]));
        result.tables.push_back(std::move(table));
      }
      value += 2 * metric.num_rows;
    }
    return result;
  }

 private:
  static constexpr int64_t kSamples = 0, kLoss = 1, kWeight = 2, kMetrics = 3;

  static void check(const Metric& metric, const MetricSum& sum) {
    if (sum.sum.numel() == metric.num_rows && sum.weight.numel() == metric.num_rows) return;
    throw Error(ExitCode::kUnexpected, "metric " + metric.name + ": expected a sum and a weight of " +
                                           std::to_string(metric.num_rows) + " numbers, found " +
                                           std::to_string(sum.sum.numel()) + " and " +
                                           std::to_string(sum.weight.numel()) +
                                           "; correct its measure function, or its num_rows");
  }

  const Task& task_;
  std::vector<const Metric*> metrics_;
  at::Tensor values_;
};

struct Measured {
  at::Tensor outputs;  // fp32 where they are numbers with a point
  Batch batch;
  at::Tensor sums;
};

// Evaluates samples first to end. Returns nothing if memory ran out for more than one; the memory of that try
// is free then.
std::optional<Measured> measure_within_memory(const Task& task, const Dataset& dataset, const Draw& draw,
                                              const Sums& sums, int64_t first, int64_t end,
                                              at::Device device) {
  try {
    const Batch stored = dataset.gather(at::arange(first, end), draw);
    check_rows(stored, end - first);
    Measured measured{.outputs = {}, .batch = prepared(task, stored.to(device)), .sums = {}};
    measured.outputs = task.forward(measured.batch);
    if (measured.outputs.is_floating_point()) measured.outputs = measured.outputs.to(at::kFloat);
    measured.sums = sums.of(measured.outputs, measured.batch);
    return measured;
  } catch (const std::exception& error) {
    if (end - first == 1 || !is_out_of_memory(error)) throw;
    return std::nullopt;
  }
}

}  // namespace

double EvalResult::at(const std::string& name) const {
  for (const MetricValue& metric : metrics) {
    if (metric.name == name) return metric.value;
  }
  throw std::out_of_range("no metric " + name);
}

EvalResult evaluate(const Task& task, const Dataset& dataset, World& world, const EvaluateOptions& options) {
  validate(task);
  const at::Device device = task.module->parameters().front().device();
  const at::NoGradGuard no_grad;
  const ModeGuard eval_mode(*task.module, /*training=*/false);
  for (at::Tensor& buffer : task.module->buffers()) world.broadcast(buffer, /*root=*/0);
  const AutocastGuard autocast(device.type(), options.precision, /*cache=*/false);
  int64_t batch_size = options.batch_size > 0 ? options.batch_size : kDefaultBatch;
  const Range part = array_split(dataset.size(), world.size(), world.rank());
  Sums sums(task, options.tables, device);
  bool complete = true;
  const auto measure_part = [&] {
    for (int64_t first = part.begin; first < part.end;) {
      if (options.should_stop && options.should_stop()) {
        complete = false;
        return;
      }
      const int64_t end = std::min(first + batch_size, part.end);
      const std::optional<Measured> measured =
          measure_within_memory(task, dataset, {.seed = options.seed}, sums, first, end, device);
      if (!measured) {
        batch_size = std::max<int64_t>((end - first) / 2, 1);
        continue;
      }
      sums.values().add_(measured->sums);
      if (options.on_batch) options.on_batch(first, measured->outputs, measured->batch);
      first = end;
    }
  };
  together(measure_part, device, world);
  world.all_reduce_sum(sums.values());
  EvalResult result;
  together([&] { result = sums.result(); }, device, world);  // Metric::value may throw
  result.complete = sum_over_ranks(complete ? 0 : 1, device, world) == 0;
  return result;
}

}  // namespace gradstep

// Batches in order, sums on the device, one look at them at the end.
#include "gradstep/run/evaluator.h"

#include <torch/torch.h>

#include "base/out_of_memory.h"
#include "gradstep/data/sampler.h"
#include "model/mode_guard.h"

namespace gradstep {
namespace {

constexpr int64_t kDefaultBatch = 1000;
constexpr int64_t kTop = 5;

// Everything the ranks add up, in one fp64 vector on the device: loss, hits, top-5 hits, samples, then per
// class samples and hits.
struct Sums {
  static constexpr int64_t kLoss = 0, kHits = 1, kTop5 = 2, kSamples = 3, kClasses = 4;
  Sums(int64_t num_classes, at::Device device)
      : values(at::zeros({kClasses + 2 * num_classes}, at::TensorOptions(at::kDouble).device(device))),
        classes(num_classes) {}
  at::Tensor values;
  int64_t classes;

  // scores (n, classes) fp32, targets (n)
  void add(const at::Tensor& scores, const at::Tensor& targets) {
    const int64_t n = targets.size(0);
    values[kLoss].add_(cross_entropy_sum(scores, targets));
    const at::Tensor hits = scores.argmax(1).eq(targets);  // (n)
    values[kHits].add_(hits.sum());
    const at::Tensor top = std::get<1>(scores.topk(std::min(kTop, scores.size(1)), 1));  // (n, 5)
    values[kTop5].add_(top.eq(targets.unsqueeze(1)).any(1).sum());
    values[kSamples].add_(static_cast<double>(n));
    values.narrow(0, kClasses, classes).index_add_(0, targets, at::ones({n}, values.options()));
    values.narrow(0, kClasses + classes, classes).index_add_(0, targets, hits.to(at::kDouble));
  }
};

EvalResult result_of(const Sums& sums) {
  const at::Tensor host = sums.values.cpu();
  const double* value = host.const_data_ptr<double>();
  EvalResult result;
  const double samples = value[Sums::kSamples];
  result.samples = static_cast<int64_t>(samples);
  result.loss = value[Sums::kLoss] / samples;
  result.accuracy = value[Sums::kHits] / samples;
  result.top5 = value[Sums::kTop5] / samples;
  for (int64_t i = 0; i < sums.classes; ++i) {
    result.class_samples.push_back(static_cast<int64_t>(value[Sums::kClasses + i]));
    result.class_hits.push_back(static_cast<int64_t>(value[Sums::kClasses + sums.classes + i]));
  }
  return result;
}

struct Scored {
  at::Tensor scores;   // (n, classes) fp32
  at::Tensor targets;  // (n)
};

// Samples first to end; nothing where memory ran out for more than one. The failed try's memory is free then.
std::optional<Scored> score_within_memory(const Task& task, const Dataset& dataset, int64_t first,
                                          int64_t end, at::Device device) {
  try {
    const Batch batch = dataset.gather(at::arange(first, end));
    const at::Tensor inputs = batch.inputs.to(device);
    return Scored{task.forward(task.prepare ? task.prepare(inputs) : inputs).to(at::kFloat),
                  batch.targets.to(device)};
  } catch (const std::exception& error) {
    if (end - first == 1 || !is_out_of_memory(error)) throw;
    return std::nullopt;
  }
}

}  // namespace

EvalResult evaluate(const Task& task, const Dataset& dataset, World& world, const EvaluateOptions& options) {
  const at::Device device = task.module->parameters().front().device();
  const at::NoGradGuard no_grad;
  const ModeGuard eval_mode(*task.module, /*training=*/false);
  for (at::Tensor& buffer : task.module->buffers()) world.broadcast(buffer, /*root=*/0);
  const AutocastGuard autocast(device.type(), options.precision, /*cache=*/false);
  int64_t batch_size = options.batch_size > 0 ? options.batch_size : kDefaultBatch;
  const Range part = array_split(dataset.size(), world.size(), world.rank());
  Sums sums(dataset.spec().num_classes, device);
  bool complete = true;
  for (int64_t first = part.begin; first < part.end;) {
    if (options.should_stop && options.should_stop()) {
      complete = false;
      break;
    }
    const int64_t end = std::min(first + batch_size, part.end);
    const std::optional<Scored> scored = score_within_memory(task, dataset, first, end, device);
    if (!scored) {
      batch_size = std::max<int64_t>((end - first) / 2, 1);
      continue;
    }
    sums.add(scored->scores, scored->targets);
    if (options.on_batch) options.on_batch(first, scored->scores, scored->targets);
    first = end;
  }
  world.all_reduce_sum(sums.values);
  EvalResult result = result_of(sums);
  result.complete = complete;
  return result;
}

}  // namespace gradstep

// The losses, weights and metrics of the ready-made tasks.
#include "gradstep/model/tasks.h"

#include <torch/torch.h>

#include "gradstep/base/error.h"
#include "io/shape_text.h"

namespace gradstep {
namespace {

constexpr int64_t kTop = 5;

void need_targets(const Batch& batch) {
  if (!batch.targets.defined())
    throw DataError("the batch has no targets, which the loss of this task needs; give the data set some");
}

double count_unless(const Batch& batch, int64_t ignore_index) {
  need_targets(batch);
  const at::Tensor& targets = batch.targets;
  return static_cast<double>(targets.numel() - targets.eq(ignore_index).sum().item<int64_t>());
}

// PyTorch would spread one over the other, and the loss would be that of every pair.
void need_same_shape(const at::Tensor& outputs, const Batch& batch) {
  need_targets(batch);
  if (outputs.sizes() == batch.targets.sizes()) return;
  throw DataError("the model gives outputs of shape " + shape_text(outputs.sizes()) + ", the targets have " +
                  shape_text(batch.targets.sizes()) + "; regression needs equal shapes");
}

// outputs (n, classes, ...), targets (n, ...) -> true where the best score is the target's
at::Tensor hits_of(const at::Tensor& outputs, const at::Tensor& targets) {
  return outputs.argmax(1).eq(targets);
}

at::Tensor top_hits_of(const at::Tensor& outputs, const at::Tensor& targets) {
  const at::Tensor top = std::get<1>(outputs.topk(std::min(kTop, outputs.size(1)), 1));  // (n, 5, ...)
  return top.eq(targets.unsqueeze(1)).any(1);
}

// Ignored targets equal no class, so they are no hits; they have no weight either.
MetricSum share(const at::Tensor& hits, const at::Tensor& targets, int64_t ignore_index) {
  return {hits.sum(), targets.ne(ignore_index).sum()};
}

MetricSum by_class(const at::Tensor& hits, const at::Tensor& targets, const ClassificationOptions& options) {
  const at::Tensor counts = targets.ne(options.ignore_index).flatten();
  const at::Tensor classes = targets.flatten().index({counts});
  const at::Tensor zeros = at::zeros({options.num_classes}, hits.options().dtype(at::kDouble));
  const at::Tensor ones = at::ones({classes.numel()}, zeros.options());
  return {zeros.index_add(0, classes, hits.flatten().index({counts}).to(at::kDouble)),
          zeros.index_add(0, classes, ones)};
}

}  // namespace

at::Tensor cross_entropy_sum(const at::Tensor& outputs, const at::Tensor& targets, double label_smoothing,
                             int64_t ignore_index) {
  return at::cross_entropy_loss(outputs.to(at::kFloat), targets, {}, at::Reduction::Sum, ignore_index,
                                label_smoothing);
}

namespace detail {

Task classification(const std::shared_ptr<torch::nn::Module>& module, const ClassificationOptions& options) {
  Task task;
  task.module = module;
  task.loss_sum = [module = module.get(), options](const at::Tensor& outputs, const Batch& batch) {
    need_targets(batch);
    return cross_entropy_sum(outputs, batch.targets, module->is_training() ? options.label_smoothing : 0,
                             options.ignore_index);
  };
  const int64_t ignored = options.ignore_index;
  if (!options.all_targets_count)
    task.weight = [ignored](const Batch& batch) { return count_unless(batch, ignored); };
  task.metrics.push_back({.name = "acc", .measure = [ignored](const at::Tensor& outputs, const Batch& batch) {
                            return share(hits_of(outputs, batch.targets), batch.targets, ignored);
                          }});
  if (options.num_classes > kTop) {
    task.metrics.push_back(
        {.name = "top5", .measure = [ignored](const at::Tensor& outputs, const Batch& batch) {
           return share(top_hits_of(outputs, batch.targets), batch.targets, ignored);
         }});
  }
  if (options.num_classes > 0) {
    task.metrics.push_back({.name = "accuracy",
                            .measure =
                                [options](const at::Tensor& outputs, const Batch& batch) {
                                  return by_class(hits_of(outputs, batch.targets), batch.targets, options);
                                },
                            .table_of = "class",
                            .num_rows = options.num_classes});
  }
  return task;
}

Task regression(const std::shared_ptr<torch::nn::Module>& module) {
  Task task;
  task.module = module;
  task.loss_sum = [](const at::Tensor& outputs, const Batch& batch) {
    need_same_shape(outputs, batch);
    return at::mse_loss(outputs.to(at::kFloat), batch.targets.to(at::kFloat), at::Reduction::Sum);
  };
  task.weight = [](const Batch& batch) {
    need_targets(batch);
    return static_cast<double>(batch.targets.numel());
  };
  task.metrics = {{.name = "mse", .direction = Direction::kLower},
                  {.name = "mae",
                   .direction = Direction::kLower,
                   .measure = [](const at::Tensor& outputs, const Batch& batch) -> MetricSum {
                     const at::Tensor error = outputs.to(at::kFloat) - batch.targets.to(at::kFloat);
                     return {error.abs().sum(at::kDouble),
                             at::full({}, error.numel(), error.options().dtype(at::kDouble))};
                   }}};
  return task;
}

Task language(const std::shared_ptr<torch::nn::Module>& module, int64_t ignore_index) {
  Task task;
  task.module = module;
  task.loss_sum = [ignore_index](const at::Tensor& outputs, const Batch& batch) {
    need_targets(batch);
    return cross_entropy_sum(outputs.flatten(0, 1), batch.targets.flatten(), 0, ignore_index);
  };
  task.weight = [ignore_index](const Batch& batch) { return count_unless(batch, ignore_index); };
  task.metrics = {{.name = "perplexity",
                   .direction = Direction::kLower,
                   .value = [](double sum, double weight) { return std::exp(sum / weight); }},
                  {.name = "tokens",
                   .direction = Direction::kNone,
                   .value = [](double /*sum*/, double weight) { return weight; }}};
  return task;
}

}  // namespace detail
}  // namespace gradstep

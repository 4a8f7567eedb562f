// The bare loop: the ATen calls that Engine::step makes for one window and nothing around them, to hold the
// Engine against. Flags as in bench_common.h, and --matmul torch|onednn, --allocator kept|default; --data-dir
// holds uncompressed IDX files.
#include <ATen/autocast_mode.h>
#include <torch/torch.h>

#include "base/allocator.h"
#include "bench_common.h"
#include "gradstep/step/precision.h"
#include "model/normalize.h"
#include "step/clip.h"

namespace {

using Tensors = std::vector<at::Tensor>;

Tensors gradients(const Tensors& parameters) {
  Tensors grads;
  for (const auto& parameter : parameters) grads.push_back(parameter.grad());
  return grads;
}

// AdamW by the fused kernel, in two groups: matrices decay, biases do not.
class FusedAdamW {
 public:
  explicit FusedAdamW(const Tensors& parameters) {
    groups_[0].weight_decay = 1e-4;
    for (const auto& parameter : parameters) {
      auto& group = groups_[parameter.dim() >= 2 ? 0 : 1];
      group.parameters.push_back(parameter);
      group.exp_avgs.push_back(at::zeros_like(parameter));
      group.exp_avg_sqs.push_back(at::zeros_like(parameter));
      group.steps.push_back(at::zeros({}, at::kFloat));
    }
  }

  void step(double lr) {
    const at::NoGradGuard no_grad;
    for (auto& group : groups_) {
      at::_foreach_add_(group.steps, 1);
      at::_fused_adamw_(group.parameters, gradients(group.parameters), group.exp_avgs, group.exp_avg_sqs, {},
                        group.steps, lr, 0.9, 0.999, group.weight_decay, 1e-8, /*amsgrad=*/false,
                        /*maximize=*/false);
    }
  }

 private:
  struct Group {
    Tensors parameters, exp_avgs, exp_avg_sqs, steps;
    double weight_decay = 0;
  };
  std::array<Group, 2> groups_;
};

// Forward and loss under autocast where asked for, backward of the share of the window. Returns the sum of
// the losses.
at::Tensor micro_batch(bench::Mlp& model, const at::Tensor& pixels, const at::Tensor& labels, bool bf16,
                       const at::Tensor& seed_grad) {
  at::autocast::increment_nesting();
  at::autocast::set_autocast_enabled(at::kCPU, bf16);
  const auto output = model.forward(pixels);
  const auto loss = at::cross_entropy_loss(output.to(at::kFloat), labels, {}, at::Reduction::Sum);
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(at::kCPU, false);
  torch::autograd::backward({loss}, {seed_grad});
  return loss.detach();
}

// One window: gradients of the mean loss, norm, clip, optimizer. Returns the mean loss.
double update(bench::Mlp& model, const Tensors& parameters, FusedAdamW& optimizer, const bench::Job& job,
              const at::Tensor& bytes, const at::Tensor& labels, double lr) {
  const int64_t size = labels.size(0);
  const auto pixels = gradstep::normalize_bytes(bytes);
  const auto seed_grad = at::full({}, 1.0 / static_cast<double>(size), at::kFloat);
  Tensors losses;
  for (int64_t begin = 0; begin < size; begin += job.batch_size) {
    const int64_t length = std::min(job.batch_size, size - begin);
    losses.push_back(micro_batch(model, pixels.narrow(0, begin, length), labels.narrow(0, begin, length),
                                 job.precision == "bf16", seed_grad));
  }
  auto grads = gradients(parameters);
  auto norm = at::zeros({}, at::kFloat), found_inf = at::zeros({}, at::kFloat);
  gradstep::global_norm(grads, norm, found_inf);
  gradstep::clip_by_norm_(grads, norm, bench::kClipGrad);
  if (found_inf.item<float>() == 0) optimizer.step(lr);
  for (const auto& parameter : parameters) parameter.mutable_grad().reset();
  double loss_sum = 0;
  for (const auto& loss : losses) loss_sum += loss.item<double>();
  return loss_sum / static_cast<double>(size);
}

double train(const bench::Job& job, bench::SteadyClock& clock) {
  const bench::Pictures pictures(job.data_dir);
  torch::manual_seed(0);
  bench::Mlp model;
  const auto parameters = model.parameters();
  FusedAdamW optimizer(parameters);
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  int64_t updates = 0;
  while (true) {
    for (const auto& ids : at::randperm(pictures.size()).split(job.window())) {
      const double loss = update(model, parameters, optimizer, job, pictures.bytes.index_select(0, ids),
                                 pictures.labels.index_select(0, ids), bench::learning_rate(++updates));
      if (!clock.tick(ids.size(0))) return loss;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Flags flags(argc, argv);
  if (flags.text("allocator", "kept") == "kept") gradstep::keep_freed_memory();  // as the program does
  const bench::Job job(flags);
  gradstep::use_matmul(gradstep::parse_matmul(flags.text("matmul", "torch")));
  bench::SteadyClock clock(job.warmup_windows, job.seconds);
  const double loss = train(job, clock);
  bench::print_result("bare_loop", job, clock, loss);
}

// The bare loop: the ATen calls of one update and nothing around them, to hold the Engine against.
// Flags as in bench_common.h; --data-dir holds uncompressed IDX files. The window is gathered and normalised in the loop.
#include <ATen/autocast_mode.h>
#include <torch/torch.h>

#include <cmath>

#include "bench_common.h"

namespace {

using Tensors = std::vector<at::Tensor>;

// AdamW by the fused kernel, with two groups: matrices decay, biases do not.
class FusedAdamW {
 public:
  explicit FusedAdamW(const Tensors& parameters) {
    for (const auto& parameter : parameters) {
      auto& group = groups_[parameter.dim() >= 2 ? 0 : 1];
      group.parameters.push_back(parameter);
      group.exp_avgs.push_back(at::zeros_like(parameter));
      group.exp_avg_sqs.push_back(at::zeros_like(parameter));
      group.steps.push_back(at::zeros({}, at::kFloat));
    }
    groups_[0].weight_decay = 1e-4;
  }

  void step(double lr) {
    const at::NoGradGuard no_grad;
    for (auto& group : groups_) {
      Tensors gradients;
      for (const auto& parameter : group.parameters) gradients.push_back(parameter.grad());
      at::_foreach_add_(group.steps, 1);
      at::_fused_adamw_(group.parameters, gradients, group.exp_avgs, group.exp_avg_sqs, {}, group.steps, lr, 0.9, 0.999,
                        group.weight_decay, 1e-8, /*amsgrad=*/false, /*maximize=*/false);
    }
  }

 private:
  struct Group {
    Tensors parameters, exp_avgs, exp_avg_sqs, steps;
    double weight_decay = 0;
  };
  std::array<Group, 2> groups_;
};

// The 2-norm over all gradients.
double gradient_norm(const Tensors& parameters) {
  Tensors gradients;
  for (const auto& parameter : parameters) gradients.push_back(parameter.grad());
  return at::linalg_vector_norm(at::stack(at::_foreach_norm(gradients, 2)), 2).item<double>();
}

// Forward under autocast where the precision asks for it, the loss as a sum in fp32, backward of its share.
double micro_batch(bench::Mlp& model, const at::Tensor& pixels, const at::Tensor& labels, bool bf16, double divisor) {
  at::autocast::set_autocast_enabled(at::kCPU, bf16);
  at::autocast::increment_nesting();
  const auto output = model.forward(pixels);
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(at::kCPU, false);
  const auto loss = at::cross_entropy_loss(output.to(at::kFloat), labels, {}, at::Reduction::Sum);
  (loss / divisor).backward();
  return loss.item<double>();
}

double train(const bench::Job& job, bench::SteadyClock& clock) {
  const auto pictures = bench::read_idx(job.data_dir + "/train-images-idx3-ubyte");
  const auto labels = bench::read_idx(job.data_dir + "/train-labels-idx1-ubyte").view({-1}).to(at::kLong);
  torch::manual_seed(0);
  bench::Mlp model;
  const auto parameters = model.parameters();
  FusedAdamW optimizer(parameters);
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  int64_t updates = 0;
  while (true) {
    for (const auto& ids : at::randperm(pictures.size(0)).split(job.window())) {
      const auto pixels = pictures.index_select(0, ids).to(at::kFloat).div_(255).sub_(0.5).div_(0.5);
      const auto targets = labels.index_select(0, ids);
      double loss = 0;
      for (int64_t begin = 0; begin < ids.size(0); begin += job.batch_size) {
        const int64_t end = std::min(begin + job.batch_size, ids.size(0));
        loss += micro_batch(model, pixels.slice(0, begin, end), targets.slice(0, begin, end), job.precision == "bf16",
                            static_cast<double>(ids.size(0)));
      }
      if (std::isfinite(gradient_norm(parameters))) optimizer.step(bench::learning_rate(++updates));
      model.zero_grad();
      if (!clock.tick(ids.size(0))) return loss / static_cast<double>(ids.size(0));
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Job job(bench::Flags(argc, argv));
  bench::SteadyClock clock(job.warmup_windows, job.seconds);
  const double loss = train(job, clock);
  bench::print_result("bare_loop", job, clock, loss);
}

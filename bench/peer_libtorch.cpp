// Peer: the training loop that LibTorch's own parts give a user: datasets::MNIST, DataLoader,
// torch::optim::AdamW. Flags as in bench_common.h; --data-dir holds uncompressed IDX files, --workers goes to
// the DataLoader.
#include <torch/torch.h>

#include <cmath>

#include "bench_common.h"

namespace {

// What one window needs beside the data: micro-batches seen, their losses, the optimizer.
class Accumulator {
 public:
  Accumulator(bench::Mlp& model, const bench::Job& job)
      : model_(model),
        job_(job),
        optimizer_(model.parameters(), torch::optim::AdamWOptions(1e-3).weight_decay(1e-4)) {}

  // Returns whether this micro-batch was the last of its window.
  bool micro_batch(const at::Tensor& pictures, const at::Tensor& labels) {
    const auto output = model_.forward(pictures.flatten(1));
    const auto loss =
        torch::nn::functional::cross_entropy(output, labels) / static_cast<double>(job_.grad_accum_steps);
    loss.backward();
    window_loss_ += loss.item<double>();
    samples_ += labels.size(0);
    if (++num_micro_batches_ < job_.grad_accum_steps) return false;
    for (auto& group : optimizer_.param_groups()) group.options().set_lr(bench::learning_rate(++updates_));
    optimizer_.step();
    optimizer_.zero_grad();
    return true;
  }
  // Loss and samples of the finished window; begins the next.
  std::pair<double, int64_t> finish() {
    num_micro_batches_ = 0;
    return {std::exchange(window_loss_, 0), std::exchange(samples_, 0)};
  }

 private:
  bench::Mlp& model_;
  const bench::Job& job_;
  torch::optim::AdamW optimizer_;
  int64_t num_micro_batches_ = 0;
  int64_t updates_ = 0;
  int64_t samples_ = 0;
  double window_loss_ = 0;
};

double train(const bench::Job& job, bench::SteadyClock& clock) {
  torch::manual_seed(0);
  bench::Mlp model;
  Accumulator accumulator(model, job);
  auto dataset = torch::data::datasets::MNIST(job.data_dir)
                     .map(torch::data::transforms::Normalize<>(0.5, 0.5))
                     .map(torch::data::transforms::Stack<>());
  const auto options = torch::data::DataLoaderOptions(static_cast<size_t>(job.batch_size))
                           .workers(static_cast<size_t>(job.workers));
  auto loader =
      torch::data::make_data_loader<torch::data::samplers::RandomSampler>(std::move(dataset), options);
  while (true) {
    for (auto& batch : *loader) {
      if (!accumulator.micro_batch(batch.data, batch.target)) continue;
      const auto [loss, samples] = accumulator.finish();
      if (!clock.tick(samples)) return loss;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Job job(bench::Flags(argc, argv));
  bench::SteadyClock clock(job.warmup_windows, job.seconds);
  const double loss = train(job, clock);
  bench::print_result("libtorch", job, clock, loss);
}

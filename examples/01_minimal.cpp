// Trains a torch::nn::Module of your own: the Engine turns each window of samples into one exact update.
#include <torch/torch.h>

#include <cstdio>

#include "gradstep/gradstep.h"

// Your module, as you would write it without gradstep.
struct NetImpl : torch::nn::Module {
  NetImpl() {
    register_module("hidden", hidden);
    register_module("scores", scores);
  }
  at::Tensor forward(const at::Tensor& points) { return scores(torch::relu(hidden(points))); }  // (n, 2)
  torch::nn::Linear hidden{2, 64};
  torch::nn::Linear scores{64, 2};
};
TORCH_MODULE(Net);

int main() {
  torch::manual_seed(0);
  Net net;
  // Your data: points of the plane. Class 1 lies outside the unit circle.
  const at::Tensor points = torch::randn({4096, 2});
  const at::Tensor classes = points.norm(2, 1).gt(1).to(torch::kLong);
  const auto data =
      std::make_shared<gradstep::TensorDataset>(gradstep::DatasetSpec{"circle", {2}, 2}, points, classes);

  constexpr int64_t kUpdates = 200;
  gradstep::SoloWorld world;
  gradstep::Engine engine(
      gradstep::classification_task(net),
      {.optimizer = {.weight_decay = 0.01},
       .schedule = {.peak = 0.02, .warmup_steps = 20, .total_steps = kUpdates},  // then a cosine down to 0
       .micro_batch = 64,  // goes through the model at once
       .clip_grad = 1.0},
      world);
  // An update takes 250 samples: 64 + 64 + 64 + 58. No size need divide another.
  gradstep::Loader loader(data, gradstep::Sampler(data->size(), /*global_batch=*/250, /*seed=*/0), {});

  while (engine.counters().updates < kUpdates) {
    const gradstep::StepReport report = engine.step(loader.next());
    if (report.diverged) {
      std::fprintf(stderr, "diverged, first in %s\n", report.first_non_finite.c_str());
      return static_cast<int>(gradstep::ExitCode::kDiverged);
    }
    if (report.update % 20 != 0) continue;
    std::printf("update %3d  loss %.4f  lr %.5f  norm %.3f\n", static_cast<int>(report.update), report.loss,
                report.lr, report.grad_norm);
  }
  return 0;
}

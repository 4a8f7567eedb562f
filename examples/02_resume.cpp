// A loop of your own that may be killed at any moment: call it again, and it goes on bit for bit.
#include <torch/torch.h>

#include <cstdio>

#include "gradstep/gradstep.h"

int main(int argc, char** argv) try {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: 02_resume FOLDER [UPDATES-OF-THIS-START]\n");
    return static_cast<int>(gradstep::ExitCode::kUsage);
  }
  constexpr int64_t kUpdates = 200;
  const int64_t updates_of_this_start = argc == 3 ? std::atoll(argv[2]) : kUpdates;

  torch::manual_seed(0);
  torch::nn::Sequential net(torch::nn::Linear(2, 64), torch::nn::ReLU(), torch::nn::Dropout(0.1),
                            torch::nn::Linear(64, 2));
  const at::Tensor points = torch::randn({4096, 2});
  const at::Tensor classes = points.norm(2, 1).gt(1).to(torch::kLong);
  const auto data =
      std::make_shared<gradstep::TensorDataset>(gradstep::DatasetSpec{"circle", {2}, 2}, points, classes);
  gradstep::SoloWorld world;
  gradstep::Engine engine(gradstep::classification_task(net),
                          {.schedule = {.peak = 0.02, .warmup_steps = 20, .total_steps = kUpdates}}, world);

  const gradstep::OutputDir folder(argv[1], gradstep::OutputDir::Use::kGoOn);  // nobody else writes there
  const auto found = gradstep::newest_checkpoint(folder.path());
  if (found) gradstep::restore_engine(found->path, found->state, engine);
  gradstep::Loader loader(data, gradstep::Sampler(data->size(), /*global_batch=*/250, /*seed=*/0), {},
                          found ? found->state.next : gradstep::Position{});
  gradstep::Checkpointer checkpointer(gradstep::posix_file_system(),
                                      {.output_dir = folder.path(), .keep = 2});
  const auto save = [&] {
    gradstep::TrainState state = gradstep::capture_engine(engine);
    state.next = loader.position();  // windows handed out, not prefetched
    checkpointer.save(state);        // waits for the copy only
  };
  const auto check_saves = [&] {
    for (const gradstep::SaveOutcome& outcome : checkpointer.outcomes())
      if (!outcome.error.empty()) throw gradstep::CheckpointError(outcome.error);
  };

  const int64_t end = std::min(kUpdates, engine.counters().updates + updates_of_this_start);
  while (engine.counters().updates < end) {
    const gradstep::StepReport report = engine.step(loader.next());
    if (report.diverged) throw gradstep::Diverged("not finite, first in " + report.first_non_finite);
    if (!report.skipped() && report.update % 20 == 0) save();
    check_saves();
  }
  if (engine.counters().updates % 20 != 0) save();
  checkpointer.wait();
  check_saves();
  std::printf("update %ld  sum of the first weights %.17g\n", engine.counters().updates,
              net->parameters().front().to(torch::kDouble).sum().item<double>());
} catch (const std::exception& error) {  // a full disk, a file of another model, a loss that is not finite
  std::fprintf(stderr, "%s\n", error.what());
  const auto* known = dynamic_cast<const gradstep::Error*>(&error);
  return static_cast<int>(known ? known->exit_code() : gradstep::ExitCode::kUnexpected);
}

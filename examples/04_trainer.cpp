// A command line of your own around a Trainer: evaluation, checkpoints, the best model, signals and resume in
// one value, the Job. Run it again with the same folder and it goes on bit for bit.
#include <torch/torch.h>

#include <cstdio>

#include "gradstep/gradstep.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: 04_trainer FOLDER\n");
    return static_cast<int>(gradstep::ExitCode::kUsage);
  }
  try {
    const at::Device device = gradstep::configure_process();
    torch::manual_seed(0);
    torch::nn::Sequential net(torch::nn::Linear(1, 64), torch::nn::Tanh(), torch::nn::Linear(64, 1));
    net->to(device);
    const at::Tensor x = torch::rand({4096, 1}) * 6 - 3;
    const at::Tensor y = torch::sin(x);
    const gradstep::DatasetSpec spec{.name = "sine", .input_shape = {1}};
    const auto data = std::make_shared<gradstep::TensorDataset>(spec, x, y);

    gradstep::Job job;
    job.task = gradstep::regression_task(net);
    job.data = gradstep::split_validation(data, 0.1, /*seed=*/0);
    job.engine = {.schedule = {.peak = 0.01, .warmup_steps = 20}, .micro_batch = 64, .clip_grad = 1.0};
    job.global_batch = 128;
    job.length = {.epochs = 40};
    job.save = {.interval = {20, gradstep::Interval::Unit::kUpdates}, .keep = 2};
    job.eval = {.interval = {1, gradstep::Interval::Unit::kEpochs}, .best_metric = "val_mae"};

    gradstep::StopSignals signals;  // SIGINT, SIGTERM and SIGUSR1 end the run with a checkpoint
    const gradstep::OutputDir folder(argv[1], gradstep::OutputDir::Use::kGoOn);
    gradstep::SoloWorld world;
    gradstep::Trainer trainer(job, world);
    trainer.resume_newest(folder.path());
    gradstep::SinkList sinks;
    sinks.add(std::make_unique<gradstep::JsonlSink>(folder.file("metrics.jsonl")));
    sinks.add(std::make_unique<gradstep::ConsoleSink>(stdout, gradstep::ConsoleOptions{.log_interval = 50}));
    const gradstep::RunEnd end =
        trainer.run(sinks, signals.token(), gradstep::posix_file_system(), folder.path());
    return static_cast<int>(end.stopped_by);
  } catch (const gradstep::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.exit_code());
  } catch (const std::exception& error) {  // such as a full disk
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(gradstep::ExitCode::kUnexpected);
  }
}

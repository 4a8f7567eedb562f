// A run with an optimizer and groups of the user's own goes on from a checkpoint bit for bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "gradstep/base/error.h"
#include "gradstep/checkpoint/checkpoint.h"
#include "gradstep/checkpoint/checkpointer.h"
#include "support/adagrad.h"
#include "support/ranked_run.h"
#include "support/scratch_dir.h"
#include "support/toys.h"

namespace gradstep::testing {
namespace {

EngineOptions with_adagrad(const std::string& groups) {
  return {.optimizer = {.groups = parse_param_groups(groups)},
          .make_optimizer = make_adagrad,
          .schedule = {.function = [](int64_t k) { return 0.1 / static_cast<double>(k); }},
          .ema_decay = 0.75};
}

struct Trainee {
  explicit Trainee(const std::string& groups = "0.bias:frozen; 2.*:lr=0.5")
      : model(small_classifier()), engine(classification_task(model), with_adagrad(groups), solo()) {}
  void steps(int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n)
      engine.step((at::arange(24, at::kFloat).view({6, 4}) + n).sin(), at::arange(6).remainder(3));
  }
  std::vector<at::Tensor> all() {
    std::vector<at::Tensor> tensors = everything(engine);
    for (const at::Tensor& tensor : model->parameters()) tensors.push_back(tensor.detach().clone());
    for (const auto& [name, average] : engine.averages()) tensors.push_back(average.clone());
    return tensors;
  }
  torch::nn::Sequential model;
  Engine engine;
};

TEST(OwnOptimizer, GoesOnFromACheckpointBitForBit) {
  const ScratchDir folder;
  Trainee unbroken;
  unbroken.steps(0, 9);
  {
    Trainee first;
    first.steps(0, 4);
    Checkpointer checkpointer(posix_file_system(), {.output_dir = folder.path()});
    TrainState state = capture_engine(first.engine);
    state.next = {.epoch = 4};
    EXPECT_EQ(state.model.size(), 4U);      // the frozen one too
    EXPECT_EQ(state.optimizer.size(), 3U);  // without it
    checkpointer.save(state);
    checkpointer.wait();
    for (const SaveOutcome& outcome : checkpointer.outcomes()) EXPECT_EQ(outcome.error, "");
  }
  const std::optional<FoundCheckpoint> found = newest_checkpoint(folder.path());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->state.optimizer.front().first, "0.weight.sum");
  Trainee second;
  second.steps(50, 52);  // whatever it did before is gone
  restore_engine(found->path, found->state, second.engine);
  second.steps(4, 9);
  EXPECT_TRUE(same_bytes(second.all(), unbroken.all()));
  // Other groups have other moments.
  Trainee other("");
  EXPECT_THROW(restore_engine(found->path, found->state, other.engine), CheckpointError);
}

// One more element with each step, after the second.
class Growing final : public Optimizer {
 public:
  using Optimizer::Optimizer;
  void step(double /*lr*/, const at::Tensor& /*found_inf*/) override { ++num_steps_; }
  [[nodiscard]] NamedTensors state() const override {
    return {{"sums", at::zeros({std::max<int64_t>(num_steps_, 2)})}};
  }

 private:
  int64_t num_steps_ = 0;
};

TEST(OwnOptimizer, AStateThatChangesItsShapeEndsTheRunAtTheFirstSaveThatSeesIt) {
  RankedRun run(1);
  run.job.engine.make_optimizer = [](std::vector<TrainedParameter> parameters) {
    return std::make_unique<Growing>(std::move(parameters));
  };
  run.run();
  EXPECT_THAT(run.ranks[0]->error,
              ::testing::HasSubstr("sums Float (4), and was sums Float (2) at the start"));
  EXPECT_EQ(run.ranks[0]->code, ExitCode::kUsage);
  EXPECT_THAT(list_checkpoints(run.out.path()), ::testing::ElementsAre(2));
}

}  // namespace
}  // namespace gradstep::testing

// Cases A: what a window adds up to, however it is cut.
#include <gtest/gtest.h>

#include "support/lin.h"
#include "support/thread_world.h"
#include "support/toys.h"

namespace gradstep::testing {
namespace {

TEST(Accumulation, A1_MicroBatchesOfDifferentWeightAreNoMeanOfMeans) {
  // Means of the micro-batches [1,1,1,1] and [7,7] would give -4; their sum -18.
  Lin lin;
  Engine engine(lin_task(lin), plain_sgd(4), solo());
  const StepReport report = engine.step(column({1, 1, 1, 1, 7, 7}), no_targets(6));
  EXPECT_FLOAT_EQ(lin->w.item<float>(), -3.0F);  // 1/6 is not exact in binary
  EXPECT_EQ(report.num_micro_batches, 2);
  EXPECT_EQ(report.divisor, 6);
}

TEST(Accumulation, A1_TwoWorldsInThreads) {
  run_ranks(2, [](World& world) {
    Lin lin;
    Engine engine(lin_task(lin), plain_sgd(4), world);
    engine.step(world.rank() == 0 ? column({1, 1, 1, 1}) : column({7, 7}),
                no_targets(world.rank() == 0 ? 4 : 2));
    EXPECT_FLOAT_EQ(lin->w.item<float>(), -3.0F);
  });
}

TEST(Accumulation, A2_RanksDivideByTheCountOfAll) {
  std::vector<at::Tensor> weights(2);
  run_ranks(2, [&](World& world) {
    Lin lin;
    Engine engine(lin_task(lin), plain_sgd(2), world);
    const StepReport report = world.rank() == 0 ? engine.step(column({1, 1, 1, 1, 1, 1}), no_targets(6))
                                                : engine.step(column({5, 5}), no_targets(2));
    EXPECT_EQ(report.samples, 8);
    EXPECT_EQ(report.divisor, 8);
    weights[static_cast<size_t>(world.rank())] = lin->w.detach().clone();
  });
  EXPECT_EQ(weights[0].item<float>(), -2.0F);
  EXPECT_TRUE(same_bytes(weights[0], weights[1]));
}

TEST(Accumulation, A2_ARankWithoutSamplesTakesPart) {
  run_ranks(3, [](World& world) {
    Lin lin;
    Engine engine(lin_task(lin), plain_sgd(2), world);
    const int64_t n = world.rank() == 2 ? 0 : 1;
    const StepReport report = engine.step(
        n == 1 ? column({static_cast<float>(1 + 2 * world.rank())}) : at::empty({0, 1}), no_targets(n));
    EXPECT_EQ(report.samples, 2);
    EXPECT_EQ(lin->w.item<float>(), -2.0F);
  });
}

TEST(Accumulation, A3_ShortLastWindowCountsWithItsRealSize) {
  Lin lin;
  Engine engine(lin_task(lin), plain_sgd(1), solo());
  for (const int64_t n : {4, 4, 2}) engine.step(at::ones({n, 1}), no_targets(n));
  EXPECT_EQ(engine.counters().updates, 3);
  EXPECT_EQ(lin->w.item<float>(), -3.0F);
}

TEST(Accumulation, A8_LossDoesNotDependOnTheNumberOfMicroBatches) {
  for (const int64_t accum : {1, 2, 4, 8}) {
    Lin lin;
    Task task = lin_task(lin);
    task.loss_sum = [](const at::Tensor& outputs, const Batch&) {
      return outputs.sum() * 0 + 4.0 * static_cast<double>(outputs.size(0));
    };
    Engine engine(task, plain_sgd(2), solo());
    EXPECT_EQ(engine.step(at::ones({2 * accum, 1}), no_targets(2 * accum)).loss, 4.0) << accum;
  }
}

// The loss of a sample is the sample itself.
Task loss_is_input(Lin lin) {
  Task task = lin_task(lin);
  task.forward = [lin](const Batch& batch) mutable { return batch.inputs + lin->forward(batch.inputs) * 0; };
  return task;
}

TEST(Accumulation, A9_LossIsTheMeanOverMicroBatchesAndRanks) {
  Lin lin;
  Engine engine(loss_is_input(lin), plain_sgd(1), solo());
  EXPECT_EQ(engine.step(column({1, 2, 3, 6}), no_targets(4)).loss, 3.0);
  run_ranks(2, [](World& world) {
    Lin own;
    Engine ranked(loss_is_input(own), plain_sgd(1), world);
    EXPECT_EQ(ranked.step(world.rank() == 0 ? column({1, 3}) : column({5, 7}), no_targets(2)).loss, 4.0);
  });
}

TEST(Accumulation, A10_DecayAndAdamStepOncePerUpdate) {
  Dot dot(at::ones({1, 1}));
  Engine engine(dot_task(dot),
                {.optimizer = {.weight_decay = 0.1},
                 .schedule = {.shape = LrShape::kConstant, .peak = 1},
                 .micro_batch = 1},
                solo());
  const StepReport report = engine.step(at::zeros({4, 1}), no_targets(4));
  EXPECT_EQ(report.num_micro_batches, 4);
  EXPECT_FLOAT_EQ(dot->w.item<float>(), 0.9F);
  EXPECT_EQ(tensor_named(engine.optimizer().state(), "w.step").item<float>(), 1.0F);
}

TEST(Accumulation, MicroBatchesAgreeWithOneBatch) {
  // fp64 would be exact; in fp32 the order of additions differs, so a tolerance of a few rounding errors.
  std::vector<at::Tensor> results;
  const at::Tensor x = at::randn({30, 4});
  const at::Tensor y = at::randint(3, {30}, at::kLong);
  for (const int64_t micro : {30, 7, 1}) {
    torch::nn::Sequential model = small_classifier();
    Engine engine(classification_task(model),
                  {.schedule = {.shape = LrShape::kConstant, .peak = 1e-2}, .micro_batch = micro}, solo());
    for (int i = 0; i < 5; ++i) engine.step(x, y);
    results.push_back(torch::nn::utils::parameters_to_vector(model->parameters()).detach());
  }
  EXPECT_TRUE(at::allclose(results[0], results[1], 1e-5, 1e-6));
  EXPECT_TRUE(at::allclose(results[0], results[2], 1e-5, 1e-6));
}

TEST(Accumulation, ModuleWeightsGiveTheDivisor) {
  Lin lin;
  Task task = lin_task(lin);
  task.weight = [](const Batch& batch) { return batch.targets.ne(-100).sum().item<double>(); };
  Engine engine(task, plain_sgd(2), solo());
  const StepReport report = engine.step(column({3, 3, 0, 0}), torch::tensor({1, 1, -100, -100}));
  EXPECT_EQ(report.divisor, 2);
  EXPECT_EQ(lin->w.item<float>(), -3.0F);
}

TEST(Accumulation, AWindowWithoutSamplesIsRefused) {
  Lin lin;
  Engine engine(lin_task(lin), plain_sgd(1), solo());
  EXPECT_THROW(engine.step(at::empty({0, 1}), no_targets(0)), c10::Error);
  EXPECT_EQ(engine.counters().windows, 0);
}

}  // namespace
}  // namespace gradstep::testing

// evaluate: real samples in the denominator, sums that neither batches nor ranks change, and a training state
// left alone.
#include "gradstep/run/evaluator.h"

#include <ATen/autocast_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "support/thread_world.h"
#include "support/toys.h"

namespace gradstep::testing {
namespace {

using ::testing::ElementsAre;

std::shared_ptr<const Dataset> random_data(int64_t n, int64_t width = 4, int64_t classes = 3) {
  torch::manual_seed(7);
  return std::make_shared<TensorDataset>(DatasetSpec{"random", {width}, classes}, torch::randn({n, width}),
                                         torch::randint(classes, {n}, at::kLong));
}

// Scores are the inputs themselves, so that each number can be worked out by hand.
Task echo_task(int64_t num_classes = 3) {
  Task task =
      classification_task(torch::nn::Sequential(torch::nn::Linear(1, 1)), {.num_classes = num_classes});
  task.forward = [](const Batch& batch) { return batch.inputs; };
  return task;
}

TEST(Evaluate, CountsByHand) {
  // Classes of largest score: 0, 1, 1, 2, 0.
  const at::Tensor scores =
      torch::tensor({{3.F, 0.F, 0.F}, {0.F, 3.F, 0.F}, {0.F, 3.F, 0.F}, {0.F, 0.F, 3.F}, {3.F, 0.F, 0.F}});
  const at::Tensor targets = torch::tensor({0, 1, 0, 1, 0}, at::kLong);
  const TensorDataset data({"hand", {3}, 3}, scores, targets);
  const EvalResult result = evaluate(echo_task(), data, solo(), {.batch_size = 2});
  EXPECT_EQ(result.samples, 5);
  EXPECT_EQ(result.at("acc"), 3.0 / 5);
  EXPECT_EQ(result.metrics.size(), 1U);  // no top-5 of three classes
  ASSERT_EQ(result.tables.size(), 1U);
  EXPECT_EQ(result.tables[0].rows_of, "class");
  EXPECT_THAT(result.tables[0].weights, ElementsAre(3, 2, 0));
  EXPECT_THAT(result.tables[0].sums, ElementsAre(2, 1, 0));
  EXPECT_TRUE(result.complete);
  const double right = -std::log(std::exp(3.0) / (std::exp(3.0) + 2));
  const double wrong = -std::log(1 / (std::exp(3.0) + 2));
  EXPECT_NEAR(result.loss, (3 * right + 2 * wrong) / 5, 1e-6);
}

TEST(Evaluate, TopFiveOfTen) {
  // Row i scores class c by c, so that the top five are 5..9.
  const at::Tensor scores = torch::arange(10, at::kFloat).expand({10, 10}).contiguous();
  const TensorDataset data({"hand", {10}, 10}, scores, torch::arange(10, at::kLong));
  const EvalResult result = evaluate(echo_task(10), data, solo());
  EXPECT_EQ(result.at("top5"), 0.5);
  EXPECT_EQ(result.at("acc"), 0.1);
}

TEST(Evaluate, BatchSizeDoesNotMatter) {
  const auto data = random_data(1003);
  const Task task = classification_task(small_classifier(), {.num_classes = 3});
  const EvalResult all = evaluate(task, *data, solo(), {.batch_size = 1003});
  for (const int64_t batch_size : {0, 1, 7, 500, 1002, 5000}) {
    const EvalResult result = evaluate(task, *data, solo(), {.batch_size = batch_size});
    EXPECT_EQ(result.samples, 1003);
    EXPECT_NEAR(result.loss, all.loss, 1e-6) << batch_size;
    EXPECT_EQ(result.metrics, all.metrics) << batch_size;
    EXPECT_EQ(result.tables[0].sums, all.tables[0].sums) << batch_size;
    EXPECT_EQ(result.tables[0].weights, all.tables[0].weights) << batch_size;
  }
}

TEST(Evaluate, RanksTogetherEqualOne) {
  const auto data = random_data(101);
  const Task task = classification_task(small_classifier(), {.num_classes = 3});
  const EvalResult one = evaluate(task, *data, solo());
  for (const int64_t size : {2, 3}) {
    // Made before the threads begin: they share one random number generator.
    std::vector<Task> tasks;
    for (int64_t rank = 0; rank < size; ++rank)
      tasks.push_back(classification_task(small_classifier(), {.num_classes = 3}));
    run_ranks(size, [&](World& world) {
      const EvalResult result = evaluate(tasks[static_cast<size_t>(world.rank())], *data, world);
      EXPECT_EQ(result.samples, 101);
      EXPECT_NEAR(result.loss, one.loss, 1e-6);
      EXPECT_EQ(result.metrics, one.metrics);
      EXPECT_EQ(result.tables[0].sums, one.tables[0].sums);
    });
  }
}

TEST(Evaluate, ARankWithoutSamplesTakesPart) {
  const auto data = random_data(2);
  run_ranks(3, [&](World& world) {
    const Task task = classification_task(small_classifier());
    EXPECT_EQ(evaluate(task, *data, world).samples, 2);
  });
}

TEST(Evaluate, RestoresTheModeItFound) {
  const auto data = random_data(10);
  torch::nn::Sequential module(torch::nn::Linear(4, 3), torch::nn::Dropout(0.5));
  const Task task = classification_task(module);
  module->train();
  const EvalResult in_training = evaluate(task, *data, solo());
  EXPECT_TRUE(module->is_training());
  module->eval();
  const EvalResult in_evaluation = evaluate(task, *data, solo());
  EXPECT_FALSE(module->is_training());
  EXPECT_EQ(in_training.loss, in_evaluation.loss);  // dropout was off in both
  module->train();
  Task throwing = task;
  throwing.forward = [](const Batch&) -> at::Tensor { throw std::runtime_error("no"); };
  EXPECT_THROW((void)evaluate(throwing, *data, solo()), std::runtime_error);
  EXPECT_TRUE(module->is_training());
  EXPECT_TRUE(at::GradMode::is_enabled());
}

TEST(Evaluate, AFrozenPartStaysFrozen) {
  torch::nn::Sequential module(torch::nn::BatchNorm1d(4), torch::nn::Linear(4, 3));
  module[0]->eval();
  (void)evaluate(classification_task(module), *random_data(10), solo());
  EXPECT_TRUE(module->is_training());
  EXPECT_FALSE(module[0]->is_training());
  EXPECT_TRUE(module[1]->is_training());
}

TEST(Evaluate, AllRanksUseTheBuffersOfRankZero) {
  const auto data = random_data(40);
  std::vector<EvalResult> results(2);
  std::vector<torch::nn::Sequential> modules;
  for (int64_t rank = 0; rank < 2; ++rank) {
    torch::manual_seed(0);
    modules.emplace_back(torch::nn::BatchNorm1d(4), torch::nn::Linear(4, 3));
    modules.back()->buffers()[0].fill_(static_cast<double>(rank));  // the running mean
  }
  const EvalResult alone = evaluate(classification_task(modules[0]), *data, solo());
  run_ranks(2, [&](World& world) {
    const auto rank = static_cast<size_t>(world.rank());
    results[rank] = evaluate(classification_task(modules[rank]), *data, world);
  });
  for (const EvalResult& result : results) {
    EXPECT_NEAR(result.loss, alone.loss, 1e-6);
    EXPECT_EQ(result.metrics, alone.metrics);
  }
  EXPECT_TRUE(same_bytes(modules[0]->buffers(), modules[1]->buffers()));
}

// In the middle of a window: after the forward of a micro-batch has cached its casts, before its backward.
TEST(Evaluate, D10_BetweenMicroBatchesItDropsNoGradient) {
  const auto data = random_data(10);
  const auto gradients = [&](bool interrupted) {
    torch::nn::Sequential module = small_classifier();
    const Task task = classification_task(module);
    for (int micro = 0; micro < 2; ++micro) {
      at::Tensor loss;
      {
        const AutocastGuard autocast(at::kCPU, Precision::kBf16);
        if (interrupted) (void)evaluate(task, *data, solo(), {.precision = Precision::kBf16});
        const at::Tensor scores = task.forward({at::ones({2, 4}), {}});
        if (interrupted) (void)evaluate(task, *data, solo(), {.precision = Precision::kBf16});
        loss = task.loss_sum(scores, {{}, torch::zeros({2}, at::kLong)});
      }
      loss.backward();
    }
    std::vector<at::Tensor> grads;
    for (const at::Tensor& parameter : module->parameters()) grads.push_back(parameter.grad());
    return grads;
  };
  const std::vector<at::Tensor> grads = gradients(true);
  for (const at::Tensor& grad : grads) ASSERT_TRUE(grad.defined());
  EXPECT_TRUE(same_bytes(grads, gradients(false)));
}

TEST(Evaluate, TouchesNotTheCacheOfATrainingForward) {
  torch::nn::Sequential module = small_classifier();
  const at::Tensor w = module->parameters()[0];
  const auto cast = [&] { return at::autocast::cached_cast(at::kBFloat16, w, at::kCPU); };
  const AutocastGuard autocast(at::kCPU, Precision::kBf16);
  const at::Tensor before = cast();
  (void)evaluate(classification_task(module), *random_data(10), solo(), {.precision = Precision::kBf16});
  EXPECT_TRUE(cast().is_same(before));
}

TEST(Evaluate, TouchesNeitherGradientsNorRandomNumbers) {
  const auto data = random_data(10);
  torch::nn::Sequential module = small_classifier();
  const Task task = classification_task(module);
  module->forward(torch::randn({2, 4})).sum().backward();
  const at::Tensor grad = module->parameters()[0].grad().clone();
  torch::manual_seed(3);
  const at::Tensor expected = torch::randn({3});
  torch::manual_seed(3);
  (void)evaluate(task, *data, solo(), {.precision = Precision::kBf16});
  EXPECT_TRUE(same_bytes(torch::randn({3}), expected));
  EXPECT_TRUE(same_bytes(module->parameters()[0].grad(), grad));
}

TEST(Evaluate, UsesThePrecisionAsked) {
  const auto data = random_data(50);
  torch::nn::Sequential module = small_classifier();
  Task task = classification_task(module);
  std::vector<at::ScalarType> types;
  task.forward = [&, module](const Batch& batch) mutable {
    const at::Tensor scores = module->forward(batch.inputs);
    types.push_back(scores.scalar_type());
    return scores;
  };
  const EvalResult fp32 = evaluate(task, *data, solo());
  const EvalResult bf16 = evaluate(task, *data, solo(), {.precision = Precision::kBf16});
  EXPECT_THAT(types, ElementsAre(at::kFloat, at::kBFloat16));
  EXPECT_NE(fp32.loss, bf16.loss);
  EXPECT_NEAR(fp32.loss, bf16.loss, 0.02);
}

TEST(Evaluate, EndsEarlyWhenAsked) {
  const auto data = random_data(10);
  const Task task = classification_task(small_classifier());
  int64_t num_batches = 0;
  const EvalResult result =
      evaluate(task, *data, solo(), {.batch_size = 2, .should_stop = [&] { return ++num_batches > 3; }});
  EXPECT_FALSE(result.complete);
  EXPECT_EQ(result.samples, 6);
  EXPECT_EQ(num_batches, 4);
}

TEST(Evaluate, BatchesComeInOrderWithTheirScores) {
  const at::Tensor scores = torch::randn({7, 3});
  const at::Tensor targets = torch::randint(3, {7}, at::kLong);
  const TensorDataset data({"hand", {3}, 3}, scores, targets);
  std::vector<int64_t> firsts;
  std::vector<at::Tensor> seen_scores;
  std::vector<at::Tensor> seen_targets;
  (void)evaluate(echo_task(), data, solo(),
                 {.batch_size = 3, .on_batch = [&](int64_t first, const at::Tensor& s, const Batch& batch) {
                    firsts.push_back(first);
                    seen_scores.push_back(s);
                    seen_targets.push_back(batch.targets);
                  }});
  EXPECT_THAT(firsts, ElementsAre(0, 3, 6));
  EXPECT_TRUE(same_bytes(at::cat(seen_scores), scores));
  EXPECT_TRUE(same_bytes(at::cat(seen_targets), targets));
}

TEST(Evaluate, NotFiniteScoresShowInTheLoss) {
  at::Tensor scores = torch::zeros({4, 3});
  scores[2][1] = NAN;
  const TensorDataset data({"hand", {3}, 3}, scores, torch::zeros({4}, at::kLong));
  EXPECT_TRUE(std::isnan(evaluate(echo_task(), data, solo()).loss));
}

TEST(Evaluate, MemoryThatRunsOutInTheLossHalvesTheBatchToo) {
  torch::nn::Sequential net = small_classifier();
  Task task = classification_task(net, {.num_classes = 3});
  const auto data = std::make_shared<TensorDataset>(
      DatasetSpec{.name = "toy", .input_shape = {4}, .num_classes = 3},
      (at::arange(44, at::kFloat) * 0.37).sin().view({11, 4}), at::arange(11).remainder(3));
  const EvalResult whole = evaluate(task, *data, solo());
  task.loss_sum = [loss = task.loss_sum](const at::Tensor& outputs, const Batch& batch) {
    if (batch.size() > 3) throw std::bad_alloc();
    return loss(outputs, batch);
  };
  const EvalResult pieces = evaluate(task, *data, solo());
  EXPECT_EQ(pieces.samples, 11);
  EXPECT_NEAR(pieces.loss, whole.loss, 1e-6);
  EXPECT_EQ(pieces.metrics, whole.metrics);
}

}  // namespace
}  // namespace gradstep::testing

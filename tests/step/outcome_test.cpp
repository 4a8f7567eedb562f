// What becomes of windows without weight, of weights that cannot be, and of windows that may not be cut.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gradstep/base/error.h"
#include "support/lin.h"
#include "support/message_of.h"
#include "support/thread_world.h"
#include "support/toys.h"

namespace gradstep::testing {
namespace {

using ::testing::HasSubstr;

// Each target is the weight of its sample.
Task weighted(Lin lin) {
  Task task = lin_task(lin);
  task.loss_sum = [](const at::Tensor& outputs, const Batch&) { return outputs.to(at::kFloat).sum(); };
  task.weight = [](const Batch& batch) { return batch.targets.sum().item<double>(); };
  return task;
}

EngineOptions everything_on() {
  EngineOptions options = plain_sgd(2);
  options.optimizer.momentum = 0.9;
  options.precision = Precision::kFp16;
  options.scaler = {.init_scale = 256, .growth_interval = 2};
  options.ema_decay = 0.5;
  options.spikes = {.z_score = 5, .window = 2};
  return options;
}

TEST(EngineOf, R50_ATaskThatLacksSomethingIsRefused) {
  EXPECT_THAT(message_of<ConfigError>([] { Engine(Task{}, {}, solo()); }),
              HasSubstr("the task lacks its module"));
  Lin lin;
  Task task = weighted(lin);
  task.loss_sum = nullptr;
  EXPECT_THAT(message_of<ConfigError>([&] { Engine(task, {}, solo()); }), HasSubstr("loss_sum"));
}

TEST(Outcome, R48_AWindowWithoutWeightIsConsumedAndChangesNothing) {
  Lin lin, expected_lin;
  Engine engine(weighted(lin), everything_on(), solo());
  Engine expected(weighted(expected_lin), everything_on(), solo());
  const at::Tensor ones = torch::ones({2});
  EXPECT_EQ(engine.step(column({1, 2}), ones).outcome, StepOutcome::kApplied);
  expected.step(column({1, 2}), ones);
  const EngineState before = engine.state();

  const StepReport empty = engine.step(column({7, 8}), torch::zeros({2}));
  EXPECT_EQ(empty.outcome, StepOutcome::kEmpty);
  EXPECT_TRUE(empty.skipped());
  EXPECT_EQ(empty.window, 2);
  EXPECT_EQ(empty.update, 1);
  EXPECT_EQ(empty.divisor, 0);
  EXPECT_EQ(empty.skipped_total, 1);
  EXPECT_TRUE(std::isnan(empty.loss));
  EXPECT_TRUE(empty.first_non_finite.empty());
  EXPECT_FALSE(empty.diverged);
  const EngineState after = engine.state();
  EXPECT_EQ(after.loss_scale, before.loss_scale);
  EXPECT_EQ(after.num_good_updates, before.num_good_updates);
  EXPECT_EQ(after.spikes, before.spikes);
  EXPECT_EQ(after.counters.skips_in_a_row, 0);

  EXPECT_EQ(engine.step(column({3, 4}), ones).update, 2);
  expected.step(column({3, 4}), ones);
  EXPECT_TRUE(same_bytes(everything(engine), everything(expected)));
  EXPECT_EQ(engine.state().loss_scale, expected.state().loss_scale);
  Window window;
  window.batch = {column({1}), torch::zeros({1})};
  window.total_samples = 1;
  EXPECT_TRUE(engine.examine(window).modules.empty());
}

TEST(Outcome, WeightOnOneRankOnlyIsNotEmpty) {
  run_ranks(2, [](World& world) {
    Lin lin;
    Engine engine(weighted(lin), plain_sgd(2), world);
    const at::Tensor weights = at::full({1}, static_cast<double>(world.rank()));
    const StepReport report = engine.step(column({static_cast<float>(world.rank())}), weights);
    EXPECT_EQ(report.outcome, StepOutcome::kApplied);
    EXPECT_EQ(report.divisor, 1);
    EXPECT_EQ(engine.step(column({1}), at::zeros({1})).outcome, StepOutcome::kEmpty);
  });
}

TEST(Outcome, R48_AWeightThatCannotBeIsNamed) {
  for (const double bad : {-1.0, std::numeric_limits<double>::infinity(), std::nan("")}) {
    Lin lin;
    Engine engine(weighted(lin), plain_sgd(2), solo());
    const std::string message =
        message_of<ConfigError>([&] { engine.step(column({1}), at::full({1}, bad)); });
    EXPECT_THAT(message, HasSubstr("Task::weight of window 1 is "));
    EXPECT_EQ(engine.counters().windows, 0);
    EXPECT_EQ(engine.step(column({1}), at::ones({1})).window, 1);
  }
  Lin lin;
  Engine engine(weighted(lin), plain_sgd(2), solo());
  EXPECT_THAT(message_of<ConfigError>([&] { engine.step(column({1, 1}), torch::tensor({1.0, -3.0})); }),
              HasSubstr("is -2,"));
}

TEST(Outcome, AWeightThatCannotBeOnOneRankEndsAll) {
  run_ranks(2, [](World& world) {
    Lin lin;
    Engine engine(weighted(lin), plain_sgd(2), world);
    // Together they would make 4.
    const at::Tensor weights = at::full({1}, world.rank() == 0 ? -1.0 : 5.0);
    try {
      engine.step(column({1}), weights);
      ADD_FAILURE() << "was not refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), ExitCode::kUsage);
      EXPECT_THAT(error.what(), HasSubstr(world.rank() == 0 ? "is -1," : "rank 0 failed"));
    }
    EXPECT_EQ(engine.step(column({1}), at::ones({1})).update, 1);
  });
}

TEST(Outcome, R54_AWindowThatIsNotDivisibleGoesThroughAtOnce) {
  Lin lin;
  Task task = lin_task(lin);
  std::vector<int64_t> seen;
  task.forward = [lin, &seen](const Batch& batch) mutable {
    seen.push_back(batch.size());
    if (batch.size() > 5) throw std::bad_alloc();
    return lin->forward(batch.inputs);
  };
  task.divisible = false;
  Engine engine(task, plain_sgd(2), solo());
  const StepReport report = engine.step(column({1, 2, 3, 4, 5}), no_targets(5));
  EXPECT_EQ(seen, (std::vector<int64_t>{5}));
  EXPECT_EQ(report.num_micro_batches, 1);
  EXPECT_EQ(report.micro_batch, 5);
  EXPECT_EQ(lin->w.item<float>(), -3.0F);
  EXPECT_THAT(message_of<Error>([&] { engine.step(column({1, 2, 3, 4, 5, 6}), no_targets(6)); }),
              HasSubstr("a window of 6 samples, which its task does not allow to be cut"));
  EXPECT_EQ(seen, (std::vector<int64_t>{5, 6}));  // not tried in halves
  EXPECT_EQ(engine.counters().windows, 1);
  EXPECT_EQ(engine.options().micro_batch, 2);
}

TEST(Outcome, TensorsOfUnlikeLengthAreRefused) {
  Lin lin;
  Engine engine(lin_task(lin), plain_sgd(2), solo());
  EXPECT_THAT(message_of<DataError>([&] { engine.step(column({1, 2}), no_targets(3)); }), HasSubstr("3"));
  Window window;
  window.batch = {column({1, 2}), no_targets(3)};
  window.total_samples = 2;
  EXPECT_THROW(engine.step(window), DataError);
  EXPECT_EQ(engine.step(column({1}), no_targets(1)).window, 1);
}

TEST(Outcome, AnEngineCanBeMoved) {
  Lin lin;
  Engine first(lin_task(lin), plain_sgd(2), solo());
  first.step(column({1}), no_targets(1));
  Engine second(std::move(first));
  EXPECT_EQ(second.step(column({1}), no_targets(1)).update, 2);
  static_assert(!std::is_copy_constructible_v<Engine> && std::is_nothrow_move_assignable_v<Engine>);
}

TEST(EngineOf, AParameterWithSparseGradientsIsNamed) {
  torch::nn::Sequential net(torch::nn::Embedding(torch::nn::EmbeddingOptions(5, 3).sparse(true)));
  Engine engine(classification_task(net), plain_sgd(2), solo());
  for (int i = 0; i < 2; ++i) {  // the engine stays usable
    EXPECT_THAT(message_of<ConfigError>([&] { engine.step(at::tensor({1L, 2L, 4L}), no_targets(3)); }),
                HasSubstr("parameter 0.weight gets sparse gradients"));
  }
  EXPECT_EQ(engine.counters().windows, 0);
  EXPECT_FALSE(net->parameters()[0].grad().defined());
}

}  // namespace
}  // namespace gradstep::testing

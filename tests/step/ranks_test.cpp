// Two ranks in threads take every decision together: out of memory, a failure on one, a second look.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gradstep/base/error.h"
#include "step/accumulator.h"
#include "step/micro_batches.h"
#include "support/lin.h"
#include "support/message_of.h"
#include "support/thread_world.h"
#include "support/toys.h"

namespace gradstep::testing {
namespace {

using ::testing::HasSubstr;

// Has memory for `most` samples at once.
Task hungry(Lin lin, int64_t most) {
  Task task = lin_task(lin);
  task.forward = [lin, most](const Batch& batch) mutable {
    if (batch.size() > most) throw std::bad_alloc();
    return lin->forward(batch.inputs);
  };
  return task;
}

TEST(Ranks, OutOfMemoryOnOneHalvesTheMicroBatchOfAll) {
  for (const int64_t short_rank : {0, 1}) {
    run_ranks(2, [&](World& world) {
      Lin lin;
      Engine engine(hungry(lin, world.rank() == short_rank ? 2 : 100), plain_sgd(8), world);
      const StepReport report = engine.step(column({1, 1, 1, 1, 3, 3, 3, 3}), no_targets(8));
      EXPECT_EQ(report.micro_batch, 2);
      EXPECT_EQ(report.num_out_of_memory, 2);
      EXPECT_EQ(report.num_micro_batches, 4);
      EXPECT_EQ(engine.state().micro_batch, 2);
      EXPECT_EQ(lin->w.item<float>(), -2.0F);
      EXPECT_EQ(engine.step(column({1}), no_targets(1)).num_out_of_memory, 0);
    });
  }
}

TEST(Ranks, AWindowThatMayNotBeCutIsRefused) {
  run_ranks(2, [](World& world) {
    Task task = lin_task(Lin());
    task.divisible = false;
    EXPECT_THAT(message_of<ConfigError>([&] { Engine(task, plain_sgd(8), world); }),
                HasSubstr("2 ranks would cut it; train it on one rank"));
  });
}

TEST(Ranks, UserStateOnOneAloneIsRefusedOnAll) {
  run_ranks(2, [](World& world) {
    Task task = lin_task(Lin());
    if (world.rank() == 0) task.user_state = [] { return UserState{}; };
    Engine engine(task, plain_sgd(8), world);
    for (int i = 0; i < 2; ++i)  // each time, or the second would wait for ever
      EXPECT_THAT(message_of<ConfigError>([&] { engine.step(column({1}), no_targets(1)); }),
                  HasSubstr("1 of 2 ranks"));
  });
}

TEST(Ranks, UserStateThatOneCannotTakeBackEndsAll) {
  run_ranks(2, [](World& world) {
    Task task = hungry(Lin(), world.rank() == 1 ? 2 : 100);
    task.user_state = [] { return UserState{}; };
    task.restore_user_state = [&world](const UserState&) {
      if (world.rank() == 0) throw DataError("no such stage");
    };
    Engine engine(task, plain_sgd(8), world);
    EXPECT_THROW(engine.step(column({1, 1, 1, 1}), no_targets(4)), Error);
    EXPECT_FALSE(engine.is_whole());
  });
}

TEST(Ranks, AShareOfAnotherSizeHalvesFromTheOneThatFailed) {
  run_ranks(2, [](World& world) {
    Lin lin;
    Engine engine(hungry(lin, world.rank() == 0 ? 1 : 100), plain_sgd(8), world);
    const StepReport report = world.rank() == 0 ? engine.step(column({1, 1, 1}), no_targets(3))
                                                : engine.step(column({1, 1, 1, 1, 1}), no_targets(5));
    EXPECT_EQ(report.micro_batch, 1);
    EXPECT_EQ(report.num_micro_batches, world.rank() == 0 ? 3 : 5);
    EXPECT_EQ(lin->w.item<float>(), -1.0F);
  });
}

TEST(Ranks, WithoutMemoryForOneSampleAllEnd) {
  run_ranks(2, [](World& world) {
    Lin lin;
    Engine engine(hungry(lin, world.rank() == 1 ? 0 : 100), plain_sgd(4), world);
    EXPECT_THAT(message_of<Error>([&] { engine.step(column({1, 2}), no_targets(2)); }),
                HasSubstr("out of memory in window 1 with a micro-batch of 1"));
    EXPECT_EQ(engine.state().micro_batch, 4);
    EXPECT_EQ(engine.counters().windows, 0);
    EXPECT_FALSE(lin->w.grad().defined());
  });
}

TEST(Ranks, AFailureOfOneIsAnErrorOfAllAndTheWindowMayBeGivenAgain) {
  run_ranks(2, [](World& world) {
    Lin lin;
    Task task = lin_task(lin);
    bool fails = world.rank() == 1;
    task.forward = [lin, &fails](const Batch& batch) mutable {
      TORCH_CHECK(!fails, "the user's own");
      return lin->forward(batch.inputs);
    };
    Engine engine(task, plain_sgd(4), world);
    const auto step = [&] { return engine.step(column({1}), no_targets(1)); };
    if (world.rank() == 1)
      EXPECT_THAT(message_of<c10::Error>(step), HasSubstr("the user's own"));
    else
      EXPECT_THAT(message_of<Error>(step), HasSubstr("rank 1 failed, and all ranks end with it"));
    EXPECT_FALSE(lin->w.grad().defined());
    fails = false;
    EXPECT_EQ(step().window, 1);
    EXPECT_EQ(lin->w.item<float>(), -1.0F);
  });
}

TEST(Ranks, OneAloneMayLookAgainWithTheDivisor) {
  run_ranks(2, [](World& world) {
    Lin lin;
    Task task = lin_task(lin);
    task.weight = [](const Batch& batch) { return static_cast<double>(batch.size()); };
    Engine engine(task, plain_sgd(4), world);
    Window window;
    window.batch = {column({1, 2, 3}), no_targets(3)};
    window.total_samples = 6;
    const Examination together = engine.examine(window);
    // The other rank makes no call here.
    if (world.rank() == 0) {
      EXPECT_EQ(engine.examine(window, 6).modules, together.modules);
    }
  });
}

// Notes the calls and how much of the backward is done when they come.
class RecordingSync final : public GradSync {
 public:
  explicit RecordingSync(at::Tensor parameter) : parameter_(std::move(parameter)) {}
  void begin(int64_t window) override { calls.push_back("begin " + std::to_string(window)); }
  void arm(const at::Tensor& loss) override {
    calls.push_back(
        loss.defined()
            ? "arm at " + std::to_string(parameter_.grad().defined() ? parameter_.grad().item<int64_t>() : 0)
            : "arm without samples");
    has_graph = loss.defined() && loss.requires_grad();
  }
  SyncStatus finish(SyncStatus own) override { return own; }
  std::vector<std::string> calls;
  bool has_graph = false;

 private:
  at::Tensor parameter_;
};

TEST(Accumulator, ArmsOnceBetweenTheLastForwardAndItsBackward) {
  Lin lin;
  const Task task = lin_task(lin);
  Accumulator accumulator(task, Precision::kFp32, at::kCPU);
  RecordingSync sync(lin->w);
  (void)accumulator.run({column({1, 2, 3, 4, 5}), no_targets(5)}, 2, 1.0, &sync, {});
  EXPECT_EQ(sync.calls, (std::vector<std::string>{"arm at 10"}));
  EXPECT_TRUE(sync.has_graph);
  EXPECT_EQ(lin->w.grad().item<float>(), 15.0F);
  (void)accumulator.run({at::empty({0, 1}), no_targets(0)}, 2, 1.0, &sync, {});
  EXPECT_EQ(sync.calls.back(), "arm without samples");
}

}  // namespace
}  // namespace gradstep::testing

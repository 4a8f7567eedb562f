// Case C1: an engine whose state and tensors are copied into a fresh one goes on bit for bit.
#include <gtest/gtest.h>

#include "support/lin.h"
#include "support/toys.h"

namespace gradstep::testing {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// Batch norm, dropout, and what the options add.
struct Trainee {
  explicit Trainee(const EngineOptions& options)
      : model(make()), engine(classification_task(model), options, solo()) {}

  static torch::nn::Sequential make() {
    torch::manual_seed(5);
    return torch::nn::Sequential(torch::nn::Linear(4, 8), torch::nn::BatchNorm1d(8), torch::nn::Dropout(0.5),
                                 torch::nn::Linear(8, 3));
  }
  // Window n of the run: a pure function of n, with a NaN in window 5 and something odd in window 11.
  static Window window(int64_t n) {
    const at::Tensor ids = at::arange(n * 6, n * 6 + 6, at::kFloat).unsqueeze(1);
    Window window;
    window.batch = {(ids * at::arange(1, 5, at::kFloat) * 0.37F).sin(),
                    at::arange(6, at::kLong).remainder(3)};
    if (n == 5) window.batch.inputs[5][1] = kInf;
    if (n == 11) window.batch.targets = at::zeros({6}, at::kLong);
    window.total_samples = 6;
    window.position.number = n;
    return window;
  }
  void steps(int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const StepReport report = engine.step(window(n));
      losses.push_back(std::bit_cast<uint64_t>(report.loss));  // one is NaN
      num_spikes += report.spike ? 1 : 0;
    }
  }
  // What a checkpoint brings over.
  void take_over(Trainee& other) {
    const at::NoGradGuard no_grad;
    const auto copy = [](const NamedTensors& to, const NamedTensors& from) {
      ASSERT_EQ(to.size(), from.size());
      for (size_t i = 0; i < to.size(); ++i) to[i].second.copy_(from[i].second);
    };
    copy(engine.optimizer().parameters(), other.engine.optimizer().parameters());
    copy(engine.optimizer().state(), other.engine.optimizer().state());
    copy(engine.averages(), other.engine.averages());
    for (size_t i = 0; i < model->buffers().size(); ++i) model->buffers()[i].copy_(other.model->buffers()[i]);
    engine.restore(other.engine.state());
  }
  std::vector<at::Tensor> all() {
    std::vector<at::Tensor> tensors = everything(engine);
    for (const at::Tensor& average : copies(engine.averages())) tensors.push_back(average);
    for (const at::Tensor& buffer : model->buffers()) tensors.push_back(buffer.clone());
    return tensors;
  }

  torch::nn::Sequential model;
  Engine engine;
  std::vector<uint64_t> losses;
  int64_t num_spikes = 0;
};

EngineOptions full(OptimizerKind kind, Precision precision) {
  const bool nesterov = kind == OptimizerKind::kSgd;
  return {.optimizer = {.kind = kind, .weight_decay = 0.01, .momentum = 0.9, .nesterov = nesterov},
          .schedule = {.shape = LrShape::kCosine, .peak = 0.05, .warmup_steps = 4, .total_steps = 20},
          .precision = precision,
          .scaler = {.init_scale = 256, .growth_interval = 6},
          .micro_batch = 4,
          .clip_grad = 0.5,
          .seed = 9,
          .ema_decay = 0.9,
          .spikes = {.z_score = 2, .window = 4}};
}

void expect_same(Trainee& resumed, Trainee& unbroken) {
  EXPECT_TRUE(same_bytes(resumed.all(), unbroken.all()));
  const EngineState a = resumed.engine.state();
  const EngineState b = unbroken.engine.state();
  EXPECT_EQ(a.counters.windows, b.counters.windows);
  EXPECT_EQ(a.counters.updates, b.counters.updates);
  EXPECT_EQ(a.counters.skipped_total, b.counters.skipped_total);
  EXPECT_EQ(a.counters.skips_in_a_row, b.counters.skips_in_a_row);
  EXPECT_EQ(a.loss_scale, b.loss_scale);
  EXPECT_EQ(a.num_good_updates, b.num_good_updates);
  EXPECT_EQ(a.micro_batch, b.micro_batch);
  EXPECT_EQ(a.spikes, b.spikes);
}

TEST(EngineState, EveryKindOfRunGoesOnFromEveryWindow) {
  for (const OptimizerKind kind : {OptimizerKind::kAdamW, OptimizerKind::kSgd}) {
    for (const Precision precision : {Precision::kFp32, Precision::kBf16, Precision::kFp16}) {
      SCOPED_TRACE(to_string(precision));
      const EngineOptions options = full(kind, precision);
      Trainee unbroken(options);
      unbroken.steps(0, 16);
      EXPECT_GE(unbroken.engine.counters().skipped_total, 2);
      EXPECT_GE(unbroken.num_spikes, 1);
      for (int64_t stop = 0; stop <= 16; ++stop) {
        Trainee first(options);
        first.steps(0, stop);
        Trainee second(options);
        second.engine.step(Trainee::window(99));  // whatever it did before is gone
        second.take_over(first);
        second.steps(stop, 16);
        expect_same(second, unbroken);
        EXPECT_EQ(second.losses,
                  std::vector<uint64_t>(unbroken.losses.begin() + stop, unbroken.losses.end()));
      }
    }
  }
}

TEST(EngineState, C1_ScaleAndGrowthCounterComeBack) {
  EngineOptions options = full(OptimizerKind::kAdamW, Precision::kFp16);
  options.scaler = {.init_scale = 1024, .growth_interval = 10};
  options.spikes = {};
  const auto run_to_12 = [&](Trainee& run) {
    run.steps(20, 32);
    EngineState forced = run.engine.state();
    EXPECT_EQ(forced.counters.updates, 12);
    forced.loss_scale = 256;
    forced.num_good_updates = 7;
    run.engine.restore(forced);
  };
  Trainee unbroken(options);
  run_to_12(unbroken);
  unbroken.steps(32, 40);
  EXPECT_EQ(unbroken.engine.state().loss_scale, 512);  // it grew three updates later
  Trainee first(options);
  run_to_12(first);
  Trainee second(options);
  second.take_over(first);
  EXPECT_EQ(second.engine.state().loss_scale, 256);
  EXPECT_EQ(second.engine.state().num_good_updates, 7);
  EXPECT_EQ(second.engine.state().loss_scale, 256);
  second.steps(32, 40);
  EXPECT_EQ(second.engine.counters().updates, 20);
  expect_same(second, unbroken);
}

TEST(EngineState, ASmallerMicroBatchStays) {
  Trainee first(full(OptimizerKind::kAdamW, Precision::kFp32));
  EngineState state = first.engine.state();
  state.micro_batch = 2;
  first.engine.restore(state);
  EXPECT_EQ(first.engine.step(Trainee::window(0)).micro_batch, 2);
}

TEST(EngineState, ARowOfSkipsGoesOnAndItsEndStillNamesWhereItBegan) {
  EngineOptions options = full(OptimizerKind::kAdamW, Precision::kFp32);
  options.max_skips_in_a_row = 4;
  options.spikes = {};
  Trainee first(options);
  for (int i = 0; i < 2; ++i) first.engine.step(Trainee::window(5));
  Trainee second(options);
  second.take_over(first);
  EXPECT_TRUE(second.engine.step(Trainee::window(5)).first_non_finite.empty());
  const StepReport report = second.engine.step(Trainee::window(5));
  EXPECT_TRUE(report.diverged);
  EXPECT_NE(report.first_non_finite.find("0.weight"), std::string::npos) << report.first_non_finite;
}

TEST(EngineState, SteppingOverConsumesAWindowAndChangesNothingElse) {
  const EngineOptions options = full(OptimizerKind::kAdamW, Precision::kFp16);
  Trainee run(options);
  run.steps(0, 3);
  const std::vector<at::Tensor> before = run.all();
  const EngineState state = run.engine.state();
  const StepReport report = run.engine.step_over(Trainee::window(3));
  EXPECT_TRUE(report.skipped());
  EXPECT_EQ(report.window, 4);
  EXPECT_EQ(report.update, 3);
  EXPECT_EQ(report.skipped_total, 1);
  EXPECT_EQ(report.divisor, 6);
  EXPECT_TRUE(same_bytes(run.all(), before));
  EXPECT_EQ(run.engine.state().loss_scale, state.loss_scale);
  EXPECT_EQ(run.engine.state().num_good_updates, state.num_good_updates);
  EXPECT_EQ(run.engine.state().counters.skips_in_a_row, 0);
  EXPECT_EQ(run.engine.next_lr(), report.lr);
}

}  // namespace
}  // namespace gradstep::testing

// Engine::examine: norms of each module against those taken by hand, and that it leaves no trace.
#include <ATen/autocast_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/memory_limit.h"
#include "step/micro_batches.h"
#include "support/lin.h"
#include "support/mlp.h"
#include "support/thread_world.h"
#include "support/toys.h"

namespace gradstep::testing {
namespace {

using ::testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Modules in modules, batch norm, a parameter of the root, and one that is used under a cast of its own.
struct NestedImpl : torch::nn::Module {
  NestedImpl() {
    block =
        register_module("block", torch::nn::Sequential(torch::nn::Linear(4, 16), torch::nn::BatchNorm1d(16)));
    head = register_module("head", torch::nn::Linear(16, 3));
    gain = register_parameter("gain", at::full({3}, 1.5F));
  }
  at::Tensor forward(const at::Tensor& x) {
    given.clear();
    const at::Tensor a = note("block.0", block[0]->as<torch::nn::Linear>()->forward(x));
    const at::Tensor b = note("block.1", block[1]->as<torch::nn::BatchNorm1d>()->forward(a));
    const at::Tensor c = note("head", head(torch::dropout(b.relu(), 0.3, is_training())));
    const at::Tensor d = note("", c * gain.to(c.scalar_type()));
    for (const auto& [module, output] : given)
      squares[module] += output.detach().to(at::kDouble).square().sum().item<double>();
    return d;
  }
  at::Tensor note(const std::string& module, const at::Tensor& output) {
    given[module] = output;
    return output;
  }
  torch::nn::Sequential block{nullptr};
  torch::nn::Linear head{nullptr};
  at::Tensor gain;
  std::map<std::string, at::Tensor> given;  // by the last forward
  std::map<std::string, double> squares;    // over all forwards
};
TORCH_MODULE(Nested);

Nested nested() {
  torch::manual_seed(7);
  return Nested();
}

EngineOptions options(Precision precision) {
  return {.schedule = {.shape = LrShape::kConstant, .peak = 0.01},
          .precision = precision,
          .scaler = {.init_scale = 1024},
          .micro_batch = 3};
}

Window window_of(int64_t n, int64_t width = 4) {
  torch::manual_seed(11);
  Window window;
  window.batch = {torch::randn({n, width}), torch::randint(0, 3, {n}, torch::kLong)};
  window.total_samples = n;
  return window;
}

std::vector<std::string> names(const std::vector<ModuleNorms>& modules) {
  std::vector<std::string> result;
  for (const ModuleNorms& module : modules) result.push_back(module.module);
  return result;
}

const ModuleNorms& of(const std::vector<ModuleNorms>& modules, const std::string& name) {
  return *std::ranges::find_if(modules, [&](const ModuleNorms& module) { return module.module == name; });
}

// Norm over the gradients of a module's parameters, by step()'s own arithmetic: SGD with lr 1 on a copy.
std::map<std::string, double> gradient_norms(Precision precision, const Window& window) {
  Nested model = nested();
  EngineOptions sgd = options(precision);
  sgd.optimizer = {.kind = OptimizerKind::kSgd, .weight_decay = 0, .momentum = 0};
  sgd.schedule.peak = 1;
  Engine engine(classification_task(model), sgd, solo());
  const std::vector<at::Tensor> before = copies(engine.optimizer().parameters());
  engine.step(window);
  std::map<std::string, double> squares;
  const NamedTensors& after = engine.optimizer().parameters();
  for (size_t i = 0; i < before.size(); ++i) {
    const std::string& name = after[i].first;
    const std::string module = name.find('.') == std::string::npos ? "" : name.substr(0, name.rfind('.'));
    squares[module] += (before[i] - after[i].second.detach()).to(at::kDouble).square().sum().item<double>();
  }
  for (auto& [module, sum] : squares) sum = std::sqrt(sum);
  return squares;
}

TEST(Examine, NormsAreThoseTakenByHandInEveryPrecision) {
  const Window window = window_of(20);
  for (const Precision precision : {Precision::kFp32, Precision::kBf16, Precision::kFp16}) {
    SCOPED_TRACE(to_string(precision));
    Nested model = nested();
    Engine engine(classification_task(model), options(precision), solo());
    const Examination seen = engine.examine(window);
    EXPECT_EQ(seen.first_non_finite, "");
    EXPECT_EQ(names(seen.modules), (std::vector<std::string>{"", "block.0", "block.1", "head"}));
    const std::map<std::string, double> expected = gradient_norms(precision, window);
    for (const ModuleNorms& module : seen.modules) {
      EXPECT_NEAR(module.forward / std::sqrt(model->squares[module.module]), 1, 1e-9) << module.module;
      EXPECT_NEAR(module.backward / expected.at(module.module), 1, 1e-4) << module.module;
      EXPECT_EQ(module.num_bad, 0);
    }
  }
}

TEST(Examine, TwiceGivesTheSameBits) {
  const Window window = window_of(20);
  for (const Precision precision : {Precision::kFp32, Precision::kBf16, Precision::kFp16}) {
    Engine engine(classification_task(nested()), options(precision), solo());
    const Examination first = engine.examine(window);
    const std::vector<at::Tensor> noise{at::randn({1000}),
                                        at::randn({7})};  // other memory, other random state
    EXPECT_EQ(engine.examine(window).modules, first.modules);
  }
}

TEST(Examine, TheModelOfTheReferenceJob) {
  torch::manual_seed(0);
  const Task task = make_task({.hidden = 8}, {.name = "toy", .input_shape = {2, 2}, .num_classes = 3});
  Engine engine(task, options(Precision::kBf16), solo());
  Window window = window_of(7);
  window.batch.inputs = torch::randint(0, 256, {7, 2, 2}, torch::kUInt8);
  const Examination seen = engine.examine(window);
  EXPECT_EQ(names(seen.modules), (std::vector<std::string>{"fc1", "fc2"}));
  for (const ModuleNorms& module : seen.modules) {
    EXPECT_GT(module.forward, 0);
    EXPECT_GT(module.backward, 0);
  }
}

TEST(Examine, LeavesNoTrace) {
  const Window window = window_of(20);
  for (const Precision precision : {Precision::kFp32, Precision::kBf16, Precision::kFp16}) {
    Nested looked_at = nested();
    Nested left_alone = nested();
    Engine engine(classification_task(looked_at), options(precision), solo());
    Engine expected(classification_task(left_alone), options(precision), solo());
    for (int i = 0; i < 3; ++i) {
      looked_at->eval();
      const EngineState before = engine.state();
      (void)engine.examine(window);
      EXPECT_FALSE(looked_at->is_training());
      EXPECT_EQ(engine.state().counters.windows, before.counters.windows);
      EXPECT_EQ(engine.state().loss_scale, before.loss_scale);
      for (const auto& [name, parameter] : engine.optimizer().parameters())
        EXPECT_FALSE(parameter.grad().defined());
      EXPECT_TRUE(same_bytes(looked_at->buffers(), left_alone->buffers()));
      EXPECT_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
      engine.step(window);
      expected.step(window);
    }
    EXPECT_TRUE(same_bytes(everything(engine), everything(expected)));
    EXPECT_TRUE(same_bytes(looked_at->buffers(), left_alone->buffers()));
  }
}

TEST(Examine, CountsBadValuesFromWhereTheyBegin) {
  Nested model = nested();
  Engine engine(classification_task(model), options(Precision::kFp32), solo());
  {
    const at::NoGradGuard no_grad;
    model->block[1]->as<torch::nn::BatchNorm1d>()->weight[5] = std::numeric_limits<float>::infinity();
  }
  const Examination seen = engine.examine(window_of(20));
  EXPECT_THAT(seen.first_non_finite, HasSubstr("block.1.weight"));
  EXPECT_GT(of(seen.modules, "head").num_bad, 0);
  EXPECT_GE(of(seen.modules, "block.1").num_bad, 20);
  EXPECT_FALSE(std::isfinite(of(seen.modules, "block.1").forward));
  EXPECT_TRUE(std::isfinite(of(seen.modules, "block.0").forward));
  EXPECT_FALSE(std::isfinite(of(seen.modules, "block.0").backward));
}

TEST(Examine, ASkipReportsWhatItSawAtTheFirstOfARow) {
  Nested model = nested();
  Engine engine(classification_task(model), options(Precision::kFp16), solo());
  Window bad = window_of(20);
  engine.step(bad);
  bad.batch.inputs[19][2] = kNan;
  const EngineState before = engine.state();
  const StepReport report = engine.step(bad);
  ASSERT_TRUE(report.skipped());
  ASSERT_EQ(report.modules.size(), 4U);
  EXPECT_GT(of(report.modules, "block.0").num_bad, 16);
  // Gone back to that window, a second look shows the same.
  engine.restore(before);
  const Examination seen = engine.examine(bad);
  EXPECT_EQ(seen.first_non_finite, report.first_non_finite);
  for (size_t i = 0; i < seen.modules.size(); ++i) {
    EXPECT_EQ(std::bit_cast<uint64_t>(seen.modules[i].forward),
              std::bit_cast<uint64_t>(report.modules[i].forward));
    EXPECT_EQ(seen.modules[i].num_bad, report.modules[i].num_bad);
  }
  engine.step(bad);
  EXPECT_TRUE(engine.step(bad).modules.empty());
}

TEST(Examine, RanksInThreadsDoNotMixWhatTheySee) {
  std::vector<std::vector<ModuleNorms>> seen(2);
  run_ranks(2, [&](World& world) {
    Dot dot(at::ones({1, 2}));
    Engine engine(dot_task(dot), options(Precision::kFp32), world);
    Window window;
    window.batch = {at::full({6, 2}, world.rank() == 0 ? 1.0F : kNan), no_targets(6)};
    window.total_samples = 12;
    const StepReport report = engine.step(window);
    EXPECT_EQ(report.non_finite_rank, 1);  // told on both
    EXPECT_GT(report.modules[0].num_bad, 0);
    EXPECT_THAT(report.first_non_finite, HasSubstr("aten::"));
    seen[static_cast<size_t>(world.rank())] = engine.examine(window, report.divisor).modules;
  });
  EXPECT_EQ(seen[0][0].num_bad, 0);
  EXPECT_GT(seen[1][0].num_bad, 0);
}

TEST(Examine, WithoutMemoryItSaysSo) {
  Dot dot(at::ones({1, 2}));
  Task task = dot_task(dot);
  bool short_of_memory = false;
  task.forward = [&, dot](const Batch& batch) mutable {
    if (short_of_memory) throw std::bad_alloc();
    short_of_memory = true;
    return dot->forward(batch.inputs);
  };
  Engine engine(task, options(Precision::kFp32), solo());
  const StepReport report = engine.step(at::full({3, 2}, kNan), no_targets(3));
  EXPECT_TRUE(report.skipped());
  EXPECT_THAT(report.first_non_finite, HasSubstr("no memory for a second look"));
}

}  // namespace
}  // namespace gradstep::testing

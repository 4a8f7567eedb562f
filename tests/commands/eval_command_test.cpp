// gradstep eval: the process is set as for the run that wrote the model.
#include "commands/eval_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/machine.h"
#include "base/memory_limit.h"
#include "gradstep/base/error.h"
#include "gradstep/checkpoint/model_file.h"
#include "gradstep/model/tasks.h"
#include "support/message_of.h"
#include "support/small_run.h"

namespace gradstep::testing {
namespace {

void reset_process() {
  limit_tensor_memory(0);
  at::globalContext().setDeterministicAlgorithms(false, /*warn_only=*/false);
}

TEST(EvalCommand, IsDeterministicAsTheRunWasAndHasAMemoryLimit) {
  for (const bool deterministic : {true, false}) {
    SmallRun run;
    run.config.deterministic = deterministic;
    run.run();
    reset_process();
    ::testing::internal::CaptureStdout();
    StopToken stop;
    EXPECT_EQ(run_eval({.model_path = run.out.path(), .device = "cpu", .threads = 1}, stop), 0);
    (void)::testing::internal::GetCapturedStdout();
    EXPECT_EQ(at::globalContext().deterministicAlgorithms(), deterministic);
    // Without a limit Linux would hand this out.
    EXPECT_THROW((void)at::empty({free_memory_bytes().value()}, at::kByte), c10::OutOfMemoryError);
    reset_process();
  }
}

// A program with tables of its own, a loss that is no number, and a vocabulary that can change.
class OddRecipe final : public Recipe {
 public:
  DatasetPair data() override {
    const DatasetSpec spec{
        .name = "odd", .input_shape = {2}, .kind = SampleKind::kTokens, .vocab_size = vocab_size};
    const at::Tensor inputs = at::ones({4, 2});
    const auto part = std::make_shared<TensorDataset>(spec, inputs, inputs);
    return {part, part};
  }
  Task task(const DatasetSpec& /*spec*/) override {
    Task task = regression_task(torch::nn::Linear(2, 2));
    task.loss_sum = [](const at::Tensor& outputs, const Batch&) { return outputs.sum() * NAN; };
    const auto halves = [](const at::Tensor&, const Batch&) {
      return MetricSum{at::tensor({0.5, 0.25}), at::tensor({1.0, 0.5})};
    };
    task.metrics = {{.name = "error", .measure = halves, .table_of = "group", .num_rows = 2},
                    {.name = "drift", .measure = halves, .table_of = "group", .num_rows = 2}};
    return task;
  }
  inline static int64_t vocab_size = 7;
};

TEST(EvalCommand, ShowsTablesAsTheyAreAndNumbersThatAreNotFinite) {
  App app("odd");
  app.recipe<OddRecipe>("odd");
  set_program(AppAccess::program(app));
  const ScratchDir dir;
  const Task task = OddRecipe().task({});
  const std::string model = dir.file("model.safetensors");
  save_model(posix_file_system(), model, *task.module,
             {.settings = {{"model", "odd"}, {"dataset", "odd"}, {"vocab_size", "7"}}});
  const EvalOptions options{.model_path = model, .device = "cpu", .threads = 1, .json = true};
  StopToken stop;
  ::testing::internal::CaptureStdout();
  EXPECT_THAT(message_of<Diverged>([&] { (void)run_eval(options, stop); }),
              ::testing::HasSubstr("the loss of the samples is not finite"));
  const auto json = nlohmann::json::parse(::testing::internal::GetCapturedStdout());
  EXPECT_EQ(json["val_loss"], "NaN");
  for (const char* name : {"error", "drift"}) {
    EXPECT_EQ(json["tables"][name]["rows"], "group");
    EXPECT_EQ(json["tables"][name]["values"], (std::vector<double>{0.5, 0.5}));
  }
  EXPECT_FALSE(json.contains("group_hits"));
  OddRecipe::vocab_size = 8;
  EXPECT_THAT(message_of<ConfigError>([&] { (void)run_eval(options, stop); }),
              ::testing::HasSubstr("its sequences or vocabulary are not those"));
  set_program(AppAccess::program(gradstep_under_test()));
  reset_process();
}

}  // namespace
}  // namespace gradstep::testing

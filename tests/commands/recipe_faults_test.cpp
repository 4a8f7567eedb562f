// Recipes that are at fault, and texts of users that no file can hold: one line, before anything is trained.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fstream>
#include <iterator>
#include <limits>

#include "app/make_job.h"
#include "app/train_config.h"
#include "commands/train_command.h"
#include "config/config_file.h"
#include "gradstep/base/error.h"
#include "gradstep/model/tasks.h"
#include "support/gradstep_program.h"
#include "support/message_of.h"
#include "support/scratch_dir.h"
#include "support/toys.h"
#include "support/trained.h"

namespace gradstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class EmptyDataset final : public Dataset {
 public:
  [[nodiscard]] const DatasetSpec& spec() const override { return spec_; }
  [[nodiscard]] int64_t size() const override { return 0; }
  [[nodiscard]] Batch gather(const at::Tensor& /*ids*/, const Draw& /*draw*/) const override { return {}; }
  [[nodiscard]] std::string fingerprint() const override { return "empty"; }

 private:
  DatasetSpec spec_{.name = "line", .input_shape = {1}};
};

// Regression on eight samples, as the tests below need it: `file` is read if it is given, and the module is
// what they set.
class FaultyRecipe final : public Recipe {
 public:
  void flags(Flags& flags) override { flags.add("file", file_, "A file.").on_resume(OnResume::kRefused); }
  DatasetPair data() override {
    if (reads_file) {
      std::ifstream in(file_, std::ios::binary);
      const std::string text(std::istreambuf_iterator<char>(in), {});
    }
    const at::Tensor x = at::arange(8, at::kFloat).view({8, 1});
    const auto line = std::make_shared<TensorDataset>(DatasetSpec{.name = "line", .input_shape = {1}}, x, x);
    const auto empty = std::make_shared<EmptyDataset>();
    if (is_empty) return {empty, nullptr};
    return {line, has_empty_test ? empty : nullptr};
  }
  Task task(const DatasetSpec& /*spec*/) override {
    Task task = regression_task(make());
    if (change_task) change_task(task);
    return task;
  }

  inline static std::function<torch::nn::Sequential()> make;
  inline static std::function<void(Task&)> change_task;
  inline static bool reads_file = false;
  inline static bool is_empty = false;
  inline static bool has_empty_test = false;

 private:
  std::string file_;
};

class RecipeFaults : public ::testing::Test {
 protected:
  RecipeFaults() : app_("faulty") {
    app_.recipe<FaultyRecipe>("model");
    set_program(AppAccess::program(app_));
    FaultyRecipe::make = [] { return torch::nn::Sequential(torch::nn::Linear(1, 1)); };
    FaultyRecipe::change_task = nullptr;
    FaultyRecipe::reads_file = false;
    FaultyRecipe::is_empty = false;
    FaultyRecipe::has_empty_test = false;
  }
  ~RecipeFaults() override { set_program(AppAccess::program(gradstep_under_test())); }

  // The settings that each test starts from.
  struct Start : RunSettings {
    explicit Start(const std::string& output_dir) : RunSettings(program().catalog) {
      config.output_dir = output_dir;
      config.batch_size = 2;
      config.grad_accum_steps = 1;
      config.warmup_steps = 0;
      config.threads = 1;
    }
  };
  [[nodiscard]] Start settings() const { return Start(out_.file("run")); }
  template <class Failure>
  static std::string refusal(const RunSettings& settings) {
    return message_of<Failure>([&] { trained(settings); });
  }

  App app_;
  ScratchDir out_;
};

TEST_F(RecipeFaults, AModuleWithoutParametersIsRefused) {
  FaultyRecipe::make = [] { return torch::nn::Sequential(torch::nn::ReLU()); };
  EXPECT_THAT(refusal<ConfigError>(settings()), HasSubstr("the model has no parameters to train"));
}

TEST_F(RecipeFaults, AModuleThatIsFrozenAltogetherIsRefused) {
  FaultyRecipe::make = [] {
    torch::nn::Sequential net(torch::nn::Linear(1, 1));
    for (at::Tensor& parameter : net->parameters()) parameter.requires_grad_(false);
    return net;
  };
  EXPECT_THAT(refusal<ConfigError>(settings()), HasSubstr("no parameter"));
}

TEST_F(RecipeFaults, AModuleThatNoCheckpointCouldRestoreIsRefused) {
  FaultyRecipe::make = [] {
    torch::nn::Sequential net(torch::nn::Linear(1, 1));
    net->register_buffer("scale", torch::ones({1}).expand({3}));
    return net;
  };
  EXPECT_THAT(
      refusal<ConfigError>(settings()),
      HasSubstr("buffer scale has elements that share memory, so that no checkpoint can be restored"));
}

TEST_F(RecipeFaults, AFileThatItCannotReadIsAnErrorOfTheData) {
  FaultyRecipe::reads_file = true;
  Start folder = settings();
  folder.set("file", out_.path(), "--file");
  EXPECT_THAT(refusal<DataError>(folder), AllOf(HasSubstr("data set model: "), HasSubstr("Is a directory")));
}

TEST_F(RecipeFaults, APartOfTheDataWithoutSamplesIsAnErrorOfTheData) {
  FaultyRecipe::has_empty_test = true;
  EXPECT_THAT(refusal<DataError>(settings()),
              HasSubstr("data set model: its evaluation part has no samples"));
  FaultyRecipe::is_empty = true;
  EXPECT_THAT(refusal<DataError>(settings()), HasSubstr("data set model: its training part has no samples"));
}

TEST_F(RecipeFaults, WhatItThrowsIsNamedByItsFunction) {
  FaultyRecipe::make = []() -> torch::nn::Sequential { throw std::runtime_error("no weights"); };
  EXPECT_THAT(refusal<Error>(settings()),
              HasSubstr("task() of model 'model' threw an exception: no weights"));
  FaultyRecipe::make = []() -> torch::nn::Sequential { throw 42; };
  EXPECT_THAT(refusal<Error>(settings()), HasSubstr("task() of model 'model' threw something"));
  FaultyRecipe::make = []() -> torch::nn::Sequential { throw DataError("speaks for itself"); };
  EXPECT_THAT(refusal<DataError>(settings()), ::testing::StartsWith("speaks for itself"));
}

TEST_F(RecipeFaults, WhatItsTaskThrowsIsNamedByItsFunction) {
  FaultyRecipe::change_task = [](Task& task) {
    task.forward = [](const Batch& batch) { return batch.extras.at("town"); };
  };
  EXPECT_THAT(refusal<Error>(settings()), HasSubstr("Task::forward of model 'model' threw an exception: "));
  FaultyRecipe::change_task = [](Task& task) {
    task.loss_sum = [](const at::Tensor&, const Batch&) -> at::Tensor { throw 42; };
  };
  EXPECT_THAT(refusal<Error>(settings()), HasSubstr("Task::loss_sum of model 'model' threw something"));
}

TEST_F(RecipeFaults, ALossThatIsNoSumIsRefusedByTheProbeToo) {
  FaultyRecipe::change_task = [](Task& task) {
    task.loss_sum = [](const at::Tensor& outputs, const Batch&) { return outputs.square().flatten(); };
  };
  EXPECT_THAT(refusal<ConfigError>(settings()), HasSubstr("Task::loss_sum gave a tensor with dimensions"));
}

TEST_F(RecipeFaults, FlagsThatNoFileOfARunCouldHoldAreErrorsOfTheProgram) {
  double unset = std::numeric_limits<double>::quiet_NaN();
  double number = 1;
  Flags flags;
  EXPECT_THAT(message_of<std::logic_error>([&] { flags.add("x", unset, "A number."); }),
              HasSubstr("flag 'x': its default must be a finite number"));
  Flags::Entry& entry = flags.add("y", number, "A number.");
  EXPECT_THAT(message_of<std::logic_error>([&] { entry.group("two\nlines"); }), HasSubstr("one line"));
  EXPECT_THAT(message_of<std::logic_error>([&] { entry.alias("Y-Y"); }), HasSubstr("its alias 'Y-Y'"));
}

TEST_F(RecipeFaults, ATextThatIsNotUtf8GoesOnAndIsComparedAsItIsStored) {
  Start start = settings();
  start.set("file", "caf\xe9", "--file");
  start.config.stop_after = 2;
  trained(start);
  // The config file stays one, and says what it could not hold.
  const std::string config = out_.file("run/config.toml");
  const std::vector<GivenSetting> read = read_config_file(config, start.flags());
  EXPECT_EQ(std::ranges::count(read, std::string("file"), &GivenSetting::key), 0);
  std::ifstream in(config, std::ios::binary);
  EXPECT_THAT(std::string(std::istreambuf_iterator<char>(in), {}), HasSubstr("# Not UTF-8"));

  start.config.resume = "auto";
  EXPECT_NO_THROW(trained(start));
  start.set("file", "tea", "--file");
  EXPECT_THAT(refusal<ConfigError>(start), HasSubstr("file was caf"));
}

TEST_F(RecipeFaults, ATextWithANulCharacterIsRefused) {
  const std::string path = out_.file("job.toml");
  std::ofstream(path) << "file = \"a\\u0000b\"\n";
  EXPECT_THAT(message_of<ConfigError>([&] { (void)read_config_file(path, settings().flags()); }),
              AllOf(HasSubstr("job.toml, line 1"), HasSubstr("file holds a NUL character")));
}

}  // namespace
}  // namespace gradstep::testing

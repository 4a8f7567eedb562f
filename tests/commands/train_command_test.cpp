// The train command with a recipe that adjusts the job: optimizer, schedule and order of its own.
#include "commands/train_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "commands/eval_command.h"
#include "gradstep/base/error.h"
#include "gradstep/checkpoint/checkpoint.h"
#include "gradstep/io/safetensors.h"
#include "gradstep/model/tasks.h"
#include "gradstep/report/sinks.h"
#include "support/adagrad.h"
#include "support/gradstep_program.h"
#include "support/message_of.h"
#include "support/scratch_dir.h"
#include "support/trained.h"

namespace gradstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kSamples = 32;

// Runs through the samples from the last to the first, from another one in each epoch.
at::Tensor backwards(int64_t epoch) { return at::arange(kSamples).flip(0).roll(epoch).contiguous(); }

class OwnRecipe final : public Recipe {
 public:
  void flags(Flags& flags) override {
    flags.add("die_at", die_at_, "Throws before this update.").on_resume(OnResume::kFree);
  }
  DatasetPair data() override {
    const at::Tensor x = at::arange(3 * (kSamples + 8), at::kFloat).view({-1, 3}).sin();
    const auto part = [&](int64_t begin, int64_t end) {
      const DatasetSpec spec{.name = "sums", .input_shape = {3}};
      const at::Tensor inputs = x.slice(0, begin, end).contiguous();
      return std::make_shared<TensorDataset>(spec, inputs, inputs.sum(1, /*keepdim=*/true));
    };
    return {part(0, kSamples), part(kSamples, kSamples + 8)};
  }
  Task task(const DatasetSpec& /*spec*/) override {
    return regression_task(torch::nn::Sequential(torch::nn::Linear(3, 4), torch::nn::Tanh(),
                                                 torch::nn::Dropout(0.25), torch::nn::Linear(4, 1)));
  }
  void adjust(Job& job) override {
    if (!adjusts) return;
    job.engine.make_optimizer = make_adagrad;
    job.engine.schedule.function = [die_at = die_at_](int64_t update) {
      if (update == die_at) throw std::runtime_error("killed");
      return 0.5 / static_cast<double>(update);
    };
    job.order = backwards;
  }
  void add_sinks(SinkList& sinks, const std::string& output_dir) override {
    sinks.add(std::make_unique<JsonlSink>(output_dir + "/own.jsonl"));
  }
  [[nodiscard]] std::map<std::string, std::string> notes() const override { return {{"note", "mine"}}; }
  [[nodiscard]] std::string folder() const override { return "some/where"; }
  void restored() override { was_restored = true; }

  inline static bool adjusts = true;
  inline static bool was_restored = false;

 private:
  int64_t die_at_ = 0;
};

// A program with OwnRecipe, while it lives.
class AdjustedRun : public ::testing::Test {
 protected:
  AdjustedRun() : app_("own") {
    app_.recipe<OwnRecipe>("own");
    set_program(AppAccess::program(app_));
    OwnRecipe::adjusts = true;
  }
  ~AdjustedRun() override { set_program(AppAccess::program(gradstep_under_test())); }

  // 3 epochs of 8 updates; what was printed.
  std::string train(const std::string& name, const std::map<std::string, std::string>& more = {}) {
    RunSettings settings(program().catalog);
    settings.config.output_dir = folder(name);
    settings.config.batch_size = 4;
    settings.config.grad_accum_steps = 1;
    settings.config.epochs = 3;
    settings.config.warmup_steps = 0;
    settings.config.precision = "fp32";
    settings.config.matmul = "torch";
    settings.config.threads = 1;
    settings.config.device = "cpu";
    settings.config.save_interval = {5, Interval::Unit::kUpdates};
    for (const auto& [key, text] : more) settings.set(key, text, key);
    return trained(settings);
  }
  [[nodiscard]] std::string folder(const std::string& name) const { return out_.file(name); }
  [[nodiscard]] std::string bytes(const std::string& name, const std::string& file) const {
    std::ifstream in(folder(name) + "/" + file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  App app_;
  ScratchDir out_;
};

TEST_F(AdjustedRun, ThePlanSpeaksOfWhatIsItsOwn) {
  const std::string plan = train("plan", {{"dry_run", "true"}});
  EXPECT_THAT(plan, AllOf(HasSubstr("one of the program"), HasSubstr("a function of the program"),
                          HasSubstr("own in some/where")));
}

TEST_F(AdjustedRun, OptimizerScheduleAndOrderHold) {
  train("run", {{"max_steps", "1"}});
  const FoundCheckpoint found = newest_checkpoint(folder("run")).value();
  EXPECT_TRUE(found.state.optimizer.front().first.ends_with(".sum"));
  for (const char* key : {"opt", "sched", "order"}) EXPECT_EQ(found.state.settings.at(key), "own") << key;
  EXPECT_THAT(bytes("run", "metrics.jsonl"), HasSubstr("\"lr\":0.5,"));
}

TEST_F(AdjustedRun, SinksOfItsOwnGetAllRows) {
  train("run", {{"max_steps", "3"}});
  EXPECT_THAT(bytes("run", "own.jsonl"), HasSubstr("\"update\":3,"));
  EXPECT_EQ(bytes("run", "own.jsonl"), bytes("run", "metrics.jsonl"));
}

// A kill between two checkpoints: what came after the last one is done again.
TEST_F(AdjustedRun, KilledAndResumedItEndsWithTheSameBits) {
  train("whole");
  EXPECT_THAT(message_of<std::runtime_error>([&] { train("parts", {{"die_at", "18"}}); }),
              HasSubstr("killed"));
  // A run that fails still saves; one that is killed does not.
  for (const int64_t update : list_checkpoints(folder("parts"))) {
    if (update > 15)
      std::filesystem::remove_all(checkpoints_dir(folder("parts")) + "/" + checkpoint_name(update));
  }
  EXPECT_EQ(newest_checkpoint(folder("parts")).value().state.engine.counters.updates, 15);
  train("parts", {{"resume", "auto"}});
  EXPECT_EQ(bytes("parts", "model.safetensors"), bytes("whole", "model.safetensors"));
  EXPECT_EQ(bytes("parts", "best.safetensors"), bytes("whole", "best.safetensors"));
}

TEST_F(AdjustedRun, WithoutItsAdjustmentsItIsAnotherRun) {
  train("run", {{"stop_after", "5"}});
  OwnRecipe::adjusts = false;
  EXPECT_THAT(message_of<ConfigError>([&] { train("run", {{"resume", "auto"}}); }),
              AllOf(HasSubstr("opt was own, is adamw"), HasSubstr("sched was own, is cosine"),
                    HasSubstr("order was own, is shuffled")));
  train("plain", {{"stop_after", "5"}});
  OwnRecipe::adjusts = true;
  EXPECT_THAT(message_of<ConfigError>([&] { train("plain", {{"resume", "auto"}}); }),
              HasSubstr("opt was adamw, is own"));
}

TEST_F(AdjustedRun, EvalKnowsTheModelAgain) {
  train("run");
  EXPECT_EQ(read_safetensors(folder("run") + "/model.safetensors").metadata.at("gradstep.note"), "mine");
  StopToken stop;
  OwnRecipe::was_restored = false;
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(run_eval({.model_path = folder("run"), .device = "cpu", .threads = 1}, stop), 0);
  EXPECT_THAT(::testing::internal::GetCapturedStdout(),
              HasSubstr("own in some/where, evaluation part: 8 samples"));
  EXPECT_TRUE(OwnRecipe::was_restored);
}

}  // namespace
}  // namespace gradstep::testing

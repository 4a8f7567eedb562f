// gradstep replay: a black box of a small data set on disk, replayed as a user does it.
#include "commands/replay_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "gradstep/base/error.h"
#include "incident/black_box.h"
#include "support/gradstep_program.h"
#include "support/idx_files.h"
#include "support/message_of.h"
#include "support/mlp.h"
#include "support/scratch_dir.h"
#include "support/toys.h"

namespace gradstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ReplayCommand : public ::testing::Test {
 protected:
  ReplayCommand() { write_idx_dataset(data, 30, 10); }

  // The box of a window that a weight of infinity spoils.
  BlackBox leave_box(double val_fraction = 0) {
    std::shared_ptr<const Dataset> train = load_dataset("mnist", data.path(), Split::kTrain);
    if (val_fraction > 0) train = split_validation(train, val_fraction, 5).train;
    const ModelOptions model{.hidden = 6, .dropout = 0.5};
    torch::manual_seed(5);
    Task task = make_task(model, train->spec());
    Engine engine(task, {.schedule = {.shape = LrShape::kConstant}, .micro_batch = 3, .seed = 5}, solo());
    {
      const at::NoGradGuard no_grad;
      task.module->named_parameters()["fc1.weight"][2][1] = std::numeric_limits<float>::infinity();
    }
    Window window;
    window.ids = at::tensor({7, 3, 19, 4, 11, 0, 16}, at::kLong);
    window.batch = train->gather(window.ids);
    window.total_samples = 7;
    const StepReport report = engine.step(window);
    EXPECT_TRUE(report.skipped());
    BlackBox box = make_black_box(engine, window, report);
    box.info = {.settings = {{"model", "mlp"}, {"hidden", "6"}, {"dropout", "0.5"}, {"dataset", "mnist"}}};
    box.settings = {{"data_dir", data.path()},
                    {"val_fraction", val_fraction > 0 ? "0.2" : "0"},
                    {"seed", "5"},
                    {"threads", "1"},
                    {"device", "cpu"}};
    box.dataset_fingerprint = train->fingerprint();
    write_black_box(posix_file_system(), path(), box);
    return box;
  }
  [[nodiscard]] std::string path() const { return out.file("box.safetensors"); }
  // Exit code and what was printed.
  std::pair<int, std::string> run(const ReplayOptions& options) {
    ::testing::internal::CaptureStdout();
    const int code = run_replay(options);
    return {code, ::testing::internal::GetCapturedStdout()};
  }

  ScratchDir data;
  ScratchDir out;
};

TEST_F(ReplayCommand, PrintsTheSameTableAndSaysSo) {
  for (const double val_fraction : {0.0, 0.2}) {
    const BlackBox box = leave_box(val_fraction);
    const auto [code, text] = run({.path = path()});
    EXPECT_EQ(code, 0);
    EXPECT_EQ(text, format_norm_table(box) + "\nsame as recorded\n");
    EXPECT_THAT(text, AllOf(HasSubstr("parameter fc1.weight"), HasSubstr("7 3 19 4 11 0 16")));
  }
}

TEST_F(ReplayCommand, AScheduleAnOptimizerAndAnOrderOfTheProgramsOwnDoNotMatter) {
  BlackBox box = leave_box();
  box.settings.insert({{"sched", "own"}, {"opt", "own"}, {"order", "own"}, {"lr", "-1"}});
  write_black_box(posix_file_system(), path(), box);
  EXPECT_EQ(run({.path = path()}).first, 0);
}

TEST_F(ReplayCommand, OtherNumbersLeaveWithOne) {
  BlackBox box = leave_box();
  box.modules[1].num_bad += 1;
  write_black_box(posix_file_system(), path(), box);
  const auto [code, text] = run({.path = path()});
  EXPECT_EQ(code, 1);
  EXPECT_THAT(text, HasSubstr("differs in module fc2: bad values"));
}

TEST_F(ReplayCommand, OtherDataIsRefusedAndTheFolderMayBeGiven) {
  leave_box();
  const ScratchDir moved;
  std::filesystem::copy(data.path(), moved.path(), std::filesystem::copy_options::recursive);
  write_idx_dataset(data, 31, 10);
  EXPECT_THAT(message_of<DataError>([&] { (void)run({.path = path()}); }),
              AllOf(HasSubstr("not those of the run"), HasSubstr("--data-dir")));
  (void)::testing::internal::GetCapturedStdout();
  EXPECT_EQ(run({.path = path(), .data = {{"data_dir", moved.path()}}, .device = "cpu", .threads = 1}).first,
            0);
}

}  // namespace
}  // namespace gradstep::testing

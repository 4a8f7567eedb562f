// gradstep doctor on metrics.jsonl: whole, cut, of another run, in disorder.
#include "commands/doctor_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "report/row_json.h"
#include "support/gradstep_program.h"
#include "support/scratch_dir.h"

namespace gradstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string window_line(int64_t window, int64_t update) {
  return window_row_json({.step = {.window = window, .update = update}}) + "\n";
}

class DoctorRows : public ::testing::Test {
 protected:
  // Windows 1 to 4, and a checkpoint after the third.
  void SetUp() override {
    for (int64_t i = 1; i <= 3; ++i) known_ += window_line(i, i);
    newest_.engine.counters = {.windows = 3, .updates = 3};
    newest_.report_positions = {{"metrics.jsonl", std::to_string(known_.size())}};
  }
  void check(const std::string& text, Grade rows, const std::string& rows_text, Grade end,
             const std::string& end_text, bool live = false) {
    dir_.write("metrics.jsonl", text);
    const std::vector<Finding> found = examine_rows(dir_.path(), &newest_, live);
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0].grade, rows) << found[0].text;
    EXPECT_THAT(found[0].text, HasSubstr(rows_text));
    EXPECT_EQ(found[0].exit_code, rows == Grade::kProblem ? ExitCode::kCheckpoint : ExitCode::kOk);
    EXPECT_EQ(found[1].grade, end) << found[1].text;
    EXPECT_THAT(found[1].text, HasSubstr(end_text));
  }
  void check_rows(const std::string& text, Grade grade, const std::string& words) {
    dir_.write("metrics.jsonl", text);
    const std::vector<Finding> found = examine_rows(dir_.path(), &newest_, /*live=*/false);
    EXPECT_EQ(found.front().grade, grade) << found.front().text;
    EXPECT_THAT(found.front().text, HasSubstr(words));
  }
  ScratchDir dir_;
  std::string known_;
  TrainState newest_;
};

TEST_F(DoctorRows, SaysHowFarTheRunIs) {
  const std::string end = "{\"event\":\"end\",\"update\":3,\"reason\":\"done\"}\n";
  const std::string stopped = "{\"event\":\"end\",\"update\":3,\"reason\":\"SIGTERM\"}\n";
  const std::string failed = "{\"event\":\"failed\",\"update\":3,\"error\":\"no room\",\"code\":\"4\"}\n";
  check(known_ + end, Grade::kOk, "4 rows, up to update 3", Grade::kOk, "ended at update 3: done");
  check(known_ + stopped, Grade::kOk, "4 rows", Grade::kOk, "SIGTERM; go on with");
  check(known_ + failed, Grade::kOk, "4 rows", Grade::kWarning, "failed at update 3: no room; mend that");
  check(known_ + window_line(4, 4), Grade::kOk, "those after step-00000003 come again", Grade::kWarning,
        "killed at update 4 or later");
  check(known_ + window_line(4, 4), Grade::kOk, "up to update 4", Grade::kOk, "goes on", /*live=*/true);
}

TEST_F(DoctorRows, OfARowThatIsCutOnlySaysSo) {
  check(known_ + "{\"window\":4,", Grade::kOk, "the last one is cut", Grade::kWarning, "killed");
  check(known_ + "{\"window\":4,", Grade::kOk, "being written", Grade::kOk, "goes on", /*live=*/true);
}

TEST_F(DoctorRows, NamesWhatTheCheckpointKnowsBetter) {
  const std::string two = window_line(1, 1) + window_line(2, 2);
  check_rows(two, Grade::kProblem, "has " + std::to_string(two.size()) + " of the ");
  check_rows("", Grade::kProblem, "has 0 of the ");
  check_rows("\n" + known_, Grade::kProblem, "line 1 is no row");
  check_rows("{}\n" + known_, Grade::kProblem, "is within a row");
  // As long as it should be, but of a run that was slower.
  std::string other = known_;
  for (const char* key : {"\"window\":3", "\"update\":3"}) {
    const size_t place = other.rfind(key);
    ASSERT_NE(place, std::string::npos);
    other[place + std::string(key).size() - 1] = '5';
  }
  check_rows(other, Grade::kProblem, "are at window 5, update 5 where step-00000003 is at window 3");
}

TEST_F(DoctorRows, NamesLinesThatAreNoRowsAndWindowsOutOfOrder) {
  check_rows(known_ + "[1]\n" + window_line(4, 4), Grade::kProblem, "line 4 is no row: [1]");
  check_rows(known_ + "{\"a\":\n", Grade::kProblem, "line 4 is no row");
  check_rows(known_ + window_line(2, 2), Grade::kProblem, "window 2 comes after window 3");
  check_rows(known_ + window_line(6, 6), Grade::kWarning, "window 6 comes after window 3");
  check_rows(known_ + std::string((size_t{16} << 20) + 5, 'x') + "\n", Grade::kProblem, "line 4 is no row");
}

// Longer than what is read at once.
TEST_F(DoctorRows, OfManyRows) {
  std::string text = known_;
  int64_t i = 4;
  while (text.size() < (size_t{3} << 20)) {
    text += window_line(i, i);
    ++i;
  }
  check_rows(text, Grade::kOk, "up to update " + std::to_string(i - 1));
  check_rows(text + window_line(i + 1, i + 1), Grade::kWarning, "rows are missing");
}

TEST_F(DoctorRows, OfNoFileAndOfNone) {
  std::vector<Finding> found = examine_rows(dir_.path(), &newest_, /*live=*/false);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].grade, Grade::kProblem);
  EXPECT_THAT(found[0].text, AllOf(HasSubstr("missing"), HasSubstr("step-00000003")));
  found = examine_rows(dir_.path(), nullptr, /*live=*/false);
  EXPECT_EQ(found[0].grade, Grade::kOk);
  ASSERT_EQ(mkfifo(dir_.file("metrics.jsonl").c_str(), 0600), 0);  // nobody writes to it
  found = examine_rows(dir_.path(), &newest_, /*live=*/false);
  EXPECT_EQ(found[0].grade, Grade::kProblem);
  EXPECT_THAT(found[0].text, HasSubstr("no plain file"));
}

}  // namespace
}  // namespace gradstep::testing

// metrics.jsonl: golden rows, exact numbers, whole lines, and a disk that is full.
// no torch
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>
#include <thread>

#include "gradstep/report/sinks.h"
#include "report/event_text.h"
#include "report/row_json.h"

namespace gradstep {
namespace {

using testing::HasSubstr;

WindowRow sample_row() {
  WindowRow row{
      .window_of_epoch = 5, .samples = 640, .samples_per_s = 130000.5, .time_data = 1e-5, .time_step = 0.001};
  row.memory = 123456789;
  row.step.window = 5;
  row.step.update = 4;
  row.step.epoch = 0;
  row.step.loss = 0.1;
  row.step.lr = 2e-4;
  row.step.grad_norm = 1.0 / 3;
  row.step.loss_scale = 65536;
  row.step.outcome = StepOutcome::kNotFinite;
  row.step.skipped_total = 1;
  row.step.samples = 128;
  row.step.divisor = 128;
  return row;
}

std::string read_file(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

class JsonlSinkTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = (std::filesystem::temp_directory_path() / "gradstep_jsonl_XXXXXX").string();
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string path() const { return folder_ / "metrics.jsonl"; }

 private:
  std::filesystem::path folder_;
};

TEST(WindowRow, SaysWhatWasOddAboutASpike) {
  WindowRow row = sample_row();
  row.step.outcome = StepOutcome::kSpike;
  row.step.spike = SpikeFinding{.value = 9, .z_score = 7, .mean = 2, .num_windows = 128};
  EXPECT_THAT(window_row_json(row),
              HasSubstr(R"("spike":"loss 9 is 7 deviations above the mean 2 of 128 windows")"));
}

TEST(WindowRow, AnEmptyWindowHasNoLossAndNoNorm) {
  WindowRow row = sample_row();
  row.step.outcome = StepOutcome::kEmpty;
  row.step.loss = row.step.grad_norm = std::nan("");
  EXPECT_THAT(window_row_json(row), HasSubstr(R"("loss":null,"lr":2e-04,"grad_norm":null,)"));
  EXPECT_THAT(window_row_json(row), HasSubstr(R"("skipped":true)"));
}

TEST(JsonlRow, GoldenWindow) {
  EXPECT_EQ(
      window_row_json(sample_row()),
      "{\"window\":5,\"update\":4,\"epoch\":0,\"loss\":0.1,\"lr\":2e-04,\"grad_norm\":0.3333333333333333,"
      "\"loss_scale\":65536,\"skipped\":true,\"skipped_total\":1,\"samples\":640,\"divisor\":128,"
      "\"samples_per_s\":130000.5,\"time_data\":1e-05,\"time_step\":0.001,\"memory\":123456789}");
}

TEST(JsonlRow, GoldenEvaluationHasNoLossAndNoLr) {
  const EvalRow row{.update = 469,
                    .epoch = 0,
                    .val_loss = 0.5,
                    .metrics = {{"acc", 0.8665}, {"top5", 0.99}},
                    .samples = 10000};
  EXPECT_EQ(eval_row_json(row),
            "{\"update\":469,\"epoch\":0,\"val_loss\":0.5,\"val_acc\":0.8665,\"val_top5\":0.99,\"val_"
            "samples\":10000,"
            "\"time_eval\":0,\"best\":false}");
}

TEST(JsonlRow, GoldenEvaluationOfAnAverage) {
  const EvalRow row{.update = 469,
                    .val_loss = 0.5,
                    .samples = 10000,
                    .best = true,
                    .ema_val_loss = 0.25,
                    .ema_metrics = {{"acc", std::nan("")}}};
  EXPECT_EQ(eval_row_json(row),
            "{\"update\":469,\"epoch\":0,\"val_loss\":0.5,\"val_samples\":10000,"
            "\"time_eval\":0,\"best\":true,\"ema_val_loss\":0.25,\"ema_val_acc\":\"NaN\"}");
}

// One of each kind: names, keys and their order are read by others.
TEST(JsonlRow, GoldenEvents) {
  const std::vector<std::pair<Event, std::string>> golden{
      {Resumed{.from = "a/step-00000120", .window = 124},
       R"("resume","update":7,"from":"a/step-00000120","window":"124","left":"")"},
      {Resumed{.from = "a", .window = 9, .nothing_left = true},
       R"("resume","update":7,"from":"a","window":"9","left":"nothing left to do")"},
      {SettingChanged{.key = "lr", .before = "0.1", .now = "0.2"},
       R"("changed","update":7,"key":"lr","before":"0.1","now":"0.2")"},
      {BrokenCheckpoint{"a hash differs"}, R"("broken checkpoint","update":7,"what":"a hash differs")"},
      {SaveFailed{"disk full"}, R"("checkpoint failed","update":7,"error":"disk full")"},
      {OutOfMemory{.window = 9, .micro_batch = 16},
       R"("out of memory","update":7,"window":"9","micro_batch":"16")"},
      {Spike{.window = 9, .what = "loss 9"}, R"("spike","update":7,"window":"9","what":"loss 9")"},
      {RolledBack{.window = 9, .cause = "loss 9", .to = "b"},
       R"("rollback","update":7,"window":"9","cause":"loss 9","to":"b")"},
      {BlackBoxWritten{.window = 9, .file = "b"}, R"("black box","update":7,"window":"9","file":"b")"},
      {BlackBoxFailed{.window = 9, .error = "disk full"},
       R"("black box failed","update":7,"window":"9","error":"disk full")"},
      {Warning{"no room"}, R"("warning","update":7,"text":"no room")"}};
  for (const auto& [event, text] : golden)
    EXPECT_EQ(event_row_json({.update = 7, .event = event}), "{\"event\":" + text + "}");
}

TEST(JsonlRow, TheEndSaysWhy) {
  const std::vector<std::pair<RunEnd, std::string>> reasons{
      {{.reason = EndReason::kDone}, "done"},
      {{.reason = EndReason::kEarlyStop}, "early stop"},
      {{.reason = EndReason::kStopped, .stopped_by = ExitCode::kSigint}, "SIGINT"},
      {{.reason = EndReason::kStopped, .stopped_by = ExitCode::kSigusr1}, "SIGUSR1"},
      {{.reason = EndReason::kStopAfter}, "--stop-after"},
      {{.reason = EndReason::kMaxTime}, "--max-time"}};
  for (const auto& [end, text] : reasons) EXPECT_EQ(reason_text(end), text);
}

// Case D6: a NaN is visible in its own row, and what is not finite stays JSON.
TEST(JsonlRow, CaseD6NotFiniteNumbersAreStrings) {
  WindowRow row = sample_row();
  row.step.loss = std::nan("");
  row.step.grad_norm = std::numeric_limits<double>::infinity();
  row.samples_per_s = -std::numeric_limits<double>::infinity();
  row.step.first_non_finite = "aten::addmm (fc1.weight)";
  const auto json = nlohmann::json::parse(window_row_json(row));
  EXPECT_EQ(json["loss"], "NaN");
  EXPECT_EQ(json["grad_norm"], "Infinity");
  EXPECT_EQ(json["samples_per_s"], "-Infinity");
  EXPECT_EQ(json["first_non_finite"], "aten::addmm (fc1.weight)");
}

TEST(JsonlRow, NumbersReadBackToTheSameBits) {
  for (const double value :
       {0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, -0.0, 65536.0, 0.30000000000000004, 1e21, 1e-7}) {
    WindowRow row;
    row.step.loss = value;
    const auto loss = nlohmann::json::parse(window_row_json(row))["loss"].get<double>();
    EXPECT_EQ(loss, value);
    EXPECT_EQ(std::signbit(loss), std::signbit(value));
  }
  WindowRow row;
  row.samples = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(nlohmann::json::parse(window_row_json(row))["samples"].get<int64_t>(), row.samples);
}

TEST(JsonlRow, TextsAreEscapedAndBrokenUtf8IsReplaced) {
  const std::string text = "a\"b\\c\nd\x01\t \xC3\xA9 \xF0\x9F\x98\x80";
  const auto json = nlohmann::json::parse(event_row_json({.event = Warning{text}}));
  EXPECT_EQ(json["text"], text);
  // A lone byte, a cut sequence, a form that is too long, a surrogate, beyond the last code point.
  for (const std::string bad : {"\xFF", "\xC3", "\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE2\x82"}) {
    const auto parsed = nlohmann::json::parse(event_row_json({.event = Warning{"x" + bad + "y"}}));
    const auto shown = parsed["text"].get<std::string>();
    EXPECT_THAT(shown, HasSubstr("\xEF\xBF\xBD"));
    EXPECT_EQ(shown.front(), 'x');
    EXPECT_EQ(shown.back(), 'y');
  }
}

TEST_F(JsonlSinkTest, OnlyTheRowOfTheEndReadsAsOne) {
  {
    JsonlSink sink(path());
    sink.window(sample_row());
    sink.event({.event = Warning{"end"}});
    sink.end({.update = 4});
  }
  std::istringstream lines(read_file(path()));
  std::vector<bool> ends;
  for (std::string line; std::getline(lines, line);) ends.push_back(is_end_row(line));
  EXPECT_EQ(ends, (std::vector<bool>{false, false, true}));
  EXPECT_FALSE(is_end_row(""));
}

TEST_F(JsonlSinkTest, WritesOneLineForEachRow) {
  {
    JsonlSink sink(path());
    sink.window(sample_row());
    sink.eval({.update = 4});
    sink.event({.event = Warning{"x"}});
    sink.end({.update = 4});
  }
  std::istringstream lines(read_file(path()));
  std::vector<nlohmann::json> rows;
  for (std::string line; std::getline(lines, line);) rows.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows[0]["window"], 5);
  EXPECT_EQ(rows[1]["val_samples"], 0);
  EXPECT_EQ(rows[2]["text"], "x");
  EXPECT_EQ(rows[3]["event"], "end");
  EXPECT_EQ(rows[3]["reason"], "done");
}

// Whoever follows the file sees whole lines only, whenever he looks, and all of them after flush().
TEST_F(JsonlSinkTest, HoldsFastRowsBackButOnlyWhole) {
  JsonlSink sink(path());
  const std::string line = window_row_json(sample_row()) + "\n";
  for (size_t i = 0; i < 2000; ++i) {
    sink.window(sample_row());
    ASSERT_EQ(std::filesystem::file_size(path()) % line.size(), 0U);
  }
  EXPECT_LT(std::filesystem::file_size(path()), 2000 * line.size());
  sink.flush();
  EXPECT_EQ(std::filesystem::file_size(path()), 2000 * line.size());
}

TEST_F(JsonlSinkTest, SlowRowsAreThereAtOnce) {
  JsonlSink sink(path());
  const std::string line = window_row_json(sample_row()) + "\n";
  for (size_t i = 1; i <= 3; ++i) {
    sink.window(sample_row());
    EXPECT_EQ(std::filesystem::file_size(path()), i * line.size());
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
  }
}

TEST_F(JsonlSinkTest, AnEvaluationBringsTheRowsBeforeItAlong) {
  JsonlSink sink(path());
  for (int i = 0; i < 5; ++i) sink.window(sample_row());
  sink.eval({});
  const std::string text = read_file(path());
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 6);
}

TEST_F(JsonlSinkTest, AppendsAndCutsOffTheHalfLineOfAKilledProcess) {
  const std::string half(5000, 'x');
  std::ofstream(path()) << "{\"window\":1}\n" << half;
  {
    JsonlSink(path()).event({.event = Warning{"e"}});
  }
  EXPECT_EQ(read_file(path()), "{\"window\":1}\n{\"event\":\"warning\",\"update\":0,\"text\":\"e\"}\n");
  std::ofstream(path()) << half;
  {
    JsonlSink(path()).event({.event = Warning{"e"}});
  }
  EXPECT_EQ(read_file(path()), "{\"event\":\"warning\",\"update\":0,\"text\":\"e\"}\n");
}

TEST_F(JsonlSinkTest, AFullDiskIsAnErrorWithThePath) {
  JsonlSink sink("/dev/full");
  try {
    sink.eval({});
    ADD_FAILURE();
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code(), std::errc::no_space_on_device);
    EXPECT_THAT(error.what(), HasSubstr("/dev/full"));
  }
  sink.flush();  // not tried again
}

// A file that may not grow takes a part of a line first, as a disk does that fills up.
TEST_F(JsonlSinkTest, AWriteThatIsCutShortLeavesWholeLines) {
  JsonlSink sink(path());
  sink.event({.event = Warning{"first"}});
  const std::string before = read_file(path());
  rlimit old{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto old_handler = signal(SIGXFSZ, SIG_IGN);
  const rlimit tight{.rlim_cur = before.size() + 10, .rlim_max = old.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
  EXPECT_THROW(sink.event({.event = Warning{"second"}}), std::system_error);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
  signal(SIGXFSZ, old_handler);
  EXPECT_EQ(read_file(path()), before);
}

TEST_F(JsonlSinkTest, AFolderThatIsNotThereIsNamed) {
  try {
    JsonlSink sink(path() + "/x/metrics.jsonl");
    ADD_FAILURE();
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code(), std::errc::no_such_file_or_directory);
    EXPECT_THAT(error.what(), HasSubstr(path()));
  }
}

// A row for each window must not cost what a window costs. The bound is loose for a busy machine; about 1 us
// is usual.
TEST_F(JsonlSinkTest, ARowCostsMicroseconds) {
  constexpr int kRows = 100000;
  JsonlSink sink(path());
  WindowRow row = sample_row();
  row.step.loss = 0.6723456789012345;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kRows; ++i) sink.window(row);
  const std::chrono::duration<double, std::micro> spent = std::chrono::steady_clock::now() - start;
  RecordProperty("nanoseconds_per_row", static_cast<int>(spent.count() * 1000 / kRows));
  EXPECT_LT(spent.count() / kRows, 20);
}

}  // namespace
}  // namespace gradstep

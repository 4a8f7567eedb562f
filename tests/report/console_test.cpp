// no torch
// The console: lines word for word, what must never hide between two lines, the bar, and an output that goes
// away.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cmath>
#include <string>
#include <thread>

#include "gradstep/report/sinks.h"
#include "report/format.h"
#include "report/progress_bar.h"

namespace gradstep {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

WindowRow row_of(int64_t window) {
  WindowRow row{.window_of_epoch = window, .samples = 128 * window, .samples_per_s = 130000};
  row.step.window = row.step.update = window;
  row.step.loss = 0.67234;
  row.step.lr = 2e-4;
  row.step.samples = 128;
  return row;
}

// Keeps what is written to a FILE*.
class Capture {
 public:
  Capture() : file_(open_memstream(&text_, &size_)) {}
  ~Capture() {
    std::fclose(file_);
    std::free(text_);
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  [[nodiscard]] std::FILE* file() { return file_; }
  [[nodiscard]] std::string text() {
    std::fflush(file_);
    return {text_, size_};
  }

 private:
  char* text_ = nullptr;
  size_t size_ = 0;
  std::FILE* file_;
};

// What a terminal shows after `text`: carriage returns overwrite.
std::string shown(const std::string& text) {
  std::string screen, line;
  size_t column = 0;
  for (const char c : text) {
    if (c == '\r') {
      column = 0;
    } else if (c == '\n') {
      screen += line + "\n";
      line.clear();
      column = 0;
    } else {
      line.resize(std::max(line.size(), column + 1), ' ');
      line[column++] = c;
    }
  }
  screen += line;
  std::string trimmed;
  for (size_t i = 0; i < screen.size(); ++i) {
    const size_t end = screen.find_first_not_of(' ', i);
    if (screen[i] == ' ' && (end == std::string::npos || screen[end] == '\n')) continue;
    trimmed += screen[i];
  }
  return trimmed;
}

TEST(Console, GoldenLine) {
  Capture out;
  ConsoleSink sink(out.file(), {.log_interval = 20});
  for (int64_t i = 1; i <= 40; ++i) sink.window(row_of(i));
  EXPECT_EQ(out.text(),
            "Epoch 1 | Window 20 | loss 0.6723 | lr 2.00e-04 | 130000 samples/s\n"
            "Epoch 1 | Window 40 | loss 0.6723 | lr 2.00e-04 | 130000 samples/s\n");
}

// The rate is that of all windows since the last line: 128 in 1 s and 128 in 3 s are 64 a second.
TEST(Console, TheRateIsOverTheWindowsSinceTheLastLine) {
  Capture out;
  ConsoleSink sink(out.file(), {.log_interval = 2});
  WindowRow first = row_of(1), second = row_of(2);
  first.samples_per_s = 128;
  second.samples_per_s = 128.0 / 3;
  sink.window(first);
  sink.window(second);
  EXPECT_THAT(out.text(), EndsWith(" | 64 samples/s\n"));
}

TEST(Console, SkippedUpdatesAreVisibleInTheNextLine) {
  Capture out;
  ConsoleSink sink(out.file(), {.log_interval = 4});
  for (int64_t i = 1; i <= 8; ++i) {
    WindowRow row = row_of(i);
    if (i == 2 || i == 3) row.step.outcome = StepOutcome::kNotFinite;
    row.step.skipped_total = std::min<int64_t>(i, 2);
    sink.window(row);
  }
  EXPECT_EQ(out.text(),
            "Epoch 1 | Window 4 | loss 0.6723 | lr 2.00e-04 | 130000 samples/s | 2 skipped, 2 in all\n"
            "Epoch 1 | Window 8 | loss 0.6723 | lr 2.00e-04 | 130000 samples/s\n");
}

// Case D6: a NaN does not hide between two lines, and does not fill the screen either.
TEST(Console, CaseD6ALossThatIsNotFiniteIsShownAtOnce) {
  Capture out;
  ConsoleSink sink(out.file(), {.log_interval = 20});
  for (int64_t i = 1; i <= 9; ++i) {
    WindowRow row = row_of(i);
    if (i >= 5 && i <= 7) row.step.loss = std::nan("");
    if (i == 5) row.step.first_non_finite = "aten::addmm (fc1.weight)";
    sink.window(row);
  }
  EXPECT_EQ(out.text(),
            "Epoch 1 | Window 5 | loss NaN | lr 2.00e-04 | 130000 samples/s | not finite: aten::addmm "
            "(fc1.weight)\n");
}

TEST(Console, NoLinesWithLogIntervalZeroAndOnlyTheLastWhenQuiet) {
  for (const ConsoleOptions& options :
       {ConsoleOptions{.log_interval = 0}, ConsoleOptions{.log_interval = 1, .quiet = true}}) {
    Capture out;
    ConsoleSink sink(out.file(), options);
    sink.window(row_of(1));
    EXPECT_EQ(out.text(), "");
    sink.end({.update = 1, .total_updates = 1, .samples = 128, .seconds = 0.5});
    EXPECT_EQ(out.text(), "done: 1 updates, 128 samples in 0.5 s\n");
  }
}

TEST(Console, GoldenEvaluationAndEvent) {
  Capture out;
  ConsoleSink sink(out.file(), {});
  sink.eval({.update = 469,
             .val_loss = 0.43118,
             .metrics = {{"acc", 0.8435}, {"top5", 0.9967}},
             .time_eval = 0.25,
             .best = true});
  sink.event({.event = Warning{"no room for all checkpoints"}});
  EXPECT_EQ(out.text(),
            "Epoch 1 | Update 469 | val_loss 0.4312 | val_acc 0.8435 | val_top5 0.9967 | 0.2 s | best\n"
            "warning: no room for all checkpoints\n");
}

TEST(Console, GoldenEvaluationWithAnAverage) {
  Capture out;
  ConsoleSink sink(out.file(), {});
  sink.eval({.update = 469,
             .epoch = 2,
             .val_loss = 0.43118,
             .metrics = {{"acc", 0.8435}, {"top5", 0.9967}},
             .time_eval = 0.25,
             .ema_val_loss = 0.4,
             .ema_metrics = {{"acc", 0.85125}}});
  EXPECT_EQ(
      out.text(),
      "Epoch 3 | Update 469 | val_loss 0.4312 | val_acc 0.8435 | val_top5 0.9967 | ema_val_acc 0.8512 | "
      "0.2 s\n");
}

TEST(Console, GoldenEventsOfAResumedRun) {
  Capture out;
  ConsoleSink sink(out.file(), {});
  sink.event({.update = 120, .event = Resumed{.from = "runs/a/checkpoints/step-00000120", .window = 124}});
  sink.event({.update = 120, .event = Resumed{.from = "step-00000120", .window = 124, .nothing_left = true}});
  sink.event({.event = SettingChanged{.key = "workers", .before = "1", .now = "2"}});
  EXPECT_EQ(out.text(),
            "resumed from runs/a/checkpoints/step-00000120 at window 124\n"
            "resumed from step-00000120 at window 124: nothing left to do\n"
            "changed: workers was 1, is 2\n");
}

// Any other event is its name and its fields; a sentence stands without its key.
TEST(Console, GoldenEventsThatHaveNoWordsOfTheirOwn) {
  Capture out;
  ConsoleSink sink(out.file(), {});
  sink.event({.update = 7, .event = SaveFailed{"cannot write x: full"}});
  sink.event({.update = 7, .event = BrokenCheckpoint{"step-00000120: a hash differs"}});
  sink.event({.update = 7, .event = OutOfMemory{.window = 9, .micro_batch = 16}});
  sink.event({.update = 7, .event = Spike{.window = 9, .what = "loss 9"}});
  sink.event({.update = 5, .event = RolledBack{.window = 9, .cause = "loss 9", .to = "step-00000005"}});
  sink.event({.update = 7, .event = BlackBoxFailed{.window = 9, .error = "cannot write y: full"}});
  EXPECT_EQ(out.text(),
            "checkpoint failed: cannot write x: full\n"
            "broken checkpoint: step-00000120: a hash differs\n"
            "out of memory: window 9, micro_batch 16\n"
            "spike: window 9, loss 9\n"
            "rollback: window 9, cause loss 9, to step-00000005\n"
            "black box failed: window 9, cannot write y: full\n");
}

TEST(Console, GoldenLastLine) {
  Capture out;
  ConsoleSink sink(out.file(), {});
  const EvalRow last{.update = 1407, .val_loss = 0.37121, .metrics = {{"acc", 0.8665}}};
  sink.end({.update = 1407,
            .total_updates = 1407,
            .samples = 180000,
            .seconds = 3.21,
            .last_eval = last,
            .best_eval = last,
            .model_path = "runs/first/model.safetensors"});
  EXPECT_EQ(out.text(),
            "done: 1407 updates, 180000 samples in 3.2 s | val_loss 0.3712 | val_acc 0.8665 | "
            "runs/first/model.safetensors\n");
}

TEST(Console, TheLastLineOfARunThatWasStopped) {
  Capture out;
  ConsoleSink sink(out.file(), {});
  sink.end({.update = 7,
            .total_updates = 1407,
            .samples = 1024,
            .skipped_total = 1,
            .seconds = 75,
            .reason = EndReason::kStopped,
            .stopped_by = ExitCode::kSigterm,
            .last_eval = EvalRow{.update = 7, .metrics = {{"acc", 0.5}}},
            .best_eval = EvalRow{.update = 3, .metrics = {{"acc", 0.6}}},
            .best_metric = "val_acc"});
  EXPECT_EQ(out.text(),
            "not finished: update 7 of 1407 (SIGTERM), 1024 samples in 1:15 | 1 skipped | best 0.6000 at "
            "update 3 | "
            "val_loss 0.0000 | val_acc 0.5000\n");
}

TEST(Console, EventsAndTheLastLineAreReworded) {
  Capture out;
  ConsoleSink sink(out.file(), {.reword = [](const std::string& line) { return "<" + line + ">"; }});
  sink.event({.update = 7, .event = Warning{"allow more than `max_time`"}});
  sink.window(row_of(20));
  sink.end({.update = 7});
  EXPECT_THAT(out.text(), StartsWith("<warning: allow more than `max_time`>\nEpoch 1 | Window 20"));
  EXPECT_THAT(out.text(), HasSubstr("\n<done: 7 updates, "));
  EXPECT_THAT(out.text(), EndsWith(">\n"));
}

TEST(Console, OnlyARunThatCanGoOnSaysHow) {
  for (const auto& [end, how] : std::vector<std::pair<RunEnd, std::string>>{
           {{.reason = EndReason::kStopped, .stopped_by = ExitCode::kSigterm}, "(SIGTERM)"},
           {{.reason = EndReason::kMaxTime}, "(--max-time)"},
           {{.reason = EndReason::kStopAfter}, "(--stop-after)"},
           {{.reason = EndReason::kDone}, ""},
           {{.reason = EndReason::kEarlyStop}, ""}}) {
    Capture out;
    ConsoleSink sink(out.file(), {});
    RunEnd row = end;
    row.model_path = "runs/a/model.safetensors";
    row.resumable = true;
    sink.end(row);
    const std::string shown = out.text();
    EXPECT_EQ(shown.ends_with("runs/a/model.safetensors | start it again to go on\n"), !how.empty()) << shown;
    EXPECT_EQ(shown.starts_with("not finished: "), !how.empty()) << shown;
    EXPECT_THAT(shown, HasSubstr(how));
  }
}

TEST(Console, ABlackBoxIsNamedWithTheCommandThatShowsIt) {
  Capture out;
  ConsoleSink sink(out.file(), {});
  sink.event({.event = BlackBoxWritten{.window = 7, .file = "runs/a/blackbox-00000007.safetensors"}});
  EXPECT_EQ(out.text(),
            "black box of window 7: runs/a/blackbox-00000007.safetensors, for the command replay\n");
}

TEST(Console, BarAndLinesDoNotGarbleEachOther) {
  Capture out;
  ConsoleSink sink(out.file(), {.log_interval = 2, .total_updates = 4, .is_terminal = true, .width = 80});
  sink.window(row_of(1));
  EXPECT_THAT(shown(out.text()), StartsWith(" 25% [=======>"));
  sink.window(row_of(2));
  EXPECT_THAT(shown(out.text()),
              StartsWith("Epoch 1 | Window 2 | loss 0.6723 | lr 2.00e-04 | 130000 samples/s\n 25% ["));
  std::this_thread::sleep_for(std::chrono::milliseconds(110));
  sink.window(row_of(3));
  EXPECT_THAT(shown(out.text()), HasSubstr("samples/s\n 75% [====="));
  EXPECT_THAT(shown(out.text()), HasSubstr("3/4 | 0:00 left"));
  sink.end({.update = 4, .total_updates = 4, .samples = 512, .seconds = 1});
  EXPECT_EQ(shown(out.text()),
            "Epoch 1 | Window 2 | loss 0.6723 | lr 2.00e-04 | 130000 samples/s\n"
            "done: 4 updates, 512 samples in 1.0 s\n");
}

TEST(Console, TheBarIsDrawnAtMostTenTimesASecond) {
  Capture out;
  ConsoleSink sink(out.file(), {.log_interval = 0, .total_updates = 100000, .is_terminal = true});
  const auto start = std::chrono::steady_clock::now();
  for (int64_t i = 1; i <= 10000; ++i) sink.window(row_of(i));
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  const std::string text = out.text();
  EXPECT_LE(std::count(text.begin(), text.end(), '\r'), 1 + static_cast<std::ptrdiff_t>(spent.count() * 10));
}

TEST(Console, AnExceptionLeavesNoBarBehind) {
  Capture out;
  {
    ConsoleSink(out.file(), {.total_updates = 4, .is_terminal = true}).window(row_of(1));
  }
  EXPECT_EQ(shown(out.text()), "");
}

TEST(Console, NeverWiderThanTheTerminal) {
  for (int width = 1; width < 120; ++width) {
    const std::string text = bar_text(
        {.done = 478, .total = 1407, .seconds_left = 12, .note = "loss 0.5100 | 130000 samples/s"}, width);
    EXPECT_LE(text.size(), static_cast<size_t>(width));
    EXPECT_TRUE(width < 24 || text.find("478/1407") != std::string::npos) << text;
  }
  EXPECT_EQ(bar_text({.done = 478, .total = 1407, .seconds_left = 12, .note = "loss 0.5100"}, 79),
            " 33% [==========>                   ]  478/1407 | 0:12 left | loss 0.5100");
  EXPECT_EQ(bar_text({.name = "b.gz",
                      .done = 1,
                      .total = 2,
                      .seconds_left = NAN,
                      .count = "0.2 of 0.5 MB",
                      .note = "1.0 MB/s"},
                     79),
            "b.gz  50% [===============>              ] 0.2 of 0.5 MB | 1.0 MB/s");
  EXPECT_EQ(bar_text({.done = 5, .total = 0, .seconds_left = 0, .note = ""}, 79), "5 updates");
  EXPECT_EQ(bar_text({.done = 9, .total = 9, .seconds_left = 0, .note = ""}, 79),
            "100% [==============================] 9/9 | 0:00 left");
}

// The run outlives its terminal: no exception, no signal, no further write.
TEST(Console, AClosedPipeOrAFullDiskEndsTheOutputOnly) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  const auto old_handler = signal(SIGPIPE, SIG_IGN);
  for (std::FILE* out : {fdopen(ends[1], "w"), std::fopen("/dev/full", "w")}) {
    ASSERT_NE(out, nullptr);
    {
      ConsoleSink sink(out, {.log_interval = 1, .total_updates = 3, .is_terminal = true});
      for (int64_t i = 1; i <= 3; ++i) sink.window(row_of(i));
      sink.end({});
    }
    std::fclose(out);
  }
  signal(SIGPIPE, old_handler);
}

TEST(Format, Numbers) {
  EXPECT_EQ(fixed_text(0.86651, 4), "0.8665");
  EXPECT_EQ(fixed_text(-INFINITY, 4), "-Infinity");
  EXPECT_EQ(fixed_text(1.7e308, 1).size(), 311U);
  EXPECT_EQ(scientific_text(std::nan("")), "NaN");
  EXPECT_EQ(thousands_text(0), "0");
  EXPECT_EQ(thousands_text(999), "999");
  EXPECT_EQ(thousands_text(60000), "60,000");
  EXPECT_EQ(thousands_text(-1234567), "-1,234,567");
  EXPECT_EQ(bytes_text(999), "999 bytes");
  EXPECT_EQ(bytes_text(1000), "1.0 kB");
  EXPECT_EQ(bytes_text(999'990), "1.0 MB");
  EXPECT_EQ(bytes_text(814'120), "814.1 kB");
  EXPECT_EQ(bytes_text(std::numeric_limits<int64_t>::max()), "9.2 EB");
}

TEST(Format, Durations) {
  EXPECT_EQ(duration_text(7.4), "0:07");
  EXPECT_EQ(duration_text(59.6), "1:00");
  EXPECT_EQ(duration_text(725), "12:05");
  EXPECT_EQ(duration_text(10800), "3:00:00");
  EXPECT_EQ(duration_text(-1), "?");
  EXPECT_EQ(duration_text(std::nan("")), "?");
  EXPECT_EQ(duration_text(INFINITY), "?");
  EXPECT_EQ(seconds_text(3.21), "3.2 s");
  EXPECT_EQ(seconds_text(75), "1:15");
}

}  // namespace
}  // namespace gradstep

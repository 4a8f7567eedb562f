// Rows of two runs: equal but for times, and the first row and key that differ.
// no torch
#include "commands/compare_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gradstep {
namespace {

constexpr char kRows[] =
    "{\"window\":1,\"update\":1,\"loss\":0.5,\"lr\":0.001,\"skipped\":false,\"samples_per_s\":10,\"time_"
    "step\":1}\n"
    "{\"update\":1,\"epoch\":0,\"val_loss\":0.25,\"val_acc\":0.5,\"time_eval\":2}\n"
    "{\"window\":2,\"update\":1,\"loss\":\"NaN\",\"lr\":0.001,\"skipped\":true,\"memory\":7}\n";

std::string with(const std::string& old_text, const std::string& new_text) {
  std::string rows = kRows;
  rows.replace(rows.find(old_text), old_text.size(), new_text);
  return rows;
}

std::string difference(const std::string& first, const std::string& second) {
  return compare_rows(first, second).difference;
}

TEST(CompareRows, TimesMemoryAndEventsDoNotCount) {
  std::string other = with("\"samples_per_s\":10,\"time_step\":1", "\"samples_per_s\":20,\"time_step\":3");
  other += "{\"event\":\"resume\",\"update\":1,\"time\":\"now\"}\n";
  const RowComparison found = compare_rows(kRows, other);
  EXPECT_EQ(found.difference, "");
  EXPECT_EQ(found.num_equal, 3);
  EXPECT_EQ(difference(kRows, with("\"memory\":7", "\"memory\":8")), "");
  EXPECT_EQ(difference(kRows, with(",\"memory\":7", "")), "");
  EXPECT_EQ(compare_rows("", "").num_equal, 0);
  EXPECT_EQ(difference("", ""), "");
}

TEST(CompareRows, NamesTheFirstRowAndKeyWithBothValues) {
  EXPECT_EQ(difference(kRows, with("0.5,\"lr\"", "0.50000000000000011,\"lr\"")),
            "the row of window 1, loss: 0.5 and 0.5000000000000001");
  EXPECT_EQ(difference(kRows, with("\"val_loss\":0.25", "\"val_loss\":0.75")),
            "the evaluation after update 1, val_loss: 0.25 and 0.75");
  EXPECT_EQ(difference(kRows, with("\"NaN\"", "\"Infinity\"")),
            "the row of window 2, loss: \"NaN\" and \"Infinity\"");
  EXPECT_EQ(difference(kRows, with("\"skipped\":true", "\"skipped\":false")),
            "the row of window 2, skipped: true and false");
  EXPECT_EQ(difference(kRows, with("\"val_acc\":0.5,", "")),
            "the evaluation after update 1, val_acc: 0.5 and nothing");
  EXPECT_EQ(difference(with("\"val_acc\":0.5,", ""), kRows),
            "the evaluation after update 1, val_acc: nothing and 0.5");
  EXPECT_EQ(compare_rows(kRows, with("\"NaN\"", "1")).num_equal, 2);
}

TEST(CompareRows, RowsMissingTwiceOrInAnotherOrder) {
  const std::string first_row = std::string(kRows).substr(0, std::string(kRows).find('\n') + 1);
  EXPECT_EQ(difference(kRows, first_row), "the evaluation after update 1 is only in the first run");
  EXPECT_EQ(difference(first_row, kRows), "the evaluation after update 1 is only in the second run");
  EXPECT_EQ(difference(kRows, first_row + kRows),
            "row 2: the evaluation after update 1 and the row of window 1");
  EXPECT_EQ(difference(kRows, ""), "the row of window 1 is only in the first run");
}

TEST(CompareRows, LinesThatAreNoRows) {
  EXPECT_EQ(difference(kRows, kRows + std::string("{\"window\":3")),
            "metrics.jsonl of the second run: the last line is cut off");
  EXPECT_EQ(difference(std::string(kRows) + "x\n", kRows),
            "metrics.jsonl of the first run: line 4 is no row");
  EXPECT_EQ(difference(std::string(kRows) + "[]\n", std::string(kRows) + "[]\n"),
            "metrics.jsonl of the first run: line 4 is no row");
  EXPECT_EQ(difference(std::string(kRows) + "{\"window\":3}", std::string(kRows) + "{\"window\":3}"),
            "metrics.jsonl of the first run: the last line is cut off");
}

}  // namespace
}  // namespace gradstep

// no torch
// Names of reports: what --report-to takes, and what it makes of them.
#include "report/report_to.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "support/scratch_dir.h"

namespace gradstep::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;

TEST(ReportTo, NamesAreAList) {
  EXPECT_THAT(parse_report_names("none"), Optional(IsEmpty()));
  EXPECT_THAT(parse_report_names("tensorboard"), Optional(ElementsAre("tensorboard")));
  EXPECT_TRUE(known_report_names().starts_with("none or tensorboard"));
}

TEST(ReportTo, AnythingElseIsRefused) {
  for (const char* bad : {"", ",", "Tensorboard", "tensorboard,", ",tensorboard", "tensorboard, ",
                          "tensorboard,none", "none,none", "tensorboard,tensorboard", "wandb"})
    EXPECT_EQ(parse_report_names(bad), std::nullopt) << bad;
}

TEST(ReportTo, TensorboardWritesIntoItsFolder) {
  const ScratchDir dir;
  SinkList sinks;
  add_reports(sinks, "none", dir.path());
  sinks.begin({});
  sinks.close();
  EXPECT_FALSE(std::filesystem::exists(dir.file("tensorboard")));
  SinkList others;
  add_reports(others, "tensorboard", dir.path());
  others.begin({});
  others.close();
  EXPECT_FALSE(std::filesystem::is_empty(dir.file("tensorboard")));
  EXPECT_THAT(others.take_warnings(), IsEmpty());
}

}  // namespace
}  // namespace gradstep::testing

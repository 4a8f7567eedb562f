// Help texts: width, completeness, and docs/cli.md as it would be made now.
// no torch
#include "commands/help.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "support/gradstep_program.h"
#include "support/source_dir.h"

namespace gradstep::testing {
namespace {

using ::testing::HasSubstr;

TEST(Help, DocsAreUpToDate) {
  const std::string file = read_source_file("docs/cli.md"), help = markdown_help();
  const auto [at, ignored] = std::ranges::mismatch(file, help);
  if (file == help) return;
  const auto begin = file.rfind('\n', static_cast<size_t>(at - file.begin())) + 1;
  FAIL() << "docs/cli.md is out of date; run: make docs. The first line that differs:\n"
         << file.substr(begin, file.find('\n', begin) - begin);
}

TEST(Help, EveryFlagOfEveryCommandIsInHelpAndDocs) {
  const std::string docs = markdown_help();
  for (const CommandInfo& each : commands()) {
    const std::string help = command_help(each, 80);
    EXPECT_THAT(program_help(80), HasSubstr("\n  " + each.name + " "));
    EXPECT_THAT(docs, HasSubstr("\n## gradstep " + each.name + "\n"));
    for (const FlagInfo& flag : each.flags) {
      EXPECT_THAT(help, HasSubstr(" " + flag_spelling(flag.key))) << each.name;
      EXPECT_THAT(docs, HasSubstr("`" + flag_spelling(flag.key))) << each.name;
      for (const std::string& alias : flag.aliases)
        EXPECT_THAT(docs, HasSubstr("`" + flag_spelling(alias) + "`"));
    }
  }
}

TEST(Help, IsGroupedAndHoldsTheExitCodes) {
  const std::string help = command_help(command("train"), 80);
  size_t last = 0;
  for (const char* heading : {"\nData\n", "\nModel\n", "\nLength and batch\n", "\nOptimizer\n",
                              "\nSchedule\n", "\nPrecision and machine\n", "\nOutput\n", "\nExit codes\n"}) {
    const size_t place = help.find(heading);
    ASSERT_NE(place, std::string::npos) << heading;
    EXPECT_GT(place, last);
    EXPECT_EQ(help.find(heading, place + 1), std::string::npos) << heading;
    last = place;
  }
  for (const char* code : {"\n  0 ", "\n  2 ", "\n  6 ", "\n  130 ", "\n  138 ", "\n  143 "})
    EXPECT_THAT(help, HasSubstr(code));
}

TEST(Help, EveryCommandCanBeRun) {
  for (const CommandInfo& each : commands()) EXPECT_TRUE(each.run) << each.name;
}

TEST(Help, FitsTheTerminal) {
  for (const int width : {64, 80, 100}) {
    std::string all = program_help(width);
    std::set<std::string> examples;
    for (const CommandInfo& each : commands()) {
      all += command_help(each, width);
      for (const std::string& example : each.examples) examples.insert("  " + example);
    }
    std::istringstream lines(all);
    for (std::string line; std::getline(lines, line);) {
      const bool is_example = examples.contains(line);  // they stay whole, to be copied
      EXPECT_TRUE(is_example || line.size() <= static_cast<size_t>(width)) << line;
      EXPECT_LE(line.size(), 80U + (width > 80 ? 20U : 0U)) << line;
    }
  }
}

}  // namespace
}  // namespace gradstep::testing

// The version and the commit that the build hands over.
// no torch
#include "gradstep/base/version.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace gradstep {
namespace {

TEST(Version, IsThreeNumbers) {
  const std::string text(version());
  EXPECT_EQ(std::count(text.begin(), text.end(), '.'), 2) << text;
  EXPECT_EQ(text.find_first_not_of("0123456789."), std::string::npos) << text;
}

TEST(Version, CommitIsTwelveHexDigitsOrUnknown) {
  const std::string text(git_commit());
  if (text == "unknown") return;
  EXPECT_EQ(text.size(), 12U) << text;
  EXPECT_EQ(text.find_first_not_of("0123456789abcdef"), std::string::npos) << text;
}

}  // namespace
}  // namespace gradstep

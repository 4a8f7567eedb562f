// The version and the commit that the build hands over.
// no torch
#include "gradstep/base/version.h"

#include <gtest/gtest.h>

#include <string>

namespace gradstep {
namespace {

TEST(Version, TheTextIsThatOfTheMacros) {
  EXPECT_EQ(version(), std::to_string(GRADSTEP_VERSION_MAJOR) + "." + std::to_string(GRADSTEP_VERSION_MINOR) +
                           "." + std::to_string(GRADSTEP_VERSION_PATCH));
}

TEST(Version, TheNumberCanBeComparedByThePreprocessor) {
#if GRADSTEP_VERSION < 100
  FAIL() << "older than 0.1.0";
#endif
  EXPECT_EQ(GRADSTEP_VERSION,
            10000 * GRADSTEP_VERSION_MAJOR + 100 * GRADSTEP_VERSION_MINOR + GRADSTEP_VERSION_PATCH);
}

TEST(Version, CommitIsTwelveHexDigitsOrUnknown) {
  const std::string text(git_commit());
  if (text == "unknown") return;
  EXPECT_EQ(text.size(), 12U) << text;
  EXPECT_EQ(text.find_first_not_of("0123456789abcdef"), std::string::npos) << text;
}

}  // namespace
}  // namespace gradstep

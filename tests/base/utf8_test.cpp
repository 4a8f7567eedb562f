// Which bytes are UTF-8, and what stands for those that are not.
#include "base/utf8.h"

#include <gtest/gtest.h>

namespace gradstep::testing {
namespace {

TEST(Utf8, TakesEverySequenceAndNothingElse) {
  for (const char* text : {"", "plain", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF",
                           "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"})
    EXPECT_TRUE(is_utf8(text)) << text;
  for (const char* text : {"\x80", "\xC0\x80", "\xC1\xBF", "\xC2", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xE2\x82",
                           "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "a\xFF"})
    EXPECT_FALSE(is_utf8(text)) << text;
}

TEST(Utf8, EachByteThatBelongsToNoSequenceIsReplaced) {
  EXPECT_EQ(to_utf8("caf\xC3\xA9"), "caf\xC3\xA9");
  EXPECT_EQ(to_utf8("caf\xE9!"), "caf\xEF\xBF\xBD!");
  EXPECT_EQ(to_utf8("\xE2\x82"), "\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_TRUE(is_utf8(to_utf8("\xF4\x90\x80\x80")));
}

}  // namespace
}  // namespace gradstep::testing

// no torch
// Amounts of memory from text.
#include "base/byte_count.h"

#include <gtest/gtest.h>

namespace gradstep {
namespace {

TEST(ByteCount, NumbersWithAndWithoutALetter) {
  EXPECT_EQ(parse_byte_count("1000000"), 1'000'000);
  EXPECT_EQ(parse_byte_count("64k"), 65'536);
  EXPECT_EQ(parse_byte_count("1.5M"), 1'572'864);
  EXPECT_EQ(parse_byte_count("8g"), int64_t{8} << 30);
}

TEST(ByteCount, AnythingElseIsNone) {
  for (const char* text :
       {"", "g", "-1", "0", "0.5", "8gb", "8 g", "1e9", "nan", "inf", "99999999999999999999", "8x"})
    EXPECT_EQ(parse_byte_count(text), std::nullopt) << text;
}

}  // namespace
}  // namespace gradstep

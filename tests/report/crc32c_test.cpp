// no torch
// The checksum against published values (RFC 3720, appendix B.4).
#include "report/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace gradstep {
namespace {

TEST(Crc32c, PublishedValues) {
  std::string counting;
  for (char c = 0; c < 32; ++c) counting += c;
  EXPECT_EQ(crc32c(""), 0U);
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43U);
  EXPECT_EQ(crc32c(counting), 0x46DD794EU);
}

// As TensorBoard's own writer computes them.
TEST(Crc32c, MaskedAsRecordFilesHaveIt) {
  EXPECT_EQ(masked_crc32c(std::string("\x18\0\0\0\0\0\0\0", 8)), 0x224B7FA3U);
  EXPECT_EQ(masked_crc32c(""), 0xA282EAD8U);
}

}  // namespace
}  // namespace gradstep

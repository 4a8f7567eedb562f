// Digests: the published values of their inventors' test texts, and a file longer than one piece.
#include "download/digest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <system_error>

#include "support/message_of.h"
#include "support/scratch_dir.h"

namespace gradstep {
namespace {

using testing::ScratchDir;

TEST(Digest, Files) {
  const ScratchDir dir;
  const std::string empty = dir.write("empty", "");
  const std::string abc = dir.write("abc", "abc");
  EXPECT_EQ(md5_file(empty), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(md5_file(abc), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(sha256_file(empty), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_file(abc), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  // A million times the letter a, from FIPS 180 and RFC 1321's errata.
  const std::string million = dir.write("million", std::string(1'000'000, 'a'));
  EXPECT_EQ(sha256_file(million), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  EXPECT_EQ(md5_file(million), "7707d6ae4e027c70eea2a935c2296f21");
}

TEST(Digest, AFileThatCannotBeReadIsNamed) {
  EXPECT_THAT(testing::message_of<std::system_error>([] { (void)md5_file("/no/such/file"); }),
              ::testing::HasSubstr("/no/such/file"));
  EXPECT_THROW((void)sha256_file("/"), std::system_error);
}

}  // namespace
}  // namespace gradstep

// Hashes: the published values of their inventors' test texts, and files longer than one piece.
#include "gradstep/io/hash.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <system_error>

#include "support/message_of.h"
#include "support/scratch_dir.h"

namespace gradstep {
namespace {

using testing::ScratchDir;

TEST(Hash, Files) {
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

TEST(Hash, AFileThatCannotBeReadIsNamed) {
  EXPECT_THAT(testing::message_of<std::system_error>([] { (void)md5_file("/no/such/file"); }),
              ::testing::HasSubstr("/no/such/file"));
  EXPECT_THROW((void)sha256_file("/"), std::system_error);
}

// Values of the reference library, frozen: fingerprints in old files must stay comparable.
TEST(Hash, Xxh3) {
  EXPECT_EQ(xxh3("", 0), "2d06800538d394c2");
  EXPECT_EQ(xxh3("abc", 3), "78af5f94892f3950");
  const std::string long_text(1'000'000, 'a');
  EXPECT_EQ(xxh3(long_text.data(), long_text.size()), "b1fd6fae5285c4eb");
}

TEST(Hash, Xxh3OfPiecesAndFilesIsThatOfTheWhole) {
  const ScratchDir dir;
  const std::string whole(1'000'000, 'a');
  EXPECT_EQ(xxh3_file(dir.write("million", whole)), "b1fd6fae5285c4eb");
  EXPECT_EQ(xxh3_file(dir.write("empty", "")), "2d06800538d394c2");
  EXPECT_THROW((void)xxh3_file(dir.file("none")), std::system_error);
  Xxh3 hash;
  EXPECT_EQ(hash.hex(), "2d06800538d394c2");
  for (size_t begin = 0, size = 0; begin < whole.size(); begin += size, size = size * 2 + 1) {
    hash.update(std::string_view(whole).substr(begin, size));
  }
  EXPECT_EQ(hash.hex(), "b1fd6fae5285c4eb");
}

}  // namespace
}  // namespace gradstep

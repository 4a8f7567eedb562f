// XXH3: the values of the reference library, and files longer than one piece.
#include "io/hash.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <system_error>

#include "support/message_of.h"
#include "support/scratch_dir.h"

namespace gradstep {
namespace {

using testing::ScratchDir;

TEST(Hash, AFileThatCannotBeReadIsNamed) {
  EXPECT_THAT(testing::message_of<std::system_error>([] { (void)xxh3_file("/no/such/file"); }),
              ::testing::HasSubstr("/no/such/file"));
  EXPECT_THROW((void)xxh3_file("/"), std::system_error);
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

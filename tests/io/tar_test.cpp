// tar: what is wanted comes out, nothing else is ever written, and broken archives are refused with their
// place.
#include "io/tar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gradstep/base/error.h"
#include "support/archives.h"
#include "support/message_of.h"
#include "support/scratch_dir.h"

namespace gradstep {
namespace {

using ::testing::AllOf;
using testing::gzip;
using ::testing::HasSubstr;
using testing::message_of;
using ::testing::Not;
using testing::ScratchDir;
using testing::tar_end;
using testing::tar_entry;

class Tar : public ::testing::Test {
 protected:
  void unpack(const std::string& archive) {
    unpack_tar(outer_.write("archive", archive),
               {{"in/a", dir_.file("a"), a_.size()}, {"in/b", dir_.file("b"), b_.size()}});
  }
  std::string refusal(const std::string& archive) {
    const std::string message = message_of<DataError>([&] { unpack(archive); });
    EXPECT_THAT(message,
                AllOf(HasSubstr(outer_.file("archive")), HasSubstr("expected "), Not(HasSubstr("\n"))));
    return message;
  }
  const std::string a_ = "content of a";
  const std::string b_ = std::string(200'000, 'b');
  ScratchDir outer_;
  ScratchDir dir_;
};

TEST_F(Tar, UnpacksWhatIsWantedAndNothingElse) {
  const std::string archive = tar_entry("in/", "", '5') + tar_entry("in/readme", "read me") +
                              tar_entry("in/b", b_) + tar_entry("../../evil", "evil") +
                              tar_entry("/tmp/evil", "evil") + tar_entry("in/link", "", '2') +
                              tar_entry("in/a", a_) + tar_end();
  for (const std::string& bytes : {archive, gzip(archive)}) {
    unpack(bytes);
    EXPECT_EQ(dir_.read("a"), a_);
    EXPECT_EQ(dir_.read("b"), b_);
    EXPECT_EQ(dir_.num_entries(), 2);
    EXPECT_EQ(outer_.num_entries(), 1);
    std::filesystem::remove(dir_.file("a"));
    std::filesystem::remove(dir_.file("b"));
  }
}

TEST_F(Tar, RefusesBrokenArchives) {
  const std::string a = tar_entry("in/a", a_);
  const std::string b = tar_entry("in/b", b_);
  EXPECT_THAT(refusal(a + tar_end()), HasSubstr("expected a file named in/b, found the end"));
  EXPECT_THAT(refusal(a + a + b + tar_end()), HasSubstr("one file named in/a, found another"));
  EXPECT_THAT(refusal(tar_entry("in/a", "", '2') + b + tar_end()), HasSubstr("a plain file named in/a"));
  EXPECT_THAT(refusal(tar_entry("in/a", "short") + b + tar_end()),
              HasSubstr("expected 12 bytes of in/a, found 5"));
  std::string wrong_sum = a + b + tar_end();
  wrong_sum[1024 + 3] ^= 1;
  EXPECT_THAT(refusal(wrong_sum),
              HasSubstr("at byte 1536 of the unpacked archive: expected a header with the right check sum"));
  EXPECT_THAT(refusal(std::string(512, 'x')), HasSubstr("check sum"));
  EXPECT_THAT(refusal(""), HasSubstr("cut short"));
}

TEST_F(Tar, ATruncatedArchiveLeavesNoHalfFile) {
  const std::string archive = tar_entry("in/b", b_) + tar_entry("in/a", a_);
  const std::string packed = gzip(archive + tar_end());
  for (const std::string& bytes :
       {archive.substr(0, 100'000), packed.substr(0, packed.size() / 2), archive.substr(0, 511)}) {
    refusal(bytes);
    EXPECT_EQ(dir_.num_entries(), 0);
  }
}

// The check sum of gzip comes last, behind members that looked right.
TEST_F(Tar, NothingAppearsBeforeTheWholeArchiveIsRight) {
  const std::string archive = tar_entry("in/a", a_) + tar_entry("in/b", b_) + tar_end();
  std::string packed = gzip(archive);
  packed[packed.size() - 5] = static_cast<char>(packed[packed.size() - 5] ^ 1);
  refusal(packed);
  refusal(tar_entry("in/a", a_) + tar_end());
  EXPECT_EQ(dir_.num_entries(), 0);
}

TEST_F(Tar, AnEntryOfAnOddTypeIsRefusedInOneLine) {
  EXPECT_THAT(refusal(tar_entry("in/a", a_, '\n') + tar_end()), HasSubstr("an entry of type 10"));
}

TEST_F(Tar, AFolderThatIsNotThereIsNamed) {
  const std::string archive = outer_.write("archive", tar_entry("x", "x") + tar_end());
  EXPECT_THAT(message_of<DataError>([&] { unpack_tar(archive, {{"x", "/no/such/x", 1}}); }),
              HasSubstr("/no/such/"));
}

}  // namespace
}  // namespace gradstep

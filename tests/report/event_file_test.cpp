// no torch
// Event files: the frame around a record, the order of files, and what is left of one that was cut short.
#include "report/event_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <system_error>

#include "support/message_of.h"
#include "support/scratch_dir.h"

namespace gradstep::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class EventFileTest : public ::testing::Test {
 protected:
  void write(const std::vector<std::string>& records) const {
    EventFile file(folder_);
    for (const std::string& record : records) file.append(record);
    file.flush();
  }
  [[nodiscard]] static std::vector<std::string> records(const std::string& path) {
    std::vector<std::string> all;
    for_each_record(path, [&](std::string_view record) { all.emplace_back(record); });
    return all;
  }
  // Of the only file.
  [[nodiscard]] std::string name() const {
    const std::string path = event_files(folder_).at(0);
    return "tb/" + path.substr(path.rfind('/') + 1);
  }

  ScratchDir dir_;
  const std::string folder_ = dir_.file("tb");
};

// The bytes that TensorBoard's own writer makes of this record.
TEST_F(EventFileTest, FramesARecordAsTensorBoardDoes) {
  write({"abc"});
  EXPECT_EQ(dir_.read(name()),
            std::string("\x03\0\0\0\0\0\0\0\xb0\x99\x49\x0e\x61\x62\x63\x6e\x57\xf1\x21", 19));
}

TEST_F(EventFileTest, RecordsComeBackInTheirOrder) {
  const std::vector<std::string> written{"", "abc", std::string(1'000'000, '\xFF'), "d"};
  write(written);
  EXPECT_EQ(records(event_files(folder_).at(0)), written);
}

TEST_F(EventFileTest, NothingIsHalfWrittenBeforeAFlush) {
  EventFile file(folder_);
  file.append("abc");
  EXPECT_THAT(records(event_files(folder_).at(0)), SizeIs(0));
  file.flush();
  EXPECT_THAT(records(event_files(folder_).at(0)), ElementsAre("abc"));
}

// Several starts a second, and a clock that was set back an hour.
TEST_F(EventFileTest, ANewFileSortsBehindAllOthers) {
  const std::string later = "events.out.tfevents." + std::to_string(std::time(nullptr) + 3600) + ".a.1.0";
  std::vector<std::string> names;
  for (int i = 0; i < 12; ++i) {
    if (i == 6) {
      dir_.write("tb/" + later, "");
      names.push_back(folder_ + "/" + later);
    }
    write({std::to_string(i)});
    for (const std::string& path : event_files(folder_)) {
      if (std::ranges::find(names, path) == names.end()) names.push_back(path);
    }
  }
  EXPECT_THAT(names, SizeIs(13));
  EXPECT_TRUE(std::ranges::is_sorted(names));
  EXPECT_EQ(records(names.back()).at(0), "11");
}

TEST_F(EventFileTest, OtherFilesInTheFolderAreLeftAlone) {
  write({"abc"});
  dir_.write("tb/notes.txt", "mine");
  write({"d"});
  EXPECT_THAT(event_files(folder_), SizeIs(2));
  EXPECT_EQ(dir_.read("tb/notes.txt"), "mine");
}

// Wherever a killed process stopped to write, the records before are good.
TEST_F(EventFileTest, ACutTailOrAFlippedBitEndsTheFile) {
  write({"first", "second"});
  const std::string whole = dir_.read(name());
  const size_t second = whole.size() / 2;  // rounded down: "second" is a byte longer
  for (size_t size = 0; size < whole.size(); ++size) {
    dir_.write("cut", whole.substr(0, size));
    EXPECT_THAT(records(dir_.file("cut")), SizeIs(size < second ? 0 : 1)) << size;
  }
  for (size_t i = second; i < whole.size(); ++i) {
    std::string flipped = whole;
    flipped[i] = static_cast<char>(flipped[i] ^ 0x10);
    dir_.write("cut", flipped);
    EXPECT_THAT(records(dir_.file("cut")), ElementsAre("first")) << i;
  }
}

TEST_F(EventFileTest, AFileThatIsNotThereHasNoRecords) {
  EXPECT_THAT(records(dir_.file("nothing")), SizeIs(0));
  EXPECT_THAT(event_files(dir_.file("nothing")), SizeIs(0));
}

TEST_F(EventFileTest, AFolderThatCannotBeMadeIsNamed) {
  dir_.write("tb", "a file");
  EXPECT_THAT(message_of<std::system_error>([&] { write({}); }), HasSubstr(folder_));
}

}  // namespace
}  // namespace gradstep::testing

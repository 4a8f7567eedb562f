// no torch
// Fields as protocol buffers have them on the wire, and bytes that are no message.
#include "report/protobuf.h"

#include <gtest/gtest.h>

#include <limits>

namespace gradstep {
namespace {

// The bytes that Google's library makes of Event{wall_time 1.5, step 300, summary{value{tag "a", simple_value
// 0.5}}}.
TEST(Protobuf, WritesWhatGooglesLibraryWrites) {
  ProtoWriter value, summary, event;
  value.bytes(1, "a");
  value.real(2, 0.5F);
  summary.bytes(1, value.message());
  event.real(1, 1.5);
  event.integer(2, 300);
  event.bytes(5, summary.message());
  EXPECT_EQ(event.message(),
            std::string("\x09\x00\x00\x00\x00\x00\x00\xf8\x3f\x10\xac\x02\x2a\x0a\x0a\x08\x0a\x01\x61"
                        "\x15\x00\x00\x00\x3f",
                        24));
}

TEST(Protobuf, IntegersComeBack) {
  for (const int64_t value : {int64_t{0}, int64_t{1}, int64_t{127}, int64_t{128}, int64_t{-1},
                              std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()}) {
    ProtoWriter writer;
    writer.integer(2, value);
    ProtoReader reader(writer.message());
    ASSERT_TRUE(reader.next());
    EXPECT_EQ(reader.field(), 2U);
    EXPECT_EQ(reader.integer(), value);
    EXPECT_FALSE(reader.next());
  }
}

TEST(Protobuf, FieldsComeInTheirOrderAndOfAllKinds) {
  ProtoWriter writer;
  writer.real(1, 2.0);
  writer.real(3, 1.0F);
  writer.bytes(100, std::string(300, 'x'));
  writer.integer(2, 5);
  ProtoReader reader(writer.message());
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.bytes(), std::string_view("\0\0\0\0\0\0\0\x40", 8));
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.bytes(), std::string_view("\0\0\x80\x3f", 4));
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.field(), 100U);
  EXPECT_EQ(reader.bytes(), std::string(300, 'x'));
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.field(), 2U);
  EXPECT_EQ(reader.integer(), 5);
  EXPECT_EQ(reader.bytes(), "");
  EXPECT_FALSE(reader.next());
}

TEST(Protobuf, NoByteOfAMessageCanBeMissing) {
  ProtoWriter writer;
  writer.bytes(1, std::string(200, 'x'));
  for (size_t size = 0; size < writer.message().size(); ++size)
    EXPECT_FALSE(ProtoReader(writer.message().substr(0, size)).next()) << size;
  EXPECT_FALSE(ProtoReader("\x0B").next());                   // a group
  EXPECT_FALSE(ProtoReader(std::string(11, '\xFF')).next());  // a key without an end
}

}  // namespace
}  // namespace gradstep

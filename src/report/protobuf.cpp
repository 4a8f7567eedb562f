// The wire format: a key (field number and wire type) as a varint, then the value.
// no torch
#include "report/protobuf.h"

#include <bit>

namespace gradstep {
namespace {

enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

constexpr uint64_t key_of(uint32_t field, WireType type) { return uint64_t{field} << 3 | type; }

}  // namespace

void ProtoWriter::varint(uint64_t value) {
  for (; value >= 0x80; value >>= 7) message_ += static_cast<char>((value & 0x7F) | 0x80);
  message_ += static_cast<char>(value);
}

template <class Bits>
void ProtoWriter::fixed(Bits bits) {
  for (size_t i = 0; i < sizeof bits; ++i) message_ += static_cast<char>(bits >> (8 * i) & 0xFF);
}

void ProtoWriter::integer(uint32_t field, int64_t value) {
  varint(key_of(field, kVarint));
  varint(static_cast<uint64_t>(value));
}

void ProtoWriter::real(uint32_t field, double value) {
  varint(key_of(field, kFixed64));
  fixed(std::bit_cast<uint64_t>(value));
}

void ProtoWriter::real(uint32_t field, float value) {
  varint(key_of(field, kFixed32));
  fixed(std::bit_cast<uint32_t>(value));
}

void ProtoWriter::bytes(uint32_t field, std::string_view value) {
  varint(key_of(field, kBytes));
  varint(value.size());
  message_ += value;
}

bool ProtoReader::varint(uint64_t& value) {
  value = 0;
  for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    value |= uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

bool ProtoReader::take(uint64_t size, std::string_view& taken) {
  if (size > rest_.size()) return false;
  taken = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return true;
}

bool ProtoReader::next() {
  integer_ = 0;
  bytes_ = {};
  uint64_t key = 0, value = 0;
  if (!varint(key)) return false;
  field_ = key >> 3;
  switch (key & 7) {
    case kVarint:
      if (!varint(value)) return false;
      integer_ = static_cast<int64_t>(value);
      return true;
    case kBytes:
      return varint(value) && take(value, bytes_);
    case kFixed64:
      return take(8, bytes_);
    case kFixed32:
      return take(4, bytes_);
    default:
      return false;
  }
}

}  // namespace gradstep

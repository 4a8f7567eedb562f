// ProtoWriter and ProtoReader: fields of protocol buffer messages, as bytes. They know no message.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gradstep {

// Appends fields to a message. A message within a message is written on its own and added with bytes().
class ProtoWriter {
 public:
  // int32, int64, bool and enum; negative numbers take ten bytes, as the format wants it.
  void integer(uint32_t field, int64_t value);
  void real(uint32_t field, double value);
  void real(uint32_t field, float value);
  // string, bytes and messages.
  void bytes(uint32_t field, std::string_view value);
  [[nodiscard]] const std::string& message() const { return message_; }

 private:
  void varint(uint64_t value);
  template <class Bits>
  void fixed(Bits bits);

  std::string message_;
};

// Walks over the fields of a message in their order.
class ProtoReader {
 public:
  // The bytes must outlive it.
  explicit ProtoReader(std::string_view message) : rest_(message) {}
  // Goes to the next field. False at the end of the message, and where the bytes are no message.
  bool next();
  [[nodiscard]] uint64_t field() const { return field_; }
  // Of an integer field; 0 for others.
  [[nodiscard]] int64_t integer() const { return integer_; }
  // Of a string, bytes or message field; of a double or float its little-endian bytes; empty for integers.
  [[nodiscard]] std::string_view bytes() const { return bytes_; }

 private:
  bool varint(uint64_t& value);
  bool take(uint64_t size, std::string_view& taken);

  std::string_view rest_;
  uint64_t field_ = 0;
  int64_t integer_ = 0;
  std::string_view bytes_;
};

}  // namespace gradstep

// tar reader: 512-byte headers with a check sum, content padded to 512 bytes, two empty headers at the end.
// no torch
#include "io/tar.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <vector>

#include "gradstep/base/error.h"
#include "io/atomic_file.h"
#include "io/byte_reader.h"

namespace gradstep {
namespace {

constexpr size_t kBlockBytes = 512;
using Block = std::array<char, kBlockBytes>;

// A field of a header: up to its first NUL.
std::string_view field(const Block& block, size_t offset, size_t size) {
  const std::string_view whole(block.data() + offset, size);
  return whole.substr(0, whole.find('\0'));
}

// An octal number, blanks around it allowed.
std::optional<uint64_t> octal(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  if (text.empty() || text.size() > 20) return std::nullopt;
  uint64_t value = 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '7') return std::nullopt;
    value = value * 8 + static_cast<uint64_t>(digit - '0');
  }
  return value;
}

// The sum of all bytes of the header, its own field counted as blanks.
uint64_t check_sum(const Block& block) {
  uint64_t sum = 0;
  for (size_t i = 0; i < block.size(); ++i) {
    sum += i >= 148 && i < 156 ? uint64_t{' '} : static_cast<unsigned char>(block[i]);
  }
  return sum;
}

class TarReader {
 public:
  explicit TarReader(const std::string& archive) : archive_(archive), reader_(archive) {}

  void unpack(const std::vector<TarMember>& members) {
    Block header{};
    while (next_header(header)) {
      const std::optional<uint64_t> size = octal(field(header, 124, 12));
      if (!size) fail("an octal size", "something else");
      const std::string name = full_name(header);
      const auto member = std::ranges::find(members, name, &TarMember::name);
      if (member == members.end()) {
        copy(*size, nullptr);
        continue;
      }
      const char type = header[156];
      if (type != '0' && type != '\0') {
        const int code = static_cast<unsigned char>(type);  // any byte, so never printed as it is
        fail("a plain file named " + name, "an entry of type " + std::to_string(code));
      }
      if (*size != member->size)
        fail(std::to_string(member->size) + " bytes of " + name, std::to_string(*size));
      if (!done_.insert(name).second) fail("one file named " + name, "another");
      written_.push_back(std::make_unique<AtomicFile>(posix_file_system(), member->destination));
      copy(*size, written_.back().get());
    }
    for (const TarMember& member : members) {
      if (!done_.contains(member.name)) fail("a file named " + member.name, "the end of the archive");
    }
    drain();
    for (const auto& file : written_) file->commit();
  }

 private:
  // False at the end: an empty block. Its check sum would not be right otherwise.
  bool next_header(Block& header) {
    read(header.data(), kBlockBytes);
    if (std::ranges::all_of(header, [](char byte) { return byte == 0; })) return false;
    if (octal(field(header, 148, 8)) != check_sum(header))
      fail("a header with the right check sum", "a wrong one");
    return true;
  }

  // ustar may put the front of a long name into a field of its own.
  static std::string full_name(const Block& header) {
    std::string name(field(header, 0, 100));
    const std::string_view prefix = field(header, 345, 155);
    const bool is_ustar = std::string_view(header.data() + 257, 6) == std::string_view("ustar\0", 6);
    return is_ustar && !prefix.empty() ? std::string(prefix) + "/" + name : name;
  }

  // Passes `size` bytes of content and their padding on to `file`, or over.
  void copy(uint64_t size, AtomicFile* file) {
    std::array<char, 128 * kBlockBytes> buffer{};
    while (size > 0) {
      const size_t wanted = static_cast<size_t>(std::min<uint64_t>(size, buffer.size()));
      const size_t padded = (wanted + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
      read(buffer.data(), padded);
      if (file != nullptr) file->write({buffer.data(), wanted});
      size -= wanted;
    }
  }

  void read(char* out, size_t size) {
    const size_t found = reader_.read(out, size);
    if (found != size)
      fail(std::to_string(size) + " more bytes", std::to_string(found) + ": it was cut short");
    offset_ += size;
  }

  // To the end of the file, so that gzip's own check sum is looked at.
  void drain() {
    Block rest{};
    while (reader_.read(rest.data(), rest.size()) == rest.size()) {
    }
  }

  [[noreturn]] void fail(const std::string& expected, const std::string& found) const {
    throw DataError(archive_ + ": at byte " + std::to_string(offset_) +
                    " of the unpacked archive: expected " + expected + ", found " + found +
                    "; delete it and fetch it again");
  }

  const std::string archive_;
  ByteReader reader_;
  uint64_t offset_ = 0;
  std::set<std::string> done_;
  std::vector<std::unique_ptr<AtomicFile>>
      written_;  // visible once the archive has proved to be right to its end
};

}  // namespace

void unpack_tar(const std::string& archive, const std::vector<TarMember>& members) {
  try {
    TarReader(archive).unpack(members);
  } catch (const std::system_error& error) {
    throw DataError(std::string(error.what()) + "; make room or choose another folder");
  }
}

}  // namespace gradstep

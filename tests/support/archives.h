// gzip and tar bytes made in memory, right or wrong on purpose.
#pragma once

#include <zlib.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

namespace gradstep::testing {

inline std::string gzip(std::string_view bytes) {
  z_stream stream{};
  if (deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::runtime_error("zlib");
  std::string out(deflateBound(&stream, bytes.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int status = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (status != Z_STREAM_END) throw std::runtime_error("zlib");
  return out;
}

// One ustar entry: header and content padded to 512 bytes. `type` '0' is a file, '5' a folder, '2' a link.
inline std::string tar_entry(const std::string& name, std::string_view content, char type = '0') {
  std::array<char, 512> header{};
  std::memcpy(header.data(), name.data(), std::min<size_t>(name.size(), 100));
  std::snprintf(header.data() + 100, 8, "%07o", 0644);
  std::snprintf(header.data() + 124, 12, "%011lo", static_cast<unsigned long>(content.size()));
  std::memset(header.data() + 148, ' ', 8);
  header[156] = type;
  std::memcpy(header.data() + 257, "ustar\00000", 8);
  unsigned sum = 0;
  for (const char byte : header) sum += static_cast<unsigned char>(byte);
  std::snprintf(header.data() + 148, 8, "%06o", sum);
  std::string entry(header.data(), header.size());
  entry += content;
  entry.resize((entry.size() + 511) / 512 * 512, '\0');
  return entry;
}

inline std::string tar_end() { return std::string(1024, '\0'); }

}  // namespace gradstep::testing

// A record is its length, the length's checksum, the bytes, and the checksum of these; all little-endian.
// no torch
#include "report/event_file.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "base/machine.h"
#include "gradstep/io/file_system.h"
#include "report/crc32c.h"

namespace gradstep {
namespace {

constexpr std::string_view kPrefix = "events.out.tfevents.";
constexpr size_t kMaxBuffer = 256 * 1024;
constexpr size_t kHeaderBytes = 12;
constexpr size_t kFooterBytes = 4;

void append_little_endian(std::string& out, uint64_t value, int num_bytes) {
  for (int i = 0; i < num_bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
}

uint64_t little_endian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

// The seconds in the name of an event file; 0 for other files.
int64_t seconds_in(const std::string& name) {
  if (!name.starts_with(kPrefix)) return 0;
  int64_t seconds = 0;
  std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), seconds);
  return seconds;
}

// Sorts after the existing files, even if two starts fall into one second or the clock was set back.
std::string new_path(const std::string& folder) {
  static std::atomic<int> num_files{0};
  FileSystem& disk = posix_file_system();
  disk.make_dirs(folder);
  int64_t seconds = std::time(nullptr);
  for (const std::string& name : disk.list(folder)) seconds = std::max(seconds, seconds_in(name) + 1);
  std::string digits = std::to_string(seconds);
  digits.insert(0, digits.size() < 10 ? 10 - digits.size() : 0, '0');
  return folder + "/" + std::string(kPrefix) + digits + "." + host_name() + "." + std::to_string(getpid()) +
         "." + std::to_string(num_files++);
}

}  // namespace

EventFile::EventFile(const std::string& folder) : file_(new_path(folder)) {}

void EventFile::append(std::string_view record) {
  std::string length;
  append_little_endian(length, record.size(), 8);
  buffer_ += length;
  append_little_endian(buffer_, masked_crc32c(length), 4);
  buffer_ += record;
  append_little_endian(buffer_, masked_crc32c(record), 4);
  if (buffer_.size() >= kMaxBuffer) flush();
}

void EventFile::flush() {
  std::string records;
  records.swap(buffer_);  // a failed write is not tried again
  file_.require_whole(num_written_);
  file_.append(records);
  num_written_ += static_cast<int64_t>(records.size());
}

std::vector<std::string> event_files(const std::string& folder) {
  std::vector<std::string> paths;
  for (const std::string& name : posix_file_system().list(folder)) {
    if (name.starts_with(kPrefix)) paths.push_back(folder + "/" + name);
  }
  return paths;
}

void for_each_record(const std::string& path, const std::function<void(std::string_view)>& each) {
  std::error_code error;
  const uint64_t file_bytes = std::filesystem::file_size(path, error);
  std::ifstream file(path, std::ios::binary);
  if (error) return;
  std::string header(kHeaderBytes, '\0'), body;
  while (file.read(header.data(), kHeaderBytes)) {
    const std::string_view length = std::string_view(header).substr(0, 8);
    const uint64_t size = little_endian(length);
    if (little_endian(std::string_view(header).substr(8)) != masked_crc32c(length)) return;
    if (size > file_bytes) return;
    body.resize(size + kFooterBytes);
    if (!file.read(body.data(), static_cast<std::streamsize>(body.size()))) return;
    const std::string_view record = std::string_view(body).substr(0, size);
    if (little_endian(std::string_view(body).substr(size)) != masked_crc32c(record)) return;
    each(record);
  }
}

}  // namespace gradstep

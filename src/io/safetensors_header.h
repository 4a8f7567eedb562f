// The JSON header of a safetensors file: written as Python's writer does, and read without trusting a byte of
// it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gradstep {

class ReadFile;

struct SafetensorsEntry {
  std::string name;
  std::string dtype;  // "F32"
  std::vector<int64_t> shape;
  uint64_t begin = 0;  // byte offsets in the data part
  uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // by offset, gap-free from 0
  std::map<std::string, std::string> metadata;
};

// Bytes of one element; 0 for an unknown name.
[[nodiscard]] uint64_t safetensors_dtype_size(std::string_view dtype);
// Python's writer puts larger ranks first (and then sorts by name); -1 for an unknown name.
[[nodiscard]] int safetensors_dtype_rank(std::string_view dtype);

// Length field, JSON and padding: everything before the data. Throws CheckpointError for a name that is not
// UTF-8.
[[nodiscard]] std::string format_safetensors_header(const SafetensorsHeader& header);

// The longest header that is read, as in Python.
inline constexpr uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;

// Checks everything that can be checked: grammar, depth, duplicate keys, dtypes, shapes (overflow, size =
// offsets), and that the tensors cover the `data_size` bytes after the header exactly, without gap or
// overlap. Throws CheckpointError, beginning with `path`.
[[nodiscard]] SafetensorsHeader parse_safetensors_header(const std::string& path, std::string_view json,
                                                         uint64_t data_size);

// The JSON of the header of the file. Its length is not believed before it was compared with the size of
// the file. Throws CheckpointError.
[[nodiscard]] std::string read_safetensors_json(const std::string& path, const ReadFile& file);

// The header alone, checked as above. Throws CheckpointError.
[[nodiscard]] SafetensorsHeader read_safetensors_header(const std::string& path);

}  // namespace gradstep

// no torch
// safetensors header: a strict reader on JSON events, so that nothing is built that was not checked, and the
// writer.
#include "io/safetensors_header.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "gradstep/base/error.h"
#include "io/file_kind.h"
#include "io/read_file.h"

namespace gradstep {
namespace {

struct Dtype {
  std::string_view name;
  uint64_t size;
};

// In the order of rank.
constexpr std::array<Dtype, 16> kDtypes = {{{"BOOL", 1},
                                            {"U8", 1},
                                            {"I8", 1},
                                            {"F8_E5M2", 1},
                                            {"F8_E4M3", 1},
                                            {"I16", 2},
                                            {"U16", 2},
                                            {"F16", 2},
                                            {"BF16", 2},
                                            {"I32", 4},
                                            {"U32", 4},
                                            {"F32", 4},
                                            {"C64", 8},
                                            {"F64", 8},
                                            {"I64", 8},
                                            {"U64", 8}}};

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  throw CheckpointError(path + ": " + what + "; not a whole safetensors file, use another one");
}

// Names come from the file: shown short and without control characters, so that the message stays one line.
std::string shown(const std::string& name) {
  std::string text = "\"";
  for (const char letter : name.substr(0, 60)) text += letter >= ' ' && letter <= '~' ? letter : '?';
  return text + (name.size() > 60 ? "...\"" : "\"");
}

// Accepts {"__metadata__": {text: text} or null, name: {"dtype": text, "shape": [n], "data_offsets": [begin,
// end]}} and nothing else. The state after an error is never used: the handlers throw.
class HeaderReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderReader(const std::string& path) : path_(path) {}
  SafetensorsHeader take() { return std::move(header_); }

  bool start_object(size_t /*count*/) override {
    if (state_ == State::kStart) {
      state_ = State::kTop;
    } else if (state_ == State::kTop && key_given_) {
      key_given_ = false;
      state_ = key_ == "__metadata__" ? State::kMetadata : State::kEntry;
      inner_keys_.clear();
      if (state_ == State::kEntry) header_.entries.emplace_back().name = key_;
    } else {
      unexpected("an object");
    }
    return true;
  }

  bool key(string_t& name) override {
    std::set<std::string>& seen = state_ == State::kTop ? top_keys_ : inner_keys_;
    if (!seen.insert(name).second) fail(path_, "header: key " + shown(name) + " is given twice");
    if (state_ == State::kEntry && name != "dtype" && name != "shape" && name != "data_offsets") {
      fail(path_, "header: tensor " + shown(key_) + " has an unknown key " + shown(name));
    }
    (state_ == State::kTop ? key_ : inner_key_) = name;
    key_given_ = true;
    return true;
  }

  bool end_object() override {
    if (state_ == State::kEntry && inner_keys_.size() != 3) {
      fail(path_, "header: tensor " + shown(key_) + " lacks dtype, shape or data_offsets");
    }
    state_ = state_ == State::kTop ? State::kEnd : State::kTop;
    return true;
  }

  bool start_array(size_t /*count*/) override {
    if (state_ != State::kEntry || !key_given_ || inner_key_ == "dtype") unexpected("a list");
    key_given_ = false;
    state_ = State::kNumbers;
    numbers_.clear();
    return true;
  }

  bool end_array() override {
    state_ = State::kEntry;
    SafetensorsEntry& entry = header_.entries.back();
    if (inner_key_ == "data_offsets") {
      if (numbers_.size() != 2)
        fail(path_, "header: tensor " + shown(key_) + " has data_offsets that are not a pair");
      entry.begin = numbers_[0];
      entry.end = numbers_[1];
      return true;
    }
    for (const uint64_t number : numbers_) {
      if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
        fail(path_, "header: tensor " + shown(key_) + " has a dimension beyond 63 bits");
      }
      entry.shape.push_back(static_cast<int64_t>(number));
    }
    return true;
  }

  bool string(string_t& value) override {
    if (!key_given_) unexpected("a text");
    key_given_ = false;
    if (state_ == State::kMetadata) {
      header_.metadata[inner_key_] = value;
    } else if (state_ == State::kEntry && inner_key_ == "dtype") {
      if (safetensors_dtype_size(value) == 0) {
        fail(path_, "header: tensor " + shown(key_) + " has the unknown dtype " + shown(value));
      }
      header_.entries.back().dtype = value;
    } else {
      unexpected("a text");
    }
    return true;
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (state_ != State::kNumbers) unexpected("a number");
    numbers_.push_back(value);
    return true;
  }

  bool null() override {
    if (state_ != State::kTop || !key_given_ || key_ != "__metadata__") unexpected("null");
    key_given_ = false;  // no metadata, as the reference reader takes it
    return true;
  }
  bool boolean(bool /*value*/) override { unexpected("true or false"); }
  bool number_integer(number_integer_t /*value*/) override { unexpected("a negative number"); }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override {
    unexpected("a fraction or huge number");
  }
  bool binary(binary_t& /*value*/) override { unexpected("binary data"); }
  bool parse_error(size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    fail(path_, "at byte " + std::to_string(8 + position) + ": expected JSON, found something else");
  }

 private:
  enum class State { kStart, kTop, kMetadata, kEntry, kNumbers, kEnd };

  [[noreturn]] void unexpected(const std::string& what) const {
    fail(path_, "header: " + what + " where none belongs" + (key_.empty() ? "" : ", at " + shown(key_)));
  }

  const std::string& path_;
  State state_ = State::kStart;
  bool key_given_ = false;  // a key awaits its value
  std::string key_;         // of the top object
  std::string inner_key_;
  std::set<std::string> top_keys_;
  std::set<std::string> inner_keys_;
  std::vector<uint64_t> numbers_;
  SafetensorsHeader header_;
};

// Bytes that dtype and shape ask for. A zero excuses no huge dimension beside it: strides would overflow.
uint64_t size_of(const std::string& path, const SafetensorsEntry& entry) {
  int64_t size = static_cast<int64_t>(safetensors_dtype_size(entry.dtype));
  bool empty = false;
  for (const int64_t dimension : entry.shape) {
    empty |= dimension == 0;
    if (__builtin_mul_overflow(size, std::max<int64_t>(dimension, 1), &size)) {
      fail(path, "header: tensor " + shown(entry.name) + " has a shape beyond 63 bits");
    }
  }
  return empty ? 0 : static_cast<uint64_t>(size);
}

void check_layout(const std::string& path, const std::vector<SafetensorsEntry>& entries, uint64_t data_size) {
  uint64_t next = 0;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.begin != next || entry.end < entry.begin) {
      fail(path, "header: tensor " + shown(entry.name) + ": expected data from byte " + std::to_string(next) +
                     ", found data_offsets " + std::to_string(entry.begin) + " to " +
                     std::to_string(entry.end));
    }
    const uint64_t wanted = size_of(path, entry);
    if (entry.end - entry.begin != wanted) {
      fail(path, "header: tensor " + shown(entry.name) + ": expected " + std::to_string(wanted) +
                     " bytes for its shape, found data_offsets of " +
                     std::to_string(entry.end - entry.begin));
    }
    next = entry.end;
  }
  if (next != data_size) {
    fail(path, "expected " + std::to_string(next) + " bytes of data behind the header, found " +
                   std::to_string(data_size));
  }
}

std::string quoted(const std::string& text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    throw CheckpointError("tensor name or metadata " + shown(text) + " is not UTF-8; rename it");
  }
}

}  // namespace

uint64_t safetensors_dtype_size(std::string_view dtype) {
  const auto* const found = std::ranges::find(kDtypes, dtype, &Dtype::name);
  return found == kDtypes.end() ? 0 : found->size;
}

int safetensors_dtype_rank(std::string_view dtype) {
  const auto* const found = std::ranges::find(kDtypes, dtype, &Dtype::name);
  return found == kDtypes.end() ? -1 : static_cast<int>(found - kDtypes.begin());
}

std::string format_safetensors_header(const SafetensorsHeader& header) {
  std::string json;
  const auto open = [&](const std::string& key) { json += (json.empty() ? "{" : ",") + quoted(key) + ":{"; };
  if (!header.metadata.empty()) {
    open("__metadata__");
    bool first = true;
    for (const auto& [key, value] : header.metadata) {
      json += (first ? "" : ",") + quoted(key) + ":" + quoted(value);
      first = false;
    }
    json += "}";
  }
  for (const SafetensorsEntry& entry : header.entries) {
    open(entry.name);
    json += "\"dtype\":\"" + entry.dtype + "\",\"shape\":[";
    for (size_t i = 0; i < entry.shape.size(); ++i)
      json += (i == 0 ? "" : ",") + std::to_string(entry.shape[i]);
    json += "],\"data_offsets\":[" + std::to_string(entry.begin) + "," + std::to_string(entry.end) + "]}";
  }
  json += json.empty() ? "{}" : "}";
  json.resize((json.size() + 7) / 8 * 8, ' ');  // so that the data is aligned
  std::string bytes;
  for (int shift = 0; shift < 64; shift += 8) bytes += static_cast<char>(json.size() >> shift & 0xff);
  return bytes + json;
}

SafetensorsHeader parse_safetensors_header(const std::string& path, std::string_view json,
                                           uint64_t data_size) {
  if (json.empty() || json.front() != '{') fail(path, "at byte 8: expected a header that begins with {");
  HeaderReader reader(path);
  if (!nlohmann::json::sax_parse(json, &reader)) fail(path, "header: not JSON");
  SafetensorsHeader header = reader.take();
  // By begin, then end: of tensors that begin together, the empty ones come first. The names make it a fixed
  // order.
  std::ranges::stable_sort(header.entries, [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  check_layout(path, header.entries, data_size);
  return header;
}

std::string read_safetensors_json(const std::string& path, const ReadFile& file) {
  if (file.size() < 8) {
    throw CheckpointError(path + ": expected a header length of 8 bytes, found a file of " +
                          std::to_string(file.size()) + "; not a whole safetensors file, use another one");
  }
  std::array<unsigned char, 8> field{};
  file.read(field.data(), field.size(), 0);
  uint64_t length = 0;
  for (size_t i = 0; i < field.size(); ++i) length |= uint64_t{field[i]} << (8 * i);
  if (length > file.size() - 8 || length > kMaxSafetensorsHeaderBytes) {
    const std::string kind = file_kind_at(path);
    if (!kind.empty()) throw CheckpointError(path + ": is " + kind + "; give a safetensors file");
    throw CheckpointError(path + ": at byte 0: a header of " + std::to_string(length) +
                          " bytes in a file of " + std::to_string(file.size()) +
                          "; not a whole safetensors file, use another one");
  }
  std::string json(static_cast<size_t>(length), '\0');
  file.read(json.data(), length, 8);
  return json;
}

SafetensorsHeader read_safetensors_header(const std::string& path) {
  const ReadFile file(path);
  const std::string json = read_safetensors_json(path, file);
  return parse_safetensors_header(path, json, file.size() - 8 - json.size());
}

}  // namespace gradstep

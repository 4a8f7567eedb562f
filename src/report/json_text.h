// Appends the pieces of one-line JSON objects to a buffer: keys, numbers, texts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gradstep {

// "key":value pairs in the order of the calls. Nothing is allocated once the buffer has grown.
class JsonLine {
 public:
  // Appends "{" to `out`, which must outlive this.
  explicit JsonLine(std::string& out) : out_(out) { out_ += '{'; }
  void add(std::string_view key, int64_t value);
  // Shortest round-trip form; not finite: the strings "NaN", "Infinity", "-Infinity".
  void add(std::string_view key, double value);
  void add(std::string_view key, bool value);
  // Bytes that are not UTF-8 become U+FFFD.
  void add(std::string_view key, std::string_view text);
  void add(std::string_view key, const char* text) { add(key, std::string_view(text)); }
  void add_null(std::string_view key);
  // Lists of numbers, each as above.
  void add(std::string_view key, const std::vector<int64_t>& values);
  void add(std::string_view key, const std::vector<double>& values);
  // Appends "}".
  void close() { out_ += '}'; }

 private:
  void start(std::string_view key);

  std::string& out_;
  bool first_ = true;
};

}  // namespace gradstep

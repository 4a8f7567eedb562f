// Numbers through std::to_chars, texts escaped as RFC 8259 wants it.
// no torch
#include "report/json_text.h"

#include <charconv>
#include <cmath>

#include "base/number_text.h"
#include "base/utf8.h"

namespace gradstep {
namespace {

void append_escaped(std::string& out, std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    const auto code = static_cast<unsigned char>(text[0]);
    if (length == 0) {
      out += kReplacementCharacter;
    } else if (code == '"' || code == '\\') {
      out += '\\';
      out += text[0];
    } else if (code < 0x20) {
      out += "\\u00";
      out += kHex[code >> 4];
      out += kHex[code & 15];
    } else {
      out.append(text.substr(0, length));
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
}

template <class Number>
void append_number(std::string& out, Number value) {
  char buffer[32];
  const char* end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  out.append(buffer, static_cast<size_t>(end - buffer));
}

void append_real(std::string& out, double value) {
  if (const std::string_view text = not_finite_text(value); !text.empty()) {
    out += '"';
    out += text;
    out += '"';
  } else if (value == 0 && std::signbit(value)) {
    out += "-0.0";  // readers take -0 for the whole number 0
  } else {
    append_number(out, value);
  }
}

template <class Number>
void append_list(std::string& out, const std::vector<Number>& values, void (*append)(std::string&, Number)) {
  out += '[';
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out += ',';
    append(out, values[i]);
  }
  out += ']';
}

}  // namespace

void JsonLine::start(std::string_view key) {
  if (!first_) out_ += ',';
  first_ = false;
  out_ += '"';
  append_escaped(out_, key);
  out_ += "\":";
}

void JsonLine::add(std::string_view key, int64_t value) {
  start(key);
  append_number(out_, value);
}

void JsonLine::add(std::string_view key, double value) {
  start(key);
  append_real(out_, value);
}

void JsonLine::add(std::string_view key, const std::vector<int64_t>& values) {
  start(key);
  append_list<int64_t>(out_, values, append_number<int64_t>);
}

void JsonLine::add(std::string_view key, const std::vector<double>& values) {
  start(key);
  append_list<double>(out_, values, append_real);
}

void JsonLine::add_null(std::string_view key) {
  start(key);
  out_ += "null";
}

void JsonLine::add(std::string_view key, bool value) {
  start(key);
  out_ += value ? "true" : "false";
}

void JsonLine::add(std::string_view key, std::string_view text) {
  start(key);
  out_ += '"';
  append_escaped(out_, text);
  out_ += '"';
}

}  // namespace gradstep

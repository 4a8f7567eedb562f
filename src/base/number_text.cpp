// std::to_chars and std::from_chars, which know no locale.
// no torch
#include "base/number_text.h"

#include <charconv>
#include <cmath>
#include <system_error>

namespace gradstep {
namespace {

template <class Number>
std::optional<Number> parse_whole(const std::string& text) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return value;
}

}  // namespace

std::optional<int64_t> parse_integer(const std::string& text) { return parse_whole<int64_t>(text); }

std::optional<uint64_t> parse_unsigned(const std::string& text) { return parse_whole<uint64_t>(text); }

std::optional<double> parse_real(const std::string& text) {
  const std::optional<double> value = parse_whole<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<bool> parse_switch(const std::string& text) {
  if (text == "true" || text == "1" || text == "yes" || text == "on") return true;
  if (text == "false" || text == "0" || text == "no" || text == "off") return false;
  return std::nullopt;
}

std::string shortest(double value) {
  char text[32];  // the longest double takes 24
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::string_view not_finite_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return "";
}

}  // namespace gradstep

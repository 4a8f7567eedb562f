// How numbers, switches and devices are read from text and written to it, and how flags are spelt.
#include "config/flag_table.h"

#include <cmath>

#include "base/utf8.h"

namespace gradstep {
bool in_range(int64_t value, const IntegerRange& range) { return value >= range.min && value <= range.max; }

bool in_range(double value, const RealRange& range) {
  if (!std::isfinite(value) || value < range.min) return false;
  return range.max_included ? value <= range.max : value < range.max;
}

std::string expectation(const IntegerRange& range) {
  const std::string min = std::to_string(range.min);
  if (range.max == std::numeric_limits<int64_t>::max()) return "a whole number of at least " + min;
  return "a whole number from " + min + " to " + std::to_string(range.max);
}

std::string expectation(const RealRange& range) {
  const std::string min = shortest(range.min);
  if (std::isinf(range.max)) return "a number of at least " + min;
  if (range.max_included) return "a number from " + min + " to " + shortest(range.max);
  return "a number of at least " + min + " and less than " + shortest(range.max);
}

std::string expectation(const std::vector<std::string>& choices) {
  std::string text;
  for (size_t i = 0; i < choices.size(); ++i) {
    if (i > 0) text += i + 1 == choices.size() ? " or " : ", ";
    text += choices[i];
  }
  return text;
}

bool is_device_text(const std::string& text) {
  if (text == "auto" || text == "cpu" || text == "cuda") return true;
  if (text.rfind("cuda:", 0) != 0 || text.size() == 5 || text.size() > 8) return false;
  return text.find_first_not_of("0123456789", 5) == std::string::npos;
}

std::string flag_spelling(const std::string& key) {
  std::string text = "--" + key;
  for (char& c : text) {
    if (c == '_') c = '-';
  }
  return text;
}

std::string variable_spelling(const std::string& key) {
  std::string text = "GRADSTEP_" + key;
  for (char& c : text) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return text;
}

std::string complaint(const std::string& name, const std::string& text, const FlagInfo& info) {
  return name + " '" + shortened(text) + "': must be " + info.expects;
}

}  // namespace gradstep

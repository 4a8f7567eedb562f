// std::to_chars, which needs no precision and knows no locale.
// no torch
#include "base/number_text.h"

#include <charconv>
#include <cmath>

namespace gradstep {

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

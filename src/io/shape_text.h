// The shape of a tensor as people write it.
#pragma once

#include <c10/util/ArrayRef.h>

#include <cstdint>
#include <string>

namespace gradstep {

// "(2, 3)", "()" for a scalar.
[[nodiscard]] inline std::string shape_text(c10::ArrayRef<int64_t> shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + ")";
}

}  // namespace gradstep

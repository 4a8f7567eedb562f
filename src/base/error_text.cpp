// Sorts LibTorch's errors from the others.
#include "base/error_text.h"

#include <c10/util/Exception.h>

#include <algorithm>

namespace gradstep {

std::string one_line(const std::exception& error) {
  if (const auto* torch_error = dynamic_cast<const c10::Error*>(&error)) {
    const std::string text = torch_error->what_without_backtrace();
    return text.substr(0, text.find('\n'));
  }
  std::string text = error.what();
  std::ranges::replace(text, '\n', ' ');
  return text;
}

}  // namespace gradstep

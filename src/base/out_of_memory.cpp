// no torch
// By type, or by its words if the type says nothing.
#include "base/out_of_memory.h"

#include <c10/util/Exception.h>

#include <new>
#include <string>

namespace gradstep {
namespace {

bool says_out_of_memory(const std::string& text) {
  for (const char* words :
       {"can't allocate memory", "not enough memory", "out of memory", "STATUS_ALLOC_FAILED"}) {
    if (text.find(words) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

bool is_out_of_memory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return true;
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) return true;
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  if (torch_error == nullptr) return false;
  const std::string text = torch_error->what_without_backtrace();
  return says_out_of_memory(text.substr(0, text.find('\n')));
}

}  // namespace gradstep

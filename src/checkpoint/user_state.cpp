// Everything is checked before a byte is copied or written, so that a mistake costs no checkpoint.
#include "checkpoint/user_state.h"

#include "base/utf8.h"
#include "gradstep/base/error.h"
#include "io/storable.h"

namespace gradstep {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw CheckpointError("user state: " + what + "; mend Task::user_state");
}

}  // namespace

void check_user_state(const UserState& state) {
  for (const auto& [key, text] : state.values) {
    if (!is_utf8(key)) refuse("a key is not UTF-8");
    if (!is_utf8(text)) refuse("the value of " + key + " is not UTF-8");
  }
  const std::string fault = why_not_storable(state.tensors);
  if (!fault.empty()) throw CheckpointError("user state: tensor " + fault);
}

}  // namespace gradstep

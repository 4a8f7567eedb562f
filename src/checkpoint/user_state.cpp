// Everything is checked before a byte is copied or written, so that a mistake costs no checkpoint.
#include "checkpoint/user_state.h"

#include <set>

#include "base/utf8.h"
#include "gradstep/base/error.h"
#include "io/safetensors_image.h"

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
  std::set<std::string> names;
  for (const auto& [name, tensor] : state.tensors) {
    if (!is_utf8(name)) refuse("the name of a tensor is not UTF-8");
    if (name == "__metadata__") refuse("the name " + name + " is reserved");
    if (!names.insert(name).second) refuse("two tensors are named " + name);
    if (!tensor.defined()) refuse("tensor " + name + " is undefined");
    if (tensor.layout() != at::kStrided) refuse("tensor " + name + " is not dense");
    [[maybe_unused]] const std::string dtype = safetensors_dtype(name, tensor.scalar_type());
  }
}

}  // namespace gradstep

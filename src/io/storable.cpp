// Every rule of the safetensors writer that a tensor or its name can break.
#include "io/storable.h"

#include <ATen/ATen.h>
#include <ATen/MemoryOverlap.h>

#include <set>

#include "base/utf8.h"
#include "io/safetensors_image.h"

namespace gradstep {
namespace {

std::string fault_of(const std::string& name, const at::Tensor& tensor) {
  if (!is_utf8(name)) return "has a name that is not UTF-8; rename it";
  if (name == "__metadata__") return "has a name that is reserved in safetensors files; rename it";
  if (!tensor.defined()) return "is undefined; give it a value";
  if (tensor.layout() != at::kStrided) return "is not dense; make it dense";
  if (safetensors_dtype(tensor.scalar_type()).empty()) {
    return std::string("is ") + c10::toString(tensor.scalar_type()) +
           ", a type that no safetensors file can hold; convert it";
  }
  return {};
}

std::string first_fault(const NamedTensors& tensors, bool restorable) {
  std::set<std::string> names;
  for (const auto& [name, tensor] : tensors) {
    std::string fault = fault_of(name, tensor);
    if (fault.empty() && !names.insert(name).second) fault = "has the name of another one; rename one";
    if (fault.empty() && restorable && at::has_internal_overlap(tensor) == at::MemOverlap::Yes)
      fault = "has elements that share memory, so that no checkpoint can be restored; use a clone() of it";
    if (!fault.empty()) return to_utf8(name) + " " + fault;
  }
  return {};
}

}  // namespace

std::string why_not_storable(const NamedTensors& tensors) { return first_fault(tensors, false); }
std::string why_not_restorable(const NamedTensors& tensors) { return first_fault(tensors, true); }

}  // namespace gradstep

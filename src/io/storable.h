// Whether a safetensors file can hold tensors, and whether they can be brought back from it. Asked before a
// run begins, so that no work is lost at its first save.
#pragma once

#include <string>

#include "gradstep/io/safetensors.h"

namespace gradstep {

// The first tensor that no safetensors file can hold, why, and what to do: "buf is ComplexDouble, a type that
// no safetensors file can hold; convert it". Empty: a file can hold all of them.
[[nodiscard]] std::string why_not_storable(const NamedTensors& tensors);

// The same for tensors that a resume copies into: their elements must not share memory either, as those of
// expand() do.
[[nodiscard]] std::string why_not_restorable(const NamedTensors& tensors);

}  // namespace gradstep

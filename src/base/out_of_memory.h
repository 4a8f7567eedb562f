// Whether an exception of LibTorch or the standard library means that memory ran out.
#pragma once

#include <exception>

namespace gradstep {

// c10::OutOfMemoryError and std::bad_alloc do, and each c10::Error whose words say so: libtorch's CPU
// allocator throws a plain one.
[[nodiscard]] bool is_out_of_memory(const std::exception& error);

}  // namespace gradstep

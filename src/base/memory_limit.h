// A limit on the memory that tensors on the CPU take, and a count of it.
#pragma once

#include <cstdint>

namespace gradstep {

// From now on an allocation that would bring the bytes of all CPU tensors above `bytes` throws
// c10::OutOfMemoryError instead; 0: no limit. May be called again to change it. Process-wide, any thread. The
// first call puts a counting allocator over libtorch's: what was allocated before is not counted, and freed
// as before. Costs 64 bytes and two atomic additions a tensor.
void limit_tensor_memory(int64_t bytes);

// Bytes of the CPU tensors alive; 0 before the first call of limit_tensor_memory.
[[nodiscard]] int64_t tensor_memory_bytes();

}  // namespace gradstep

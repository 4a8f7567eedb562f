// Tuning of the C allocator for training, which takes and gives back the same large blocks in every update.
#pragma once

namespace gradstep {

// From now on glibc keeps freed blocks instead of returning them to the kernel, which would cost a page fault
// for each page in every update. Process-wide; costs resident memory, at most the peak. No-op on another C
// library.
void keep_freed_memory();

}  // namespace gradstep

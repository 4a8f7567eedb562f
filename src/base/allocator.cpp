// no torch
// Three knobs of glibc's malloc.
#include "base/allocator.h"

#include <malloc.h>

namespace gradstep {

void keep_freed_memory() {
#ifdef __GLIBC__
  constexpr int kNever = 1 << 30;
  mallopt(M_MMAP_THRESHOLD, kNever);     // large blocks come from the heap, not from mmap
  mallopt(M_TRIM_THRESHOLD, kNever);     // and the heap does not shrink
  mallopt(M_TOP_PAD, 64 * 1024 * 1024);  // and grows in large steps
#endif
}

}  // namespace gradstep

// Fuzz target: an IDX file of pictures or labels, gzipped or not.
#include "data/idx.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace gradstep;
  static const fuzz::MemoryFile file("idx");
  file.set(bytes, size);
  for (const int64_t num_dims : {1, 3}) {
    fuzz::taken([num_dims] {
      const at::Tensor values = read_idx(file.path(), num_dims);
      fuzz::require(values.dim() == num_dims, "a tensor of other dimensions than asked for");
    });
  }
  return 0;
}

// Fuzz target: a whole safetensors file, as a model and as a black box.
#include "gradstep/io/safetensors.h"

#include "checkpoint/model_metadata.h"
#include "fuzz.h"
#include "incident/black_box.h"

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace gradstep;
  static const fuzz::MemoryFile file("safetensors");
  file.set(bytes, size);
  fuzz::taken([] {
    const SafetensorsFile read = read_safetensors(file.path());
    (void)model_info_or_none(file.path(), read.metadata);
    (void)model_info(file.path(), read.metadata);
  });
  fuzz::taken([] { (void)read_black_box(file.path()); });
  (void)exported_update(file.path());
  return 0;
}

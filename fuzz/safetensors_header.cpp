// Fuzz target: the JSON header of a safetensors file. What is taken must be written and read back the same.
#include "io/safetensors_header.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace gradstep;
  // The data behind the header is as long as the first byte says.
  if (size == 0) return 0;
  const std::string json = fuzz::text_of(bytes + 1, size - 1);
  fuzz::taken([&] {
    const SafetensorsHeader header = parse_safetensors_header("input", json, bytes[0]);
    for (const SafetensorsEntry& entry : header.entries) {
      fuzz::require(entry.begin <= entry.end && entry.end <= bytes[0], "a tensor outside the data");
    }
    const std::string written = format_safetensors_header(header);
    const SafetensorsHeader again =
        parse_safetensors_header("again", std::string_view(written).substr(8), bytes[0]);
    fuzz::require(again.metadata == header.metadata && again.entries.size() == header.entries.size(),
                  "the header changed on its way through the writer");
  });
  return 0;
}

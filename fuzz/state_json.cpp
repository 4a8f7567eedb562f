// Fuzz target: state.json of a checkpoint. What is taken can be written and is then taken again.
#include "checkpoint/state_json.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace gradstep;
  const std::string text = fuzz::text_of(bytes, size);
  fuzz::taken([&] {
    const StateFile file = parse_state("input", text);
    const std::string written = format_state(file.state);
    fuzz::require(format_state(parse_state("again", written).state) == written,
                  "another state after writing it");
  });
  return 0;
}

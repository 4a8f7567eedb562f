// Fuzz target: the JSON part of a black box.
#include "fuzz.h"
#include "incident/black_box_json.h"

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace gradstep;
  const std::string text = fuzz::text_of(bytes, size);
  fuzz::taken([&] {
    BlackBox box;
    read_black_box_json("input", text, box);
    const std::string written = black_box_json(box);
    BlackBox again;
    read_black_box_json("again", written, again);
    fuzz::require(black_box_json(again) == written, "another black box after writing it");
  });
  return 0;
}

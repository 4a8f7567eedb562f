// Fuzz target: manifest.json, as it comes and with a seal that fits.
#include "checkpoint/manifest.h"

#include "fuzz.h"
#include "io/hash.h"

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace gradstep;
  const std::string text = fuzz::text_of(bytes, size);
  fuzz::taken([&] { (void)parse_manifest("input", text); });
  const std::string sealed = text + "\"xxh3\":\"" + xxh3(text.data(), text.size()) + "\"}\n";
  fuzz::taken([&] {
    const std::vector<ManifestFile> files = parse_manifest("input", sealed);
    fuzz::require(parse_manifest("again", format_manifest(files)) == files,
                  "another manifest after writing it");
  });
  return 0;
}

// Fuzz target: ByteReader over gzipped and plain bytes. It must never give more than it says it can.
#include "fuzz.h"
#include "io/byte_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace gradstep;
  static const fuzz::MemoryFile file("gzip");
  file.set(bytes, size);
  fuzz::taken([] {
    ByteReader reader(file.path());
    const uint64_t most = reader.max_content_size();
    uint64_t total = 0;
    char piece[4096];
    while (const size_t count = reader.read(piece, sizeof piece)) total += count;
    fuzz::require(total <= most, "more content than max_content_size()");
    fuzz::require(reader.is_gzip() || total == reader.file_size(),
                  "plain content of another size than the file");
  });
  return 0;
}

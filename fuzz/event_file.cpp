// Fuzz target: an event file of TensorBoard, and its events as protocol buffer messages. Records have
// checksums, which random bytes never meet, so the input is read as a message too.
#include "report/event_file.h"

#include "fuzz.h"
#include "report/protobuf.h"

namespace {

// Every field, and what it holds as a message of its own.
void walk(std::string_view message, int depth) {
  for (gradstep::ProtoReader reader(message); reader.next();) {
    const std::string_view bytes = reader.bytes();
    gradstep::fuzz::require(bytes.empty() || (bytes.data() >= message.data() &&
                                              bytes.data() + bytes.size() <= message.data() + message.size()),
                            "a field that lies outside its message");
    if (depth > 0) walk(bytes, depth - 1);
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace gradstep;
  static const fuzz::MemoryFile file("events");
  file.set(bytes, size);
  constexpr int kDepth = 3;  // event, summary, value
  for_each_record(file.path(), [&](std::string_view record) {
    fuzz::require(record.size() <= size, "a record that is longer than its file");
    walk(record, kDepth);
  });
  const std::string text = fuzz::text_of(bytes, size);
  walk(text, kDepth);
  return 0;
}

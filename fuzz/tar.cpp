// Fuzz target: unpack_tar, which must write the members it was asked for and nothing else.
#include "io/tar.h"

#include <filesystem>

#include "fuzz.h"

namespace {

// A folder in memory that goes with the process.
struct Folder {
  std::filesystem::path path;
  Folder() {
    std::string name = "/dev/shm/gradstep-fuzz-XXXXXX";
    gradstep::fuzz::require(::mkdtemp(name.data()) != nullptr, "mkdtemp failed");
    path = name;
  }
  ~Folder() { std::filesystem::remove_all(path); }
};

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace gradstep;
  namespace fs = std::filesystem;
  static const fuzz::MemoryFile file("tar");
  static const Folder folder;
  file.set(bytes, size);
  const std::string destination = folder.path / "member";
  const bool taken = fuzz::taken([&] { unpack_tar(file.path(), {{"folder/a.bin", destination, 5}}); });
  for (const fs::directory_entry& entry : fs::directory_iterator(folder.path)) {
    fuzz::require(taken && entry.path() == destination && entry.file_size() == 5,
                  "a file that nobody asked for");
  }
  fs::remove(destination);
  return 0;
}

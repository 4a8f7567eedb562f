// Fuzz target: a folder of CIFAR-10 with one test file.
#include "data/cifar.h"

#include <filesystem>
#include <fstream>

#include "fuzz.h"

namespace {

std::string make_folder() {
  std::string name = "/dev/shm/gradstep-fuzz-XXXXXX";
  gradstep::fuzz::require(::mkdtemp(name.data()) != nullptr, "mkdtemp failed");
  static const struct Remover {
    std::string path;
    ~Remover() { std::filesystem::remove_all(path); }
  } remover{name};
  return name;
}

}  // namespace

// The first byte says how many records follow that are sound; so a short input reaches what lies behind the
// sizes.
int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace gradstep;
  static const std::string folder = make_folder();
  if (size == 0) return 0;
  {
    std::ofstream file(folder + "/test_batch.bin", std::ios::binary | std::ios::trunc);
    const std::string record(3073, '\1');
    for (int i = 0; i < bytes[0] % 4; ++i) file << record;
    file << fuzz::text_of(bytes + 1, size - 1);
  }
  fuzz::taken([] {
    const auto dataset = load_cifar10(folder, Split::kEval);
    fuzz::require(dataset->size() > 0, "a data set without samples");
  });
  return 0;
}

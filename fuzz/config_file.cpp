// Fuzz target: a TOML config file. Settings that are taken survive the resolved file they are written to.
#include "config/config_file.h"

#include "app/train_config.h"
#include "fuzz.h"
#include "support/gradstep_program.h"

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace gradstep;
  static const fuzz::MemoryFile file("config");
  file.set(bytes, size);
  const auto resolve = [](RunSettings& settings) {
    (void)resolve_train_settings({}, {{"GRADSTEP_CONFIG", file.path()}}, settings);
  };
  RunSettings settings(program().catalog);
  if (!fuzz::taken([&] { resolve(settings); }, fuzz::Quotes::kInput)) return 0;
  const std::string resolved = settings.toml({});
  file.set(resolved);
  RunSettings again(program().catalog);
  resolve(again);
  fuzz::require(again.toml({}) == resolved, "the resolved config.toml reads back to other settings");
  return 0;
}

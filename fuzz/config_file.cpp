// Fuzz target: a TOML config file. Settings that are taken survive the resolved file they are written to.
#include "cli/config_file.h"

#include "cli/train_config.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace gradstep;
  static const fuzz::MemoryFile file("config");
  file.set(bytes, size);
  RunConfig config;
  const auto resolve = [] { return resolve_train_settings({}, {{"GRADSTEP_CONFIG", file.path()}}).config; };
  if (!fuzz::taken([&] { config = resolve(); }, fuzz::Quotes::kInput)) return 0;
  file.set(resolved_config_toml(config, "0.0.0", "unknown"));
  fuzz::require(resolve() == config, "the resolved config.toml reads back to other settings");
  return 0;
}

// no torch
// Only what this program writes there: ".<file>.tmp-<pid>...", as AtomicFile and measure_write_rate name
// them.
#include "checkpoint/leftover.h"

#include <algorithm>
#include <array>

namespace gradstep {

bool is_leftover(std::string_view name) {
  constexpr std::string_view kEnding = ".tmp-";
  constexpr std::array<std::string_view, 6> kFiles{"config.toml",       "rate",
                                                   "best.safetensors",  "best-ema.safetensors",
                                                   "model.safetensors", "model-ema.safetensors"};
  const size_t end = name.rfind(kEnding);
  if (!name.starts_with('.') || end == std::string_view::npos || end == 0) return false;
  const std::string_view process = name.substr(end + kEnding.size());
  if (process.empty() || process.find_first_not_of("0123456789-") != std::string_view::npos) return false;
  const std::string_view file = name.substr(1, end - 1);
  return file.starts_with("blackbox-") || std::ranges::find(kFiles, file) != kFiles.end();
}

}  // namespace gradstep

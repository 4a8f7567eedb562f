// no torch
// Only what this program writes there: ".<file>.tmp-<pid>...", as AtomicFile and measure_write_rate name
// them.
#include "run/leftover.h"

#include <algorithm>
#include <array>

namespace gradstep {

bool is_leftover(std::string_view name) {
  constexpr std::array<std::string_view, 6> kBeginnings{
      ".config.toml.tmp-",       ".rate.tmp-",
      ".best.safetensors.tmp-",  ".best-ema.safetensors.tmp-",
      ".model.safetensors.tmp-", ".model-ema.safetensors.tmp-"};
  return std::ranges::any_of(kBeginnings, [&](std::string_view each) { return name.starts_with(each); });
}

}  // namespace gradstep

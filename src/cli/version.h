// The versions that --version, config.toml and reports name.
#pragma once

#include <string>

namespace gradstep {

[[nodiscard]] std::string gradstep_version();  // "0.1.0"
[[nodiscard]] std::string git_commit();        // of the build; empty: unknown
[[nodiscard]] std::string torch_version();     // of the LibTorch compiled against: "2.13.0"

}  // namespace gradstep

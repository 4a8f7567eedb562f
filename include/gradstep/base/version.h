// Which gradstep this is: for --version, the resolved config and the files a run leaves.
#pragma once

#include <string_view>

namespace gradstep {

// "0.1.0"
[[nodiscard]] std::string_view version();

// The first twelve digits of the git commit that was checked out when the build was configured; "unknown"
// outside a git clone.
[[nodiscard]] std::string_view git_commit();

}  // namespace gradstep

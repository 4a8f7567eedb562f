// Which gradstep this is: macros for the preprocessor, texts for --version, the resolved config and the files
// a run leaves.
#pragma once

#include <string_view>

/// Version of these headers, the first number. docs/versioning.md says what a change of each number means.
/// CMakeLists.txt takes the version from here.
#define GRADSTEP_VERSION_MAJOR 0
/// Version of these headers, the second number.
#define GRADSTEP_VERSION_MINOR 1
/// Version of these headers, the third number.
#define GRADSTEP_VERSION_PATCH 0
/// One number to compare with: 10000 * major + 100 * minor + patch, so 1.2.3 is 10203.
#define GRADSTEP_VERSION \
  (GRADSTEP_VERSION_MAJOR * 10000 + GRADSTEP_VERSION_MINOR * 100 + GRADSTEP_VERSION_PATCH)

namespace gradstep {

/// The version of the library that is linked, such as "0.1.0".
[[nodiscard]] std::string_view version();

/// The first twelve digits of the git commit that was checked out when the build was configured; "unknown"
/// outside a git clone.
[[nodiscard]] std::string_view git_commit();

}  // namespace gradstep

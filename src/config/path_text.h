// Paths as people write them where no shell reads them: config files, variables, --flag=~/path.
// no torch
#pragma once

#include <optional>
#include <string>

namespace gradstep {

// Follows "must be" in error lines.
constexpr char kPathExpectation[] = "a path without $NAME, which only a shell replaces";

// The path with the home folder in place of ~, or of ~user, at its start. Nothing if a part of it begins with
// $ and a letter or {, and no file is there under this name: it was meant to be replaced.
[[nodiscard]] std::optional<std::string> expand_path(const std::string& text);

}  // namespace gradstep

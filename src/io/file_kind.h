// no torch
// What a file of the wrong kind is, by its first bytes: people give a page, a pointer or an archive by
// mistake.
#pragma once

#include <string>
#include <string_view>

namespace gradstep {

// "a Git LFS pointer (run 'git lfs pull')", "an HTML page", "gzip data" and the like; empty: not known.
[[nodiscard]] std::string file_kind(std::string_view head);
// The same of a file, read anew; empty also if it cannot be read.
[[nodiscard]] std::string file_kind_at(const std::string& path);
// ": it is " and the kind; empty if that is not known. For error lines.
[[nodiscard]] std::string file_kind_hint(const std::string& path);

}  // namespace gradstep

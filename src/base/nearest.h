// The known name that a misspelt one probably meant.
#pragma once

#include <string>
#include <vector>

namespace gradstep {

// The number of insertions, deletions, replacements and swaps of neighbours that turn one into the other.
[[nodiscard]] size_t edit_distance(const std::string& a, const std::string& b);

// The first of the names with the smallest distance; empty where even that one has little in common with
// `name`.
[[nodiscard]] std::string nearest(const std::string& name, const std::vector<std::string>& known);

// "; did you mean X?", or empty.
[[nodiscard]] std::string did_you_mean(const std::string& name, const std::vector<std::string>& known);

// For a short list: "; did you mean X? Known are A, B, C", or "; known are A, B, C" where nothing is near.
[[nodiscard]] std::string known_names(const std::string& name, const std::vector<std::string>& known);

}  // namespace gradstep

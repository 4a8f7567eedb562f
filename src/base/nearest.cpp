// Edit distance (optimal string alignment) over a short list of names.
// no torch
#include "base/nearest.h"

#include <algorithm>

namespace gradstep {

size_t edit_distance(const std::string& a, const std::string& b) {
  // rows[i][j]: distance of the first i characters of a from the first j of b.
  std::vector<std::vector<size_t>> rows(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) rows[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) rows[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = rows[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      rows[i][j] = std::min({replaced, rows[i - 1][j] + 1, rows[i][j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
      }
    }
  }
  return rows[a.size()][b.size()];
}

std::string nearest(const std::string& name, const std::vector<std::string>& known) {
  constexpr size_t kMostLetters = 100;  // of any name
  std::string best;
  if (name.size() > kMostLetters) return best;
  // A third of the letters may be wrong, and two in a short name.
  size_t limit = std::max<size_t>(2, name.size() / 3);
  for (const std::string& candidate : known) {
    // Of a name with more letters some are usually just missing: "--warmup" for "--warmup-steps".
    const bool is_start = name.size() > 3 && candidate.rfind(name, 0) == 0;
    const size_t distance = is_start ? 1 : edit_distance(name, candidate);
    if (distance < limit || (distance == limit && best.empty())) {
      best = candidate;
      limit = distance;
    }
  }
  return best;
}

std::string did_you_mean(const std::string& name, const std::vector<std::string>& known) {
  const std::string best = nearest(name, known);
  return best.empty() ? "" : "; did you mean " + best + "?";
}

std::string known_names(const std::string& name, const std::vector<std::string>& known) {
  const std::string hint = did_you_mean(name, known);
  std::string text = hint.empty() ? "; known are " : hint + " Known are ";
  for (size_t i = 0; i < known.size(); ++i) text += (i == 0 ? "" : ", ") + known[i];
  return text;
}

}  // namespace gradstep

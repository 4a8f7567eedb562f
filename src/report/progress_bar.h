// bar_text: the last line of a terminal, redrawn in place.
#pragma once

#include <cstdint>
#include <string>

namespace gradstep {

struct Progress {
  int64_t done = 0;
  int64_t total = 0;        // 0: unknown
  double seconds_left = 0;  // not finite: unknown
  // Behind the numbers, dropped first where the line is narrow: "loss 0.51 | 130000 samples/s".
  std::string note{};
};

// One line of at most `columns` characters: " 34% [=====>      ] 478/1407 | 0:12 left | note". Parts that do
// not fit are left out, the note first, then the bar.
[[nodiscard]] std::string bar_text(const Progress& progress, int columns);

}  // namespace gradstep

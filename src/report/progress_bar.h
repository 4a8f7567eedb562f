// bar_text and BarLine: a progress bar in the last line of a terminal, redrawn in place.
#pragma once

#include <cstdint>
#include <string>

namespace gradstep {

struct Progress {
  std::string name{};  // before everything else: "train-images.gz"
  int64_t done = 0;
  int64_t total = 0;        // 0: unknown
  double seconds_left = 0;  // not finite: unknown
  std::string count{};      // in place of done and total: "1.2 of 26.4 MB"
  // After the numbers; dropped first if the line is narrow: "loss 0.51 | 130000 samples/s".
  std::string note{};
};

// One line of at most `columns` characters: " 34% [=====>      ] 478/1407 | 0:12 left | note". Parts that do
// not fit are left out, the note first, then the bar.
[[nodiscard]] std::string bar_text(const Progress& progress, int columns);

// Knows what the last line of the terminal shows. Its functions return what to write there, in one piece, so
// that nothing flickers.
class BarLine {
 public:
  // Shows `bar` in place of the one before.
  [[nodiscard]] std::string show(const std::string& bar);
  // A line takes the place of the bar, which moves below it.
  [[nodiscard]] std::string print(const std::string& line);
  // Takes the bar away.
  [[nodiscard]] std::string erase();

 private:
  std::string bar_;
};

}  // namespace gradstep

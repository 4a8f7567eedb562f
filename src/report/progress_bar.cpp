// Fits percent, bar, count, time left and a note into the width of a terminal.
// no torch
#include "report/progress_bar.h"

#include <algorithm>
#include <cmath>

#include "report/format.h"

namespace gradstep {
namespace {

constexpr int kNarrowestBar = 10;
constexpr int kWidestBar = 30;

std::string drawn_bar(double part, int cells) {
  const int filled = static_cast<int>(part * cells);
  std::string bar(static_cast<size_t>(filled), '=');
  if (filled < cells) bar += '>';
  bar.resize(static_cast<size_t>(cells), ' ');
  return "[" + bar + "] ";
}

}  // namespace

std::string bar_text(const Progress& progress, int columns) {
  const auto width = static_cast<size_t>(std::max(columns, 0));
  const double part =
      progress.total > 0
          ? std::clamp(static_cast<double>(progress.done) / static_cast<double>(progress.total), 0.0, 1.0)
          : 0;
  std::string head = progress.name.empty() ? "" : progress.name + " ";
  std::string tail = std::to_string(progress.done);
  if (progress.total > 0) {
    const int percent = static_cast<int>(part * 100);
    if (percent < 100) head += ' ';
    if (percent < 10) head += ' ';
    head += std::to_string(percent) + "% ";
    const std::string total = std::to_string(progress.total);
    // As wide as its final value, so that the text around it does not move.
    tail.insert(tail.begin(), total.size() - std::min(total.size(), tail.size()), ' ');
    tail += "/" + total;
    if (!progress.count.empty()) tail = progress.count;
    if (std::isfinite(progress.seconds_left)) tail += " | " + duration_text(progress.seconds_left) + " left";
  } else {
    tail = progress.count.empty() ? tail + " updates" : progress.count;
  }
  const size_t bare = head.size() + tail.size();
  const size_t note = progress.note.empty() ? 0 : progress.note.size() + 3;
  const bool has_bar = progress.total > 0 && bare + kNarrowestBar + 3 <= width;
  const bool has_note = note > 0 && bare + note + (progress.total > 0 ? kNarrowestBar + 3 : 0) <= width;
  std::string text = head;
  if (has_bar) {
    const auto room = static_cast<int>(width - bare - (has_note ? note : 0)) - 3;
    text += drawn_bar(part, std::min(room, kWidestBar));
  }
  text += tail;
  if (has_note) text += " | " + progress.note;
  return text.substr(0, width);
}

std::string BarLine::show(const std::string& bar) {
  std::string text = "\r" + bar;
  if (bar_.size() > bar.size()) text.append(bar_.size() - bar.size(), ' ');
  bar_ = bar;
  return text;
}

std::string BarLine::print(const std::string& line) {
  const std::string bar = bar_;
  const std::string text = erase() + line + "\n";
  return bar.empty() ? text : text + show(bar);
}

std::string BarLine::erase() {
  if (bar_.empty()) return "";
  std::string text(bar_.size() + 2, ' ');
  text.front() = text.back() = '\r';
  bar_.clear();
  return text;
}

}  // namespace gradstep

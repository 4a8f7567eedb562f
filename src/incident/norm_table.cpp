// no torch
// The lines that a person reads about a black box.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/number_text.h"
#include "incident/black_box.h"

namespace gradstep {
namespace {

constexpr size_t kMaxIds = 32;  // shown; more are cut in the middle

std::string line(const char* name, const std::string& value) {
  char head[32];
  std::snprintf(head, sizeof head, "%-14s ", name);
  return head + value + "\n";
}

// Six digits; not finite as in metrics.jsonl.
std::string rounded(double value) {
  if (const std::string_view words = not_finite_text(value); !words.empty()) return std::string(words);
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

std::string ids_text(const std::vector<int64_t>& ids) {
  std::string text;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids.size() > kMaxIds && i == kMaxIds / 2) {
      text += " ... (" + std::to_string(ids.size() - kMaxIds) + " more) ...";
      i = ids.size() - kMaxIds / 2;
    }
    text += (text.empty() ? "" : " ") + std::to_string(ids[i]);
  }
  return text;
}

std::string scale_text(const BlackBox& box) {
  std::string text = shortest(box.loss_scale);
  if (box.scale_history.empty()) return text;
  text += "; history:";
  for (const auto& [window, scale] : box.scale_history) {
    const bool first = &scale == &box.scale_history.front().second;
    text += (first ? " " : ", ") + shortest(scale) + " from window " + std::to_string(window);
  }
  return text;
}

// Forward the fault runs down the table, backward it runs up.
size_t first_bad(const std::vector<ModuleNorms>& modules) {
  for (size_t i = 0; i < modules.size(); ++i) {
    if (!std::isfinite(modules[i].forward)) return i;
  }
  for (size_t i = modules.size(); i-- > 0;) {
    if (modules[i].num_bad > 0) return i;
  }
  return modules.size();
}

std::string modules_text(const std::vector<ModuleNorms>& modules) {
  const auto name_of = [](const ModuleNorms& module) {
    return module.module.empty() ? std::string("(root)") : module.module;
  };
  size_t width = 6;
  for (const ModuleNorms& module : modules) width = std::max(width, name_of(module).size());
  const auto row = [width](std::string name, const std::string& forward, const std::string& backward,
                           const std::string& bad) {
    name.resize(width, ' ');
    char cells[96];
    std::snprintf(cells, sizeof cells, "  %14s  %14s  %10s", forward.c_str(), backward.c_str(), bad.c_str());
    return name + cells;
  };
  std::string text = row("module", "forward norm", "backward norm", "bad values") + "\n";
  const size_t marked = first_bad(modules);
  for (size_t i = 0; i < modules.size(); ++i) {
    text += row(name_of(modules[i]), rounded(modules[i].forward), rounded(modules[i].backward),
                std::to_string(modules[i].num_bad)) +
            (i == marked ? "  <- first\n" : "\n");
  }
  return text;
}

}  // namespace

std::string format_norm_table(const BlackBox& box) {
  std::string text = line("window", std::to_string(box.window) + " (epoch " + std::to_string(box.epoch) +
                                        ", after update " + std::to_string(box.update) + ")");
  text += line("cause", box.cause);
  if (!box.first_non_finite.empty()) text += line("began at", box.first_non_finite);
  text += line("loss", rounded(box.loss) + ", gradient norm " + rounded(box.grad_norm));
  text += line("loss scale", scale_text(box));
  text += line("precision", to_string(box.precision) + " (" + to_string(box.matmul) + "), seed " +
                                std::to_string(box.seed) + ", rank " + std::to_string(box.rank));
  text += line("samples", std::to_string(box.ids.size()) + " in micro-batches of " +
                              std::to_string(box.micro_batch) + ": " + ids_text(box.ids));
  return text + "\n" + modules_text(box.modules);
}

}  // namespace gradstep

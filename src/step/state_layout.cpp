// The layout as texts, which are what the error shows.
#include "step/state_layout.h"

#include <ATen/core/Tensor.h>

#include <algorithm>

#include "gradstep/base/error.h"
#include "io/shape_text.h"
#include "io/storable.h"

namespace gradstep {
namespace {

std::vector<std::string> layout_of(const Optimizer& optimizer) {
  const NamedTensors state = optimizer.state();
  const std::string fault = why_not_restorable(state);
  if (!fault.empty()) throw ConfigError("engine: the optimizer's state " + fault + " in its state()");
  std::vector<std::string> texts;
  for (const auto& [name, tensor] : state)
    texts.push_back(name + " " + c10::toString(tensor.scalar_type()) + " " + shape_text(tensor.sizes()));
  return texts;
}

}  // namespace

StateLayout::StateLayout(const Optimizer& optimizer) : tensors_(layout_of(optimizer)) {}

void StateLayout::require_unchanged(const Optimizer& optimizer) const {
  const std::vector<std::string> now = layout_of(optimizer);
  for (size_t i = 0; i < std::max(now.size(), tensors_.size()); ++i) {
    const auto shown = [i](const std::vector<std::string>& texts) {
      return i < texts.size() ? texts[i] : std::string("missing");
    };
    if (shown(now) == shown(tensors_)) continue;
    throw ConfigError("engine: tensor " + std::to_string(i + 1) + " of the optimizer's state is " +
                      shown(now) + ", and was " + shown(tensors_) +
                      " at the start, so that no checkpoint can be restored; let its state() give the same "
                      "names, types and shapes at each call");
  }
}

}  // namespace gradstep

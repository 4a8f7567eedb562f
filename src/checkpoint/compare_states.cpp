// compare_states: tensors bit by bit, then everything else that resume brings back.
#include <ATen/ATen.h>

#include <cmath>
#include <cstring>
#include <map>

#include "base/number_text.h"
#include "gradstep/checkpoint/checkpoint.h"
#include "io/shape_text.h"

namespace gradstep {
namespace {

std::string shape_of(const at::Tensor& tensor) {
  return std::string(c10::toString(tensor.scalar_type())) + " " + shape_text(tensor.sizes());
}

// Elements as whole numbers of their bits, in one row.
at::Tensor bits(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.flatten();
  switch (flat.element_size()) {
    case 1:
      return flat.view(at::kChar);
    case 2:
      return flat.view(at::kShort);
    case 4:
      return flat.view(at::kInt);
    default:
      return flat.view(at::kLong);
  }
}

// Empty: the same. NaN equals NaN; 0 differs from -0.
std::string tensor_difference(const at::Tensor& first, const at::Tensor& second) {
  const at::Tensor a = first.detach().to(at::kCPU).contiguous();
  const at::Tensor b = second.detach().to(at::kCPU).contiguous();
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes()) {
    return shape_of(a) + " and " + shape_of(b);
  }
  if (a.numel() == 0 || std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0) return {};
  const at::Tensor x = a.flatten().to(a.is_complex() ? at::kComplexDouble : at::kDouble);
  const at::Tensor y = b.flatten().to(b.is_complex() ? at::kComplexDouble : at::kDouble);
  const at::Tensor both_nan = at::isnan(x).logical_and(at::isnan(y));
  const at::Tensor places = at::ne(bits(a), bits(b)).logical_and(both_nan.logical_not()).nonzero().flatten();
  if (places.numel() == 0) return {};
  std::string text = std::to_string(places.numel()) + " of " + std::to_string(a.numel()) +
                     " values, the first at " + std::to_string(places[0].item<int64_t>());
  if (a.is_complex()) return text;
  const double largest = (x - y).index({places}).abs().max().item<double>();
  return text + ": " + shortest(x[places[0]].item().toDouble()) + " and " +
         shortest(y[places[0]].item().toDouble()) + ", at most " + shortest(largest) + " apart";
}

class Differences {
 public:
  void tensors(const std::string& kind, const NamedTensors& a, const NamedTensors& b) {
    const std::map<std::string, at::Tensor> others(b.begin(), b.end());
    const std::map<std::string, at::Tensor> ours(a.begin(), a.end());
    for (const auto& [name, tensor] : a) {
      const auto other = others.find(name);
      if (other == others.end()) {
        add(kind + " " + name, "only in the first");
      } else if (const std::string text = tensor_difference(tensor, other->second); !text.empty()) {
        add(kind + " " + name, text);
      }
    }
    bool same_names = a.size() == b.size();
    for (const auto& [name, tensor] : b) {
      if (ours.contains(name)) continue;
      add(kind + " " + name, "only in the second");
      same_names = false;
    }
    for (size_t i = 0; same_names && i < a.size(); ++i) {
      if (a[i].first == b[i].first) continue;
      add(kind + " order", "tensor " + std::to_string(i + 1) + ": " + a[i].first + " and " + b[i].first);
      return;
    }
  }
  void value(const std::string& what, const std::string& a, const std::string& b) {
    if (a != b) add(what, a + " and " + b);
  }
  void value(const std::string& what, int64_t a, int64_t b) {
    value(what, std::to_string(a), std::to_string(b));
  }
  void value(const std::string& what, double a, double b) { value(what, shortest(a), shortest(b)); }
  void texts(const std::string& kind, const std::map<std::string, std::string>& a,
             const std::map<std::string, std::string>& b) {
    for (const auto& [key, text] : a) {
      const auto other = b.find(key);
      if (other == b.end()) {
        add(kind + " " + key, "only in the first");
      } else {
        value(kind + " " + key, text, other->second);
      }
    }
    for (const auto& [key, text] : b) {
      if (!a.contains(key)) add(kind + " " + key, "only in the second");
    }
  }
  // Lists of anything that text() makes comparable.
  template <class Items, class Text>
  void list(const std::string& what, const Items& a, const Items& b, Text text) {
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      if (text(a[i]) == text(b[i])) continue;
      return add(what, "item " + std::to_string(i) + ": " + text(a[i]) + " and " + text(b[i]));
    }
    if (a.size() != b.size())
      add(what, std::to_string(a.size()) + " and " + std::to_string(b.size()) + " items");
  }
  std::vector<StateDifference> take() { return std::move(found_); }

 private:
  void add(const std::string& what, const std::string& detail) { found_.push_back({what, detail}); }

  std::vector<StateDifference> found_;
};

void compare_engines(Differences& found, const EngineState& a, const EngineState& b) {
  found.value("engine windows", a.counters.windows, b.counters.windows);
  found.value("engine updates", a.counters.updates, b.counters.updates);
  found.value("engine skipped_total", a.counters.skipped_total, b.counters.skipped_total);
  found.value("engine skips_in_a_row", a.counters.skips_in_a_row, b.counters.skips_in_a_row);
  found.value("engine loss_scale", a.loss_scale, b.loss_scale);
  found.value("engine num_good_updates", a.num_good_updates, b.num_good_updates);
  found.value("engine micro_batch", a.micro_batch, b.micro_batch);
  found.value("engine first_non_finite", a.first_non_finite, b.first_non_finite);
  found.list("spikes losses", a.spikes.losses, b.spikes.losses, shortest);
  found.list("spikes grad_norms", a.spikes.grad_norms, b.spikes.grad_norms, shortest);
}

std::string text_of(const std::optional<EvalRow>& row) {
  if (!row) return "none";
  std::string text = "update " + std::to_string(row->update) + " epoch " + std::to_string(row->epoch);
  for (const MetricValue& each : row->named_values()) text += " " + each.name + " " + shortest(each.value);
  text += " samples " + std::to_string(row->samples);
  return text + (row->best ? " best" : "");
}

}  // namespace

std::vector<StateDifference> compare_states(const TrainState& a, const TrainState& b) {
  Differences found;
  found.tensors("model", a.model, b.model);
  found.tensors("optimizer", a.optimizer, b.optimizer);
  found.tensors("ema", a.ema, b.ema);
  found.tensors("user", a.user.tensors, b.user.tensors);
  found.texts("user value", a.user.values, b.user.values);
  compare_engines(found, a.engine, b.engine);
  found.value("next epoch", a.next.epoch, b.next.epoch);
  found.value("next index", a.next.index, b.next.index);
  found.value("next number", a.next.number, b.next.number);
  found.value("progress samples", a.samples, b.samples);
  // Intervals of the clock depend on the machine's mood, and other intervals count otherwise.
  const auto comparable = [](const Interval& first, const Interval& second) {
    return first == second && first.unit != Interval::Unit::kSeconds;
  };
  if (comparable(a.eval_interval, b.eval_interval))
    found.value("progress evals_due", a.evals_due, b.evals_due);
  if (comparable(a.save_interval, b.save_interval))
    found.value("progress saves_due", a.saves_due, b.saves_due);
  found.value("progress num_rollbacks", a.num_rollbacks, b.num_rollbacks);
  found.value("progress evals_without_best", a.evals_without_best, b.evals_without_best);
  found.list("stepped_over", a.stepped_over, b.stepped_over, [](const SteppedOver& each) {
    return "window " + std::to_string(each.window) + " loss " + shortest(each.loss) + " grad_norm " +
           shortest(each.grad_norm);
  });
  found.list("scale_history", a.scale_history, b.scale_history, [](const auto& each) {
    return "window " + std::to_string(each.first) + " scale " + shortest(each.second);
  });
  found.value("last_eval", text_of(a.last_eval), text_of(b.last_eval));
  found.value("best_eval", text_of(a.best_eval), text_of(b.best_eval));
  found.value("run world_size", a.world_size, b.world_size);
  found.value("run global_batch", a.global_batch, b.global_batch);
  found.value("run total_updates", a.total_updates, b.total_updates);
  found.value("run dataset_fingerprint", a.dataset_fingerprint, b.dataset_fingerprint);
  return found.take();
}

}  // namespace gradstep

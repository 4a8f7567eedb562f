// Runs a bad window again under an observer, and brings together what the ranks saw.
#include "step/second_look.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "dist/over_ranks.h"
#include "model/mode_guard.h"
#include "step/engine_impl.h"
#include "step/non_finite.h"
#include "step/window_weight.h"

namespace gradstep {
namespace {

// How much a rank has to tell: most if it found the place, less if its look came to nothing, else as much as
// its gradients are large.
double weight_of(const Examination& own) {
  constexpr double kMost = std::numeric_limits<double>::infinity();
  constexpr double kFailed = 1e300;
  if (!own.first_non_finite.empty()) return own.modules.empty() ? kFailed : kMost;
  double squares = 0;
  for (const ModuleNorms& module : own.modules) squares += module.backward * module.backward;
  return squares < kFailed ? std::sqrt(squares) : std::sqrt(kFailed);
}

// Texts that end in a NUL each, and the numbers behind them.
std::string texts_of(const Examination& seen) {
  std::string texts = seen.first_non_finite + '\0';
  for (const ModuleNorms& module : seen.modules) texts += module.module + '\0';
  return texts;
}

std::string numbers_of(const Examination& seen) {
  std::string bytes;
  for (const ModuleNorms& module : seen.modules) {
    const double numbers[] = {module.forward, module.backward, static_cast<double>(module.num_bad)};
    bytes.append(reinterpret_cast<const char*>(numbers), sizeof numbers);
  }
  return bytes;
}

Examination from(const std::string& texts, const std::string& numbers) {
  Examination seen;
  size_t begin = texts.find('\0') + 1;
  seen.first_non_finite = texts.substr(0, begin - 1);
  for (size_t at = 0; begin < texts.size(); at += 3 * sizeof(double)) {
    const size_t end = texts.find('\0', begin);
    double values[3];
    std::memcpy(values, numbers.data() + at, sizeof values);
    seen.modules.push_back({.module = texts.substr(begin, end - begin),
                            .forward = values[0],
                            .backward = values[1],
                            .num_bad = static_cast<int64_t>(values[2])});
    begin = end + 1;
  }
  return seen;
}

// Another value while it lives.
class Meanwhile {
 public:
  Meanwhile(int64_t& place, int64_t value) : place_(place), before_(std::exchange(place, value)) {}
  ~Meanwhile() { place_ = before_; }
  Meanwhile(const Meanwhile&) = delete;
  Meanwhile& operator=(const Meanwhile&) = delete;

 private:
  int64_t& place_;
  const int64_t before_;
};

}  // namespace

Examination share_examination(Examination own, c10::Device device, World& world) {
  if (world.size() == 1) return own;
  const std::vector<double> weights = gather(weight_of(own), device, world);
  const int64_t rank = std::ranges::max_element(weights) - weights.begin();  // the lowest of equals
  const std::string texts = broadcast_bytes(texts_of(own), rank, device, world);
  Examination seen = from(texts, broadcast_bytes(numbers_of(own), rank, device, world));
  seen.rank = rank;
  return seen;
}

// With the scale and divisor that step() had. The snapshot is made already; the caller goes back to it. Talks
// to no other rank.
Examination Engine::Impl::examine_as(const Window& window, double loss_scale, double divisor) {
  zero_grad();
  NamedTensors watched = optimizer.parameters();
  watched.insert(watched.end(), parameters.frozen.begin(), parameters.frozen.end());
  Examination seen;
  Passes passes;
  {
    const NonFiniteFinder finder(watched);
    passes = accumulate(window, loss_scale / divisor, nullptr, {});
    if (passes.status == SyncStatus::kComplete)
      seen = {.first_non_finite = finder.first(), .modules = finder.modules(loss_scale)};
  }
  zero_grad();
  if (passes.error) std::rethrow_exception(passes.error);
  if (passes.status == SyncStatus::kOutOfMemory)
    return {.first_non_finite = "not known: there was no memory for a second look"};
  return seen;
}

Examination Engine::Impl::look_together(const Window& window, const StepReport& report) {
  Examination own;
  try {
    own = examine_as(window, report.loss_scale, report.divisor);
  } catch (...) {  // of the task
    own.first_non_finite = "not known: the second look failed";
  }
  zero_grad();
  return share_examination(std::move(own), device, world);
}

Examination Engine::Impl::examine(const Window& window, double loss_scale, double divisor) {
  if (divisor == 0) return {};
  std::optional<ModeGuard> training;
  if (!task.module->is_training()) training.emplace(*task.module, true);
  snapshot.save();
  Examination seen;
  try {
    seen = examine_as(window, loss_scale, divisor);
  } catch (...) {
    drop();
    throw;
  }
  drop();
  return seen;
}

Examination Engine::examine(const Window& window, std::optional<double> divisor) {
  if (!divisor)
    divisor = window_weight(impl_->task, window, impl_->counters.windows + 1, impl_->device, impl_->world);
  return impl_->examine(window, impl_->host_scale, *divisor);
}

Examination Engine::examine(const Window& window, const StepReport& report) {
  // The seed and the pieces of the window follow from these two.
  const Meanwhile windows(impl_->counters.windows, report.window - 1);
  const Meanwhile micro_batch(impl_->micro_batch, report.micro_batch);
  return impl_->examine(window, report.loss_scale, report.divisor);
}

}  // namespace gradstep

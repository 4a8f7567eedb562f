// The file is a model file with one metadata key more.
#include "incident/black_box.h"

#include <torch/torch.h>

#include <algorithm>
#include <bit>

#include "base/number_text.h"
#include "checkpoint/model_metadata.h"
#include "gradstep/base/error.h"
#include "gradstep/checkpoint/model_file.h"
#include "incident/black_box_json.h"
#include "step/non_finite.h"

namespace gradstep {
namespace {

constexpr const char* kKey = "gradstep.black_box";

// This rank by itself: an examination needs nothing of the others but the divisor, which the box has.
class OneOfWorld final : public World {
 public:
  explicit OneOfWorld(int64_t rank) : rank_(rank) {}
  [[nodiscard]] int64_t rank() const override { return rank_; }
  [[nodiscard]] int64_t size() const override { return 1; }
  void all_reduce_sum(at::Tensor&) override {}
  void broadcast(at::Tensor&, int64_t) override {}

 private:
  int64_t rank_;
};

bool same(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b) || (std::isnan(a) && std::isnan(b));
}

std::string change(const char* what, double now, double then) {
  return std::string(what) + " " + shortest(now) + ", recorded " + shortest(then);
}

// What differs about one module; empty: nothing.
std::string difference(const ModuleNorms& now, const ModuleNorms& then) {
  if (now.module != then.module) return "it is " + now.module + " now";
  if (!same(now.forward, then.forward)) return change("forward norm", now.forward, then.forward);
  if (!same(now.backward, then.backward)) return change("backward norm", now.backward, then.backward);
  if (now.num_bad != then.num_bad)
    return "bad values " + std::to_string(now.num_bad) + ", recorded " + std::to_string(then.num_bad);
  return {};
}

// All but the tensors. A run of no recipe records none.
BlackBox parsed(const std::string& path, const std::map<std::string, std::string>& metadata) {
  const auto found = metadata.find(kKey);
  if (found == metadata.end()) {
    throw CheckpointError(
        path + ": no \"" + kKey +
        "\" in its metadata: not a black box of gradstep; give the file that a run left when "
        "an update went wrong");
  }
  BlackBox box;
  box.info = model_info_or_none(path, metadata);
  read_black_box_json(path, found->second, box);
  return box;
}

}  // namespace

BlackBox make_black_box(Engine& engine, const Window& window, const StepReport& report, int64_t rank) {
  BlackBox box{.window = report.window,
               .update = report.update,
               .epoch = report.epoch,
               .outcome = report.outcome,
               .cause = report.spike ? to_string(*report.spike) : kNotFinite,
               .first_non_finite = report.first_non_finite,
               .modules = report.modules,
               .rank = rank,
               .total_samples = report.samples,
               .divisor = report.divisor,
               .model = model_tensors(*engine.task().module),
               .engine = engine.state(),
               .loss = report.loss,
               .grad_norm = report.grad_norm,
               .loss_scale = report.loss_scale,
               .micro_batch = report.micro_batch,
               .precision = engine.options().precision,
               .matmul = current_matmul(),
               .seed = engine.options().seed};
  for (const auto& [name, tensor] : engine.frozen()) box.frozen.push_back(name);
  if (window.ids.defined()) {
    const at::Tensor ids = window.ids.cpu().contiguous();
    box.ids.assign(ids.const_data_ptr<int64_t>(), ids.const_data_ptr<int64_t>() + ids.numel());
  }
  // As it was before the window.
  box.engine.counters.windows = report.window - 1;
  box.engine.counters.skipped_total -= 1;
  box.engine.counters.skips_in_a_row -= 1;
  box.engine.loss_scale = report.loss_scale;
  box.engine.micro_batch = report.micro_batch;
  if (box.modules.empty()) {
    Examination seen = engine.examine(window, report);
    box.modules = std::move(seen.modules);
    if (box.first_non_finite.empty()) box.first_non_finite = std::move(seen.first_non_finite);
  }
  return box;
}

void write_black_box(FileSystem& file_system, const std::string& path, const BlackBox& box) {
  std::map<std::string, std::string> metadata = model_metadata(box.info);
  metadata[kKey] = black_box_json(box);
  (void)parsed(path, metadata);  // what our own reader refuses is worth nothing
  write_safetensors(file_system, path, box.model, metadata);
}

BlackBox read_black_box(const std::string& path) {
  SafetensorsFile file = read_safetensors(path);
  BlackBox box = parsed(path, file.metadata);
  box.model = std::move(file.tensors);
  return box;
}

Examination replay(const BlackBox& box, Task task, const Dataset& train) {
  for (const int64_t id : box.ids) {
    if (id < 0 || id >= train.size()) {
      throw CheckpointError("sample " + std::to_string(id) +
                            " of the black box is not in the data set, which has " +
                            std::to_string(train.size()) + "; give the data that the run had");
    }
  }
  OneOfWorld world(box.rank);
  for (auto& parameter : task.module->named_parameters()) {
    if (std::ranges::find(box.frozen, parameter.key()) != box.frozen.end())
      parameter.value().requires_grad_(false);
  }
  Engine engine(std::move(task),
                {.optimizer = {.kind = OptimizerKind::kSgd, .momentum = 0},
                 .schedule = {.shape = LrShape::kConstant},
                 .precision = box.precision,
                 .micro_batch = box.micro_batch,
                 .seed = box.seed},
                world);
  engine.restore(box.engine);
  Window window;
  window.ids = at::tensor(box.ids, at::kLong);
  window.position.epoch = box.epoch;
  window.batch = train.gather(window.ids, {.seed = box.seed, .epoch = box.epoch, .training = true});
  window.total_samples = box.total_samples;
  Examination again = engine.examine(window, box.divisor);
  if (again.first_non_finite.empty() && box.outcome == StepOutcome::kNotFinite)
    again.first_non_finite = kNotFiniteInTheSum;
  return again;
}

RecordComparison compare_with_recorded(const BlackBox& box, const Examination& again) {
  if (again.modules.size() != box.modules.size()) {
    return {.same = false,
            .text = "differs: " + std::to_string(again.modules.size()) + " modules, recorded " +
                    std::to_string(box.modules.size())};
  }
  for (size_t i = 0; i < box.modules.size(); ++i) {
    const std::string what = difference(again.modules[i], box.modules[i]);
    if (!what.empty())
      return {.same = false, .text = "differs in module " + box.modules[i].module + ": " + what};
  }
  if (again.first_non_finite != box.first_non_finite)
    return {.same = false,
            .text = "differs: began at " + again.first_non_finite + ", recorded " + box.first_non_finite};
  return {.same = true, .text = "same as recorded"};
}

}  // namespace gradstep

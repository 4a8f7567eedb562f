// no torch
// state.json: one function a part, writer and reader of each together.
#include "checkpoint/state_json.h"

#include <limits>
#include <optional>

#include "base/number_text.h"
#include "checkpoint/manifest.h"
#include "gradstep/base/error.h"
#include "gradstep/checkpoint/checkpoint.h"
#include "io/safetensors_header.h"
#include "io/safetensors_image.h"
#include "report/row_json.h"

namespace gradstep {
namespace {

// Far beyond any run; index times batch does not overflow.
constexpr int64_t kMaxCount = int64_t{1} << 48;
constexpr int64_t kMaxBatch = int64_t{1} << 31;

template <class Fill>
std::string object_text(Fill fill) {
  std::string text;
  JsonLine line(text);
  fill(line);
  line.close();
  return text;
}

template <class Items, class Format>
std::string list_text(const Items& items, Format format) {
  std::string text = "[";
  for (const auto& item : items) text += (text.size() == 1 ? "" : ",") + format(item);
  return text + "]";
}

// The outermost object: each key on a line of its own.
class Document {
 public:
  void add(const std::string& key, const std::string& json) {
    text_ += (text_.empty() ? "{\n\"" : ",\n\"") + key + "\":" + json;
  }
  template <class Fill>
  void add_object(const std::string& key, Fill fill) {
    add(key, object_text(fill));
  }
  [[nodiscard]] std::string take() { return text_ + "\n}\n"; }

 private:
  std::string text_;
};

void add_engine(Document& document, const EngineState& engine) {
  document.add("engine", engine_json(engine));
  document.add_object("spikes", [&](JsonLine& line) {
    line.add("losses", engine.spikes.losses);
    line.add("grad_norms", engine.spikes.grad_norms);
  });
}

SpikeHistory read_spikes(const JsonObject& document) {
  const JsonObject spikes = document.object("spikes");
  SpikeHistory history{.losses = spikes.finites("losses"), .grad_norms = spikes.finites("grad_norms")};
  if (history.losses.size() != history.grad_norms.size())
    spikes.fail("grad_norms", "expected as many as losses");
  return history;
}

std::string eval_text(const std::optional<EvalRow>& row) {
  if (!row) return "null";
  return object_text([&](JsonLine& line) {
    line.add("update", row->update);
    line.add("epoch", row->epoch);
    add_eval_values(line, *row, /*averaged=*/false);
    line.add("samples", row->samples);
    line.add("time_eval", row->time_eval);
    line.add("best", row->best);
    add_eval_values(line, *row, /*averaged=*/true);
  });
}

std::optional<EvalRow> read_eval(const JsonObject& document, const std::string& key) {
  const std::optional<JsonObject> row = document.object_or_null(key);
  if (!row) return std::nullopt;
  EvalRow result{.update = row->integer("update"),
                 .epoch = row->integer("epoch"),
                 .val_loss = row->real("val_loss"),
                 .samples = row->integer("samples"),
                 .time_eval = row->real("time_eval"),
                 .best = row->boolean("best")};
  for (const std::string& name : row->keys()) {
    if (name.starts_with("val_") || name.starts_with("ema_val_")) result.set_value(name, row->real(name));
  }
  return result;
}

void add_lists(Document& document, const TrainState& state) {
  document.add("stepped_over", list_text(state.stepped_over, [](const SteppedOver& each) {
                 return object_text([&](JsonLine& line) {
                   line.add("window", each.window);
                   line.add("loss", each.loss);
                   line.add("grad_norm", each.grad_norm);
                 });
               }));
  document.add("scale_history", list_text(state.scale_history, [](const auto& each) {
                 return object_text([&](JsonLine& line) {
                   line.add("window", each.first);
                   line.add("loss_scale", each.second);
                 });
               }));
}

void read_lists(const JsonObject& document, TrainState& state) {
  for (const JsonObject& each : document.objects("stepped_over")) {
    state.stepped_over.push_back({each.integer("window"), each.real("loss"), each.real("grad_norm")});
  }
  for (const JsonObject& each : document.objects("scale_history")) {
    state.scale_history.emplace_back(each.integer("window"), each.finite("loss_scale"));
  }
}

std::string tensors_text(const NamedTensors& tensors) {
  return list_text(tensor_specs(tensors), [](const TensorSpec& spec) {
    return "\n" + object_text([&](JsonLine& line) {
             line.add("name", spec.name);
             line.add("dtype", spec.dtype);
             line.add("shape", spec.shape);
           });
  });
}

std::vector<TensorSpec> read_tensors(const JsonObject& document, const std::string& key) {
  std::vector<TensorSpec> specs;
  for (const JsonObject& each : document.objects(key)) {
    specs.push_back({each.text("name"), each.text("dtype"), each.integers("shape")});
    if (safetensors_dtype_size(specs.back().dtype) == 0) each.fail("dtype", "an unknown type");
  }
  return specs;
}

}  // namespace

std::string engine_json(const EngineState& engine) {
  return object_text([&](JsonLine& line) {
    line.add("windows", engine.counters.windows);
    line.add("updates", engine.counters.updates);
    line.add("skipped_total", engine.counters.skipped_total);
    line.add("skips_in_a_row", engine.counters.skips_in_a_row);
    line.add("loss_scale", engine.loss_scale);
    line.add("num_good_updates", engine.num_good_updates);
    line.add("micro_batch", engine.micro_batch);
    line.add("first_non_finite", engine.first_non_finite);
  });
}

EngineState read_engine(const JsonObject& engine) {
  // The scaler counts its good updates in 32 bits.
  constexpr int64_t kMostGoodUpdates = std::numeric_limits<int32_t>::max();
  return {.counters = {.windows = engine.integer("windows"),
                       .updates = engine.integer("updates", 0, kMaxCount),
                       .skipped_total = engine.integer("skipped_total"),
                       .skips_in_a_row = engine.integer("skips_in_a_row")},
          .loss_scale = engine.finite("loss_scale"),
          .num_good_updates = engine.integer("num_good_updates", 0, kMostGoodUpdates),
          .micro_batch = engine.integer("micro_batch", 1, kMaxBatch),
          .first_non_finite = engine.text("first_non_finite")};
}

namespace {

void add_policy(Document& document, const TrainState& state) {
  document.add_object("policy", [&](JsonLine& line) {
    line.add("micro_batch", state.asked_micro_batch);
    line.add("eval_interval", to_string(state.eval_interval));
    line.add("save_interval", to_string(state.save_interval));
    line.add("best_metric", state.best_metric);
  });
}

Interval read_interval(const JsonObject& policy, const std::string& key) {
  try {
    return parse_interval(policy.text(key));
  } catch (const ConfigError& error) {
    policy.fail(key, error.what());
  }
}

// Checkpoints of the first version have these among the settings, where a key that is missing has its
// default.
void read_policy(const JsonObject& document, TrainState& state) {
  if (document.has("policy")) {
    const JsonObject policy = document.object("policy");
    state.asked_micro_batch = policy.integer("micro_batch", 1, kMaxBatch);
    state.eval_interval = read_interval(policy, "eval_interval");
    state.save_interval = read_interval(policy, "save_interval");
    state.best_metric = policy.text("best_metric");
    return;
  }
  const JsonObject config = document.object("config");
  const auto interval = [&](const std::string& key) {
    return config.has(key) ? read_interval(config, key) : Interval{1, Interval::Unit::kEpochs};
  };
  const std::optional<int64_t> batch_size =
      config.has("batch_size") ? parse_integer(config.text("batch_size")) : 32;
  if (!batch_size || *batch_size < 1) config.fail("batch_size", "expected a whole number of at least 1");
  state.asked_micro_batch = *batch_size;
  state.eval_interval = interval("eval_interval");
  state.save_interval = interval("save_interval");
  state.best_metric = config.has("best_metric") ? config.text("best_metric") : "val_acc";
}

}  // namespace

std::vector<TensorSpec> tensor_specs(const NamedTensors& tensors) {
  std::vector<TensorSpec> specs;
  for (const auto& [name, tensor] : tensors) {
    specs.push_back({name, safetensors_dtype(name, tensor.scalar_type()), tensor.sizes().vec()});
  }
  return specs;
}

std::string format_state(const TrainState& state) {
  Document document;
  document.add("format", std::to_string(kCheckpointFormat));
  document.add_object("written_by", [&](JsonLine& line) {
    line.add("version", state.version);
    line.add("git_commit", state.git_commit);
    line.add("torch_version", state.torch_version);
  });
  add_engine(document, state.engine);
  document.add_object("next", [&](JsonLine& line) {
    line.add("epoch", state.next.epoch);
    line.add("index", state.next.index);
    line.add("number", state.next.number);
  });
  document.add_object("progress", [&](JsonLine& line) {
    line.add("samples", state.samples);
    line.add("seconds", state.seconds);
    line.add("evals_due", state.evals_due);
    line.add("saves_due", state.saves_due);
    line.add("num_rollbacks", state.num_rollbacks);
    line.add("evals_without_best", state.evals_without_best);
  });
  add_lists(document, state);
  document.add("last_eval", eval_text(state.last_eval));
  document.add("best_eval", eval_text(state.best_eval));
  document.add_object("run", [&](JsonLine& line) {
    line.add("world_size", state.world_size);
    line.add("global_batch", state.global_batch);
    line.add("total_updates", state.total_updates);
    line.add("planned_updates", state.planned_updates);
    line.add("dataset_fingerprint", state.dataset_fingerprint);
    line.add("eval_fingerprint", state.eval_fingerprint);
  });
  document.add_object("report_positions", [&](JsonLine& line) {
    for (const auto& [name, position] : state.report_positions) line.add(name, position);
  });
  document.add_object("config", [&](JsonLine& line) {
    for (const auto& [key, text] : state.settings) line.add(key, text);
  });
  add_policy(document, state);
  document.add("num_buffers", std::to_string(state.num_buffers));
  document.add("model", tensors_text(state.model));
  document.add("optimizer", tensors_text(state.optimizer));
  document.add("ema", tensors_text(state.ema));
  if (!state.user.empty()) {
    document.add_object("user", [&](JsonLine& line) {
      for (const auto& [key, text] : state.user.values) line.add(key, text);
    });
    document.add("user_tensors", tensors_text(state.user.tensors));
  }
  return document.take();
}

StateFile parse_state(const std::string& path, std::string_view text) {
  const JsonObject document = JsonObject::parse(path, text);
  if (const int64_t format = document.integer("format", 1); format > kCheckpointFormat) {
    throw NewerFormat(path + ": a checkpoint of format " + std::to_string(format) + ": use a newer gradstep");
  }
  StateFile file;
  TrainState& state = file.state;
  const JsonObject written_by = document.object("written_by");
  state.version = written_by.text("version");
  state.git_commit = written_by.text("git_commit");
  state.torch_version = written_by.text("torch_version");
  state.engine = read_engine(document.object("engine"));
  state.engine.spikes = read_spikes(document);
  const JsonObject next = document.object("next");
  state.next = {next.integer("epoch", 0, kMaxCount), next.integer("index", 0, kMaxBatch),
                next.integer("number")};
  const JsonObject progress = document.object("progress");
  state.samples = progress.integer("samples");
  state.seconds = progress.finite("seconds");
  state.evals_due = progress.finite("evals_due");
  state.saves_due = progress.finite("saves_due");
  state.num_rollbacks = progress.integer("num_rollbacks");
  state.evals_without_best = progress.integer("evals_without_best");
  read_lists(document, state);
  state.last_eval = read_eval(document, "last_eval");
  state.best_eval = read_eval(document, "best_eval");
  const JsonObject run = document.object("run");
  state.world_size = run.integer("world_size", 1);
  state.global_batch = run.integer("global_batch", 0, kMaxBatch);
  state.total_updates = run.integer("total_updates");
  state.dataset_fingerprint = run.text("dataset_fingerprint");
  // Checkpoints of the first version lack these three.
  state.planned_updates = run.has("planned_updates") ? run.integer("planned_updates") : state.total_updates;
  if (run.has("eval_fingerprint")) state.eval_fingerprint = run.text("eval_fingerprint");
  state.report_positions = document.texts("report_positions");
  state.settings = document.texts("config");
  read_policy(document, state);
  file.model = read_tensors(document, "model");
  const auto num_tensors = static_cast<int64_t>(file.model.size());
  if (document.has("num_buffers")) state.num_buffers = document.integer("num_buffers", 0, num_tensors);
  file.optimizer = read_tensors(document, "optimizer");
  file.ema = read_tensors(document, "ema");
  if (document.has("user")) {
    state.user.values = document.texts("user");
    file.user = read_tensors(document, "user_tensors");
  }
  return file;
}

}  // namespace gradstep

// no torch
// Numbers that are not finite are the strings "NaN", "Infinity", "-Infinity", as in metrics.jsonl.
#include "incident/black_box_json.h"

#include <nlohmann/json.hpp>

#include "checkpoint/json_object.h"
#include "checkpoint/number_json.h"
#include "checkpoint/state_json.h"
#include "gradstep/base/error.h"

namespace gradstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kNameOfNotFinite[] = "not_finite";
constexpr char kNameOfSpike[] = "spike";

StepOutcome read_outcome(const JsonObject& document, const std::string& cause) {
  // Older boxes have no such key.
  if (!document.has("outcome")) {
    return cause == kNotFinite ? StepOutcome::kNotFinite : StepOutcome::kSpike;
  }
  const std::string name = document.text("outcome");
  if (name == kNameOfNotFinite) return StepOutcome::kNotFinite;
  if (name == kNameOfSpike) return StepOutcome::kSpike;
  document.fail("outcome", "is \"" + name + "\", must be not_finite or spike");
}

template <typename Value, typename Parse>
Value parsed(const JsonObject& document, const std::string& key, Parse parse) {
  try {
    return parse(document.text(key));
  } catch (const ConfigError& error) {
    document.fail(key, error.what());
  }
}

}  // namespace

std::string black_box_json(const BlackBox& box) {
  Json json{{"window", box.window},
            {"update", box.update},
            {"epoch", box.epoch},
            {"outcome", box.outcome == StepOutcome::kSpike ? kNameOfSpike : kNameOfNotFinite},
            {"cause", box.cause},
            {"first_non_finite", box.first_non_finite},
            {"loss", number_json(box.loss)},
            {"grad_norm", number_json(box.grad_norm)},
            {"loss_scale", number_json(box.loss_scale)},
            {"micro_batch", box.micro_batch},
            {"precision", to_string(box.precision)},
            {"matmul", to_string(box.matmul)},
            {"seed", box.seed},
            {"rank", box.rank},
            {"total_samples", box.total_samples},
            {"dataset_fingerprint", box.dataset_fingerprint},
            {"engine", Json::parse(engine_json(box.engine))}};
  if (box.divisor) json["divisor"] = *box.divisor;
  json["modules"] = Json::array();
  for (const ModuleNorms& module : box.modules) {
    json["modules"].push_back({{"module", module.module},
                               {"forward", number_json(module.forward)},
                               {"backward", number_json(module.backward)},
                               {"num_bad", module.num_bad}});
  }
  json["scale_history"] = Json::array();
  for (const auto& [window, scale] : box.scale_history)
    json["scale_history"].push_back({{"window", window}, {"loss_scale", number_json(scale)}});
  json["frozen"] = box.frozen;
  json["ids"] = box.ids;
  json["config"] = Json::object();
  for (const auto& [key, text] : box.settings) json["config"][key] = text;
  // A path need not be UTF-8.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void read_black_box_json(const std::string& path, const std::string& text, BlackBox& box) {
  const JsonObject document = JsonObject::parse(path, text);
  box.window = document.integer("window", 1);
  box.update = document.integer("update");
  box.epoch = document.integer("epoch");
  box.cause = document.text("cause");
  box.outcome = read_outcome(document, box.cause);
  box.first_non_finite = document.text("first_non_finite");
  box.loss = document.real("loss");
  box.grad_norm = document.real("grad_norm");
  box.loss_scale = document.finite("loss_scale");
  box.micro_batch = document.integer("micro_batch", 1);
  box.precision = parsed<Precision>(document, "precision", parse_precision);
  box.matmul = parsed<Matmul>(document, "matmul", parse_matmul);
  box.seed = document.unsigned_integer("seed");
  box.rank = document.integer("rank");
  box.total_samples = document.integer("total_samples", 1);
  if (document.has("divisor")) box.divisor = document.finite("divisor");
  box.dataset_fingerprint = document.text("dataset_fingerprint");
  box.engine = read_engine(document.object("engine"));
  for (const JsonObject& module : document.objects("modules")) {
    box.modules.push_back({.module = module.text("module"),
                           .forward = module.real("forward"),
                           .backward = module.real("backward"),
                           .num_bad = module.integer("num_bad")});
  }
  for (const JsonObject& change : document.objects("scale_history"))
    box.scale_history.emplace_back(change.integer("window"), change.finite("loss_scale"));
  if (document.has("frozen")) box.frozen = document.text_list("frozen");
  box.ids = document.integers("ids");
  box.settings = document.texts("config");
}

}  // namespace gradstep

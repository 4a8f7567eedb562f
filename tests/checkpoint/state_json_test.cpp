// state.json: the text is frozen, every field comes back, and nothing in it is believed.
#include "checkpoint/state_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <sstream>

#include "checkpoint/manifest.h"
#include "gradstep/base/error.h"
#include "support/full_state.h"
#include "support/fuzz_seed.h"
#include "support/golden.h"
#include "support/message_of.h"

namespace gradstep::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

bool same_bits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

TEST(StateJson, IsTheGoldenText) {
  // The file is ASCII and escapes what our text has as it is; keys and their order must be equal.
  using Ordered = nlohmann::ordered_json;
  EXPECT_EQ(Ordered::parse(format_state(full_state())).dump(1),
            Ordered::parse(read_source_file("tests/golden/state_current.json")).dump(1));
}

// Whether `whole` has everything that `part` has.
void expect_has(const json& whole, const json& part, const std::string& where) {
  if (!part.is_object()) {
    EXPECT_EQ(whole, part) << where;
    return;
  }
  for (const auto& [key, value] : part.items()) {
    ASSERT_TRUE(whole.contains(key)) << where << "/" << key;
    expect_has(whole.at(key), value, where + "/" + key);
  }
}

// Since then keys were only added, so that a reader of the first version finds all of its own.
TEST(StateJson, WhatTheFirstVersionWroteIsWrittenStill) {
  json first = json::parse(read_source_file("tests/golden/state.json"));
  first.erase("config");  // the settings of the state in this test are others
  expect_has(json::parse(format_state(full_state())), first, "");
}

TEST(StateJson, AFileOfTheFirstVersionIsStillRead) {
  const StateFile file = parse_state("s", read_source_file("tests/golden/state.json"));
  TrainState again = full_state();
  EXPECT_EQ(file.state.engine.counters.windows, again.engine.counters.windows);
  EXPECT_EQ(file.state.settings.at("lr"), again.settings.at("lr"));
  EXPECT_EQ(file.state.settings.at("seed"), again.settings.at("seed"));
  // It had these among the settings only.
  EXPECT_EQ(file.state.asked_micro_batch, again.asked_micro_batch);
  EXPECT_EQ(file.state.eval_interval, again.eval_interval);
  EXPECT_EQ(file.state.save_interval, again.save_interval);
  EXPECT_EQ(file.state.best_metric, again.best_metric);
  EXPECT_TRUE(file.state.user.empty());
}

// The bindings name every field there is: with one more this file does not compile, and whoever adds it
// comes here, to state.json and to docs/checkpoint_format.md.
TEST(StateJson, EveryFieldComesBack) {
  const TrainState written = full_state();
  const StateFile file = parse_state("s", format_state(written));
  const auto& [model, num_buffers, optimizer, ema, user, engine, next, samples, seconds, evals_due, saves_due,
               stepped_over, num_rollbacks, scale_history, last_eval, best_eval, evals_without_best, settings,
               asked_micro_batch, eval_interval, save_interval, best_metric, info, world_size, global_batch,
               total_updates, planned_updates, dataset_fingerprint, eval_fingerprint, report_positions,
               version, git_commit, torch_version] = file.state;
  EXPECT_TRUE(model.empty() && optimizer.empty() && ema.empty() && info.settings.empty());
  EXPECT_EQ(user.values, written.user.values);
  EXPECT_TRUE(user.tensors.empty());
  EXPECT_EQ(num_buffers, 1);
  EXPECT_EQ(planned_updates, 5000);
  EXPECT_EQ(eval_fingerprint, written.eval_fingerprint);
  const auto& [counters, loss_scale, num_good_updates, micro_batch, first_non_finite, spikes] = engine;
  const auto& [windows, updates, skipped_total, skips_in_a_row] = counters;
  EXPECT_EQ(windows, written.engine.counters.windows);
  EXPECT_EQ(updates, written.engine.counters.updates);
  EXPECT_EQ(skipped_total, written.engine.counters.skipped_total);
  EXPECT_EQ(skips_in_a_row, written.engine.counters.skips_in_a_row);
  EXPECT_EQ(loss_scale, written.engine.loss_scale);
  EXPECT_EQ(num_good_updates, written.engine.num_good_updates);
  EXPECT_EQ(micro_batch, written.engine.micro_batch);
  EXPECT_EQ(first_non_finite, written.engine.first_non_finite);
  EXPECT_EQ(spikes, written.engine.spikes);
  EXPECT_TRUE(std::signbit(spikes.losses[2]));
  const auto& [epoch, index, number] = next;
  EXPECT_EQ(epoch, written.next.epoch);
  EXPECT_EQ(index, written.next.index);
  EXPECT_EQ(number, written.next.number);
  EXPECT_EQ(samples, written.samples);
  EXPECT_EQ(seconds, written.seconds);
  EXPECT_EQ(evals_due, written.evals_due);
  EXPECT_EQ(saves_due, written.saves_due);
  ASSERT_EQ(stepped_over.size(), 2U);
  EXPECT_EQ(stepped_over[0].window, 17);
  EXPECT_TRUE(std::isnan(stepped_over[0].loss));
  EXPECT_EQ(stepped_over[0].grad_norm, 0.125);
  EXPECT_EQ(stepped_over[1], written.stepped_over[1]);
  EXPECT_EQ(num_rollbacks, written.num_rollbacks);
  EXPECT_EQ(scale_history, written.scale_history);
  EXPECT_EQ(last_eval, written.last_eval);
  EXPECT_EQ(best_eval, written.best_eval);
  EXPECT_EQ(evals_without_best, written.evals_without_best);
  EXPECT_EQ(settings, written.settings);
  EXPECT_EQ(asked_micro_batch, written.asked_micro_batch);
  EXPECT_EQ(eval_interval, written.eval_interval);
  EXPECT_EQ(save_interval, written.save_interval);
  EXPECT_EQ(best_metric, written.best_metric);
  EXPECT_EQ(world_size, written.world_size);
  EXPECT_EQ(global_batch, written.global_batch);
  EXPECT_EQ(total_updates, written.total_updates);
  EXPECT_EQ(dataset_fingerprint, written.dataset_fingerprint);
  EXPECT_EQ(report_positions, written.report_positions);
  EXPECT_EQ(version, written.version);
  EXPECT_EQ(git_commit, written.git_commit);
  EXPECT_EQ(torch_version, written.torch_version);
  EXPECT_EQ(file.model, tensor_specs(written.model));
  EXPECT_EQ(file.optimizer, tensor_specs(written.optimizer));
  EXPECT_EQ(file.ema, tensor_specs(written.ema));
  EXPECT_EQ(file.user, tensor_specs(written.user.tensors));
  EXPECT_EQ(format_state(written).find("nan"), std::string::npos);
}

TEST(StateJson, DoublesComeBackBitForBit) {
  std::mt19937_64 random(1);
  TrainState state = full_state();
  state.engine.spikes.losses.clear();
  for (int i = 0; i < 2000; ++i) {
    double value = 0;
    const uint64_t bits = random();
    std::memcpy(&value, &bits, sizeof value);
    if (std::isfinite(value)) state.engine.spikes.losses.push_back(value);
  }
  for (const double value : {0.0, -0.0, 5e-324, 1.7976931348623157e308, 9007199254740993.0, 1e20, 1e21,
                             123456789012345683968.0, 18446744073709551615.0, 9223372036854775808.0}) {
    state.engine.spikes.losses.push_back(value);
  }
  state.engine.spikes.grad_norms = state.engine.spikes.losses;
  const StateFile file = parse_state("s", format_state(state));
  ASSERT_EQ(file.state.engine.spikes.losses.size(), state.engine.spikes.losses.size());
  for (size_t i = 0; i < state.engine.spikes.losses.size(); ++i) {
    EXPECT_TRUE(same_bits(file.state.engine.spikes.losses[i], state.engine.spikes.losses[i]))
        << state.engine.spikes.losses[i];
  }
}

std::string refusal(const std::string& text) {
  const std::string message = message_of<CheckpointError>([&] { (void)parse_state("s.json", text); });
  EXPECT_THAT(message, AllOf(StartsWith("s.json: "), Not(HasSubstr("\n")))) << text.substr(0, 100);
  return message;
}

// Calls `visit` with the path of every value in the document, outermost first.
void each_value(const json& document, const json::json_pointer& at,
                const std::function<void(const json::json_pointer&)>& visit) {
  if (!document.is_structured()) return;
  for (const auto& [key, value] : document.items()) {
    const json::json_pointer path =
        document.is_array() ? at / static_cast<size_t>(std::stoul(key)) : at / std::string(key);
    visit(path);
    each_value(value, path, visit);
  }
}

// A key of the first version is needed. One that came later may be missing: older files have none.
TEST(StateJson, EveryKeyOfTheFirstVersionIsNeededAndEachIsOfItsType) {
  const json whole = json::parse(format_state(full_state()));
  const json first = json::parse(read_source_file("tests/golden/state.json"));
  // A file either has the whole first form of this object or is older.
  const std::set<std::string> in_every_policy{"/policy/micro_batch", "/policy/eval_interval",
                                              "/policy/save_interval", "/policy/best_metric"};
  int num_values = 0;
  each_value(whole, json::json_pointer(""), [&](const json::json_pointer& path) {
    const std::string text = path.to_string();
    const bool in_list = whole.at(path.parent_pointer()).is_array();
    const bool free_key = text.starts_with("/config/") || text.starts_with("/report_positions/") ||
                          text.starts_with("/user") || path.back().starts_with("ema_val_") ||
                          (path.back().starts_with("val_") && path.back() != "val_loss");  // the task's own
    ++num_values;
    if (!in_list && !free_key) {
      json less = whole;
      less.at(path.parent_pointer()).erase(path.back());
      if (first.contains(path) || in_every_policy.contains(text)) {
        EXPECT_THAT(refusal(less.dump()), HasSubstr(path.back() + ": is missing")) << text;
      } else {
        EXPECT_NO_THROW((void)parse_state("s.json", less.dump())) << text;
      }
    }
    json other = whole;
    other.at(path) = whole.at(path).is_boolean() ? json("x") : json(true);
    EXPECT_THAT(refusal(other.dump()), HasSubstr("expected ")) << text;
  });
  EXPECT_GT(num_values, 180);
}

TEST(StateJson, RangesAreChecked) {
  const json whole = json::parse(format_state(full_state()));
  const auto with = [&](const char* path, const json& value) {
    json other = whole;
    other[json::json_pointer(path)] = value;
    return other.dump();
  };
  for (const char* path : {"/engine/windows", "/engine/micro_batch", "/next/number", "/progress/samples",
                           "/run/total_updates", "/model/0/shape/0", "/last_eval/update",
                           "/scale_history/0/window", "/progress/seconds", "/engine/loss_scale"}) {
    EXPECT_THAT(refusal(with(path, -1)), HasSubstr("expected a")) << path;
  }
  for (const char* path : {"/engine/windows", "/next/number", "/model/0/shape/0"}) {
    for (const json& value : {json(1.5), json(1e30), json(9223372036854775808U), json("1"), json(nullptr)}) {
      EXPECT_THAT(refusal(with(path, value)), HasSubstr("expected a whole number")) << path << value;
    }
  }
  // Numbers with which the run could only overflow or stop with an error of its own.
  for (const char* path :
       {"/engine/updates", "/engine/micro_batch", "/next/epoch", "/next/index", "/run/global_batch"}) {
    EXPECT_THAT(refusal(with(path, 9223372036854775807)), HasSubstr("expected a whole number")) << path;
  }
  EXPECT_THAT(refusal(with("/engine/micro_batch", 0)), HasSubstr("engine.micro_batch"));
  EXPECT_THAT(refusal(with("/run/world_size", 0)), HasSubstr("run.world_size"));
  EXPECT_THAT(refusal(with("/engine/micro_batch", 0)), HasSubstr("engine.micro_batch"));
  EXPECT_THAT(refusal(with("/engine/num_good_updates", 2147483648)), HasSubstr("engine.num_good_updates"));
  EXPECT_THAT(refusal(with("/engine/loss_scale", "NaN")), HasSubstr("engine.loss_scale"));
  EXPECT_THAT(refusal(with("/spikes/losses/0", "NaN")), HasSubstr("spikes.losses"));
  EXPECT_THAT(refusal(with("/spikes/losses/3", 1)),
              HasSubstr("spikes.grad_norms: expected as many as losses"));
  EXPECT_THAT(refusal(with("/model/1/dtype", "F33")), HasSubstr("model[1].dtype: an unknown type"));
  EXPECT_THAT(refusal(with("/config/hidden", 0)), HasSubstr("config.hidden"));
  EXPECT_THAT(refusal(with("/policy/micro_batch", 0)), HasSubstr("policy.micro_batch"));
  EXPECT_THAT(refusal(with("/policy/eval_interval", "soon")), HasSubstr("policy.eval_interval"));
  EXPECT_THAT(refusal(with("/format", 0)), HasSubstr("format"));
  EXPECT_THROW((void)parse_state("s", with("/format", 2)), NewerFormat);
  EXPECT_THROW((void)parse_state("s", with("/last_eval", nullptr) + "x"), CheckpointError);
}

TEST(StateJson, WhatIsNotKnownIsPassedOver) {
  json document = json::parse(format_state(full_state()));
  document["later"] = {{"anything", {1, 2}}};
  document["engine"]["later"] = "x";
  document["config"]["no_such_flag"] = "x";
  document["config"].erase("hidden");
  const StateFile file = parse_state("s", document.dump());
  EXPECT_EQ(file.state.engine.counters.updates, 120);
  EXPECT_EQ(file.state.settings.at("no_such_flag"), "x");
}

TEST(StateJson, HostileTexts) {
  const std::string open = "{\"format\":1,\"model\":";
  for (const std::string& text :
       {std::string(), std::string("x"), std::string("[]"), std::string("null"), std::string("{"),
        std::string("{}"), std::string("{}{}"), std::string("{\"format\":1,\"format\":1}"),
        std::string("{\"a\0\":1}", 8), std::string("{\"a\xff\":1}"),
        std::string("\xef\xbb\xbf{\"format\":1}"), std::string("{\"format\":1e999}"),
        std::string("{\"format\":NaN}"), std::string("{\"format\":01}"), open + std::string(1'000'000, '['),
        open + std::string(8, '[') + std::string(8, ']') + "}", std::string(1'000'000, '{'),
        "{\"" + std::string(1'000'000, 'a') + "\":1e999}", std::string("{\"format\":1,\"\\ud800\":1}")}) {
    refusal(text);
  }
}

TEST(StateJson, TextsThatAreNotUtf8LoseTheBytesAtFault) {
  TrainState state = full_state();
  state.settings["data_dir"] = "/data/\xff";
  EXPECT_EQ(parse_state("s", format_state(state)).state.settings.at("data_dir"), "/data/\xef\xbf\xbd");
}

// Random damage: read as something, or a CheckpointError of one line; never anything else.
TEST(StateJson, SurvivesRandomDamage) {
  TrainState state = full_state();
  state.model.resize(1);
  state.optimizer.clear();
  state.ema.clear();
  const std::string whole = format_state(state);
  const std::string alphabet = "{}[]\",:0123456789-.eEnux \\\0\xff";
  const unsigned seed = fuzz_seed();
  SCOPED_TRACE(fuzz_trace(seed));
  std::mt19937 random(seed);
  const auto pick = [&](size_t size) { return random() % size; };
  int num_refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text = whole;
    for (size_t changes = 1 + pick(3); changes > 0; --changes) {
      const size_t place = pick(text.size());
      switch (pick(4)) {
        case 0:
          text.insert(place, whole.substr(pick(whole.size()), pick(60)));
          break;
        case 1:
          text.erase(place, 1 + pick(8));
          break;
        case 2:
          text[place] = static_cast<char>(text[place] ^ (1 << pick(8)));
          break;
        default:
          text[place] = alphabet[pick(alphabet.size())];
      }
    }
    try {
      (void)parse_state("s", text);
    } catch (const CheckpointError& error) {
      ++num_refused;
      ASSERT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
  EXPECT_GT(num_refused, 1000);
}

}  // namespace
}  // namespace gradstep::testing

// no torch
// The flag table and RunConfig: numbers from text, limits, combinations and intervals.
#include "config/run_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "base/number_text.h"
#include "config/flag_table.h"
#include "gradstep/base/error.h"

namespace gradstep {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const Flag<RunConfig>& flag(const std::string& key) {
  for (const Flag<RunConfig>& candidate : train_flags()) {
    if (candidate.info.key == key) return candidate;
  }
  throw std::logic_error("no flag " + key);
}

// The message of the ConfigError; empty when it is accepted.
std::string refusal(const RunConfig& config) {
  try {
    validate(config);
    return "";
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::kUsage);
    return error.what();
  }
}

template <class Change>
std::string refusal_with(Change change) {
  RunConfig config;
  change(config);
  return refusal(config);
}

TEST(FlagTable, NamesAreUniqueAndEachFlagIsExplained) {
  std::set<std::string> names;
  std::set<char> short_names;
  for (const Flag<RunConfig>& each : train_flags()) {
    EXPECT_TRUE(names.insert(each.info.key).second) << each.info.key;
    for (const std::string& alias : each.info.aliases) EXPECT_TRUE(names.insert(alias).second) << alias;
    EXPECT_TRUE(each.info.short_name == 0 || short_names.insert(each.info.short_name).second)
        << each.info.key;
    EXPECT_EQ(each.info.help.empty() ? ' ' : each.info.help.back(), '.') << each.info.key;
    EXPECT_EQ(each.info.metavar.empty(), each.info.is_switch()) << each.info.key;
    EXPECT_EQ(each.info.default_text.empty(), each.info.is_switch()) << each.info.key;
    EXPECT_FALSE(each.info.expects.empty()) << each.info.key;
  }
}

TEST(FlagTable, WhatTheGetterWritesTheSetterTakesBack) {
  const RunConfig defaults;
  for (const Flag<RunConfig>& each : train_flags()) {
    RunConfig config;
    EXPECT_TRUE(each.set(config, each.get(defaults))) << each.info.key;
    EXPECT_EQ(config, defaults) << each.info.key;
  }
}

// Each flag moves a field of its own: no two write to the same one, and none writes nowhere.
TEST(FlagTable, EachFlagChangesTheSettingsInItsOwnWay) {
  for (const Flag<RunConfig>& each : train_flags()) {
    bool changed = false;
    for (const char* text : {"true", "7", "0.5", "7s", "sequential", "sgd", "linear", "bf16", "onednn",
                             "cuda:1", "rollback", "continue", "val_loss", "tensorboard", "fc1.*:frozen"}) {
      RunConfig config;
      if (!each.set(config, text) || config == RunConfig{}) continue;
      changed = true;
      EXPECT_EQ(each.get(config), text) << each.info.key;
      for (const Flag<RunConfig>& other : train_flags()) {
        const bool is_untouched = other.get(config) == other.get(RunConfig{});
        EXPECT_EQ(is_untouched, &other != &each) << each.info.key << ' ' << other.info.key;
      }
      break;
    }
    EXPECT_TRUE(changed) << each.info.key;
  }
}

TEST(FlagTable, TakesWholeNumbersWholeOrNotAtAll) {
  EXPECT_EQ(parse_integer("-12"), -12);
  EXPECT_EQ(parse_integer("9223372036854775807"), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(parse_unsigned("18446744073709551615"), std::numeric_limits<uint64_t>::max());
  for (const char* bad :
       {"", " ", "12x", "x12", "1e3", "1.0", " 12", "12 ", "+1", "0x10", "9223372036854775808", "--1"}) {
    EXPECT_FALSE(parse_integer(bad)) << bad;
  }
  EXPECT_FALSE(parse_unsigned("-1"));
}

TEST(FlagTable, TakesNumbersWholeOrNotAtAll) {
  EXPECT_EQ(parse_real(".9"), 0.9);
  EXPECT_EQ(parse_real("3e-4"), 3e-4);
  EXPECT_EQ(parse_real("-2"), -2.0);
  for (const char* bad :
       {"", "12x", "1e", "e5", "1e999", "nan", "inf", "-inf", "1,5", " 1", "1 ", "0x1p3", "1e-999"}) {
    EXPECT_FALSE(parse_real(bad)) << bad;
  }
}

TEST(FlagTable, WritesNumbersThatReadBackToTheSameBits) {
  for (const double value :
       {0.1, 1e-8, 1.0 / 3, 5e-324, 1.7976931348623157e308, 123456789.0, 0.30000000000000004}) {
    EXPECT_EQ(parse_real(shortest(value)), value);
  }
  EXPECT_EQ(shortest(0.001), "0.001");
}

TEST(FlagTable, ATextThatIsRefusedChangesNothing) {
  RunConfig config;
  for (const char* bad : {"0", "-1", "1000000001", "12x", ""}) {
    EXPECT_FALSE(flag("batch_size").set(config, bad)) << bad;
  }
  EXPECT_EQ(config, RunConfig{});
}

TEST(FlagTable, OptionalNumbersTakeNone) {
  RunConfig config{.epochs = 3};
  EXPECT_TRUE(flag("epochs").set(config, "none"));
  EXPECT_EQ(config.epochs, std::nullopt);
  EXPECT_FALSE(flag("epochs").set(config, "nones"));
  EXPECT_FALSE(flag("batch_size").set(config, "none"));
}

TEST(FlagTable, Devices) {
  for (const char* good : {"auto", "cpu", "cuda", "cuda:0", "cuda:15"})
    EXPECT_TRUE(is_device_text(good)) << good;
  for (const char* bad : {"", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:1234", "cpu:0", "CUDA"}) {
    EXPECT_FALSE(is_device_text(bad)) << bad;
  }
}

TEST(FlagTable, Spellings) {
  EXPECT_EQ(flag_spelling("grad_accum_steps"), "--grad-accum-steps");
  EXPECT_EQ(variable_spelling("batch_size"), "GRADSTEP_BATCH_SIZE");
}

TEST(Validate, TheDefaultsAreFine) { EXPECT_EQ(refusal({}), ""); }

TEST(Validate, NamesFlagValueAndCure) {
  EXPECT_EQ(refusal_with([](RunConfig& c) { c.batch_size = 0; }),
            "--batch-size '0': must be a whole number from 1 to 1000000000");
  EXPECT_EQ(refusal_with([](RunConfig& c) { c.lr = -1; }), "--lr '-1': must be a number of at least 0");
  EXPECT_EQ(refusal_with([](RunConfig& c) { c.opt = "lion"; }), "--opt 'lion': must be adamw or sgd");
  // Only spikes can be left unlooked for.
  EXPECT_THAT(refusal_with([](RunConfig& c) { c.on_nonfinite = OnTrouble::kOff; }),
              HasSubstr("must be skip, stop or rollback"));
}

TEST(Validate, RefusesWhatIsOutOfRange) {
  const double nan = std::nan("");
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_THAT(refusal_with([](RunConfig& c) { c.epochs = 0; }), HasSubstr("--epochs '0'"));
  EXPECT_THAT(refusal_with([](RunConfig& c) { c.max_steps = -1; }), HasSubstr("--max-steps '-1'"));
  EXPECT_THAT(refusal_with([](RunConfig& c) { c.grad_accum_steps = 0; }),
              HasSubstr("--grad-accum-steps '0'"));
  EXPECT_THAT(refusal_with([](RunConfig& c) { c.global_batch_size = 0; }),
              HasSubstr("--global-batch-size '0'"));
  EXPECT_THAT(refusal_with([](RunConfig& c) { c.val_fraction = 1; }), HasSubstr("--val-fraction '1'"));
  EXPECT_THAT(refusal_with([](RunConfig& c) { c.beta2 = 1; }), HasSubstr("--beta2 '1'"));
  EXPECT_THAT(refusal_with([](RunConfig& c) { c.workers = -1; }), HasSubstr("--workers '-1'"));
  EXPECT_THAT(refusal_with([](RunConfig& c) { c.device = "tpu"; }), HasSubstr("--device 'tpu'"));
  EXPECT_THAT(refusal_with([=](RunConfig& c) { c.lr = nan; }), HasSubstr("--lr 'nan'"));
  EXPECT_THAT(refusal_with([=](RunConfig& c) { c.clip_grad = inf; }), HasSubstr("--clip-grad 'inf'"));
  EXPECT_THAT(refusal_with([](RunConfig& c) { c.eval_interval = {1.5, Interval::Unit::kEpochs}; }),
              HasSubstr("--eval-interval '1.5ep'"));
  EXPECT_THAT(refusal_with([=](RunConfig& c) { c.eval_interval = {nan, Interval::Unit::kSeconds}; }),
              HasSubstr("--eval-interval 'nan"));
  EXPECT_EQ(refusal_with([](RunConfig& c) { c.eval_interval = {0, Interval::Unit::kEpochs}; }), "");
}

TEST(Validate, RefusesCombinationsThatMakeNoSense) {
  EXPECT_THAT(refusal_with([](RunConfig& c) {
                c.early_stop_patience = 2;
                c.eval_interval = {};
              }),
              AllOf(HasSubstr("--early-stop-patience 2"), HasSubstr("--eval-interval")));
}

TEST(Interval, ReadsEachUnit) {
  EXPECT_EQ(parse_interval("100"), (Interval{100, Interval::Unit::kUpdates}));
  EXPECT_EQ(parse_interval("2ep"), (Interval{2, Interval::Unit::kEpochs}));
  EXPECT_EQ(parse_interval("30s"), (Interval{30, Interval::Unit::kSeconds}));
  EXPECT_EQ(parse_interval("10m"), (Interval{600, Interval::Unit::kSeconds}));
  EXPECT_EQ(parse_interval("1.5h"), (Interval{5400, Interval::Unit::kSeconds}));
  for (const char* zero : {"0", "0ep", "0s", "0.0h"}) EXPECT_EQ(parse_interval(zero), Interval{}) << zero;
}

TEST(Interval, PrintsWhatItReads) {
  for (const char* text :
       {"0", "1", "100", "1000000", "1ep", "30s", "90s", "10m", "2h", "0.5s", "36h", "9007199254740992"}) {
    EXPECT_EQ(to_string(parse_interval(text)), text);
  }
  EXPECT_EQ(to_string(parse_interval("120s")), "2m");
}

TEST(Interval, RefusesEverythingElse) {
  for (const char* bad : {"", "ep", "s", "-1", "-1ep", "1.5", "1.5ep", "1d", "1 ep", "1epp", "1e3", "nan",
                          "inf", "1..5s", "1ep ", "99999999999999999999", "+1", "1EP"}) {
    try {
      (void)parse_interval(bad);
      ADD_FAILURE() << bad;
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("'" + std::string(bad) + "'"), HasSubstr("1ep")));
    }
  }
}

}  // namespace
}  // namespace gradstep

// RunSettings: the flags of the program's recipes beside those of every run, as config file, as settings and
// back.
#include "app/run_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <set>

#include "base/seed.h"
#include "gradstep/base/error.h"
#include "gradstep/model/tasks.h"
#include "support/gradstep_program.h"
#include "support/message_of.h"
#include "support/source_dir.h"

namespace gradstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(RunSettings, TheKeysAreFrozen) {
  std::string keys;
  for (const FlagInfo& each : RunSettings(program().catalog).flags()) {
    keys += each.key;
    for (const std::string& alias : each.aliases) keys += " " + alias;
    keys += "\n";
  }
  EXPECT_EQ(keys, read_source_file("tests/golden/config_keys.txt"))
      << "a key that users have in their files was renamed or removed, or a new one needs a line in the "
         "golden file";
}

TEST(RunSettings, NamesAreUniqueAndEachFlagIsExplained) {
  std::set<std::string> names;
  for (const FlagInfo& each : RunSettings(program().catalog).flags()) {
    EXPECT_TRUE(names.insert(each.key).second) << each.key;
    for (const std::string& alias : each.aliases) EXPECT_TRUE(names.insert(alias).second) << alias;
    EXPECT_EQ(each.help.back(), '.') << each.key;
    EXPECT_EQ(each.metavar.empty(), each.is_switch()) << each.key;
    EXPECT_EQ(each.default_text.empty(), each.is_switch()) << each.key;
    EXPECT_FALSE(each.expects.empty()) << each.key;
  }
}

TEST(RunSettings, KnowTheDataSetsAndModelsThereAre) {
  for (const auto& [key, known] : {std::pair{"dataset", program().catalog.dataset_names()},
                                   std::pair{"model", program().catalog.model_names()}}) {
    EXPECT_FALSE(known.empty());
    for (const std::string& name : known) EXPECT_NO_THROW(RunSettings(program().catalog).set(key, name, ""));
  }
  RunSettings settings(program().catalog);
  EXPECT_THAT(message_of<ConfigError>([&] { settings.set("dataset", "emnist", "--dataset"); }),
              AllOf(HasSubstr("--dataset 'emnist'"), HasSubstr("cifar10")));
}

// What the library refuses, before data is read.
std::string refusal_with(const std::function<void(RunConfig&)>& change) {
  RunSettings settings(program().catalog);
  change(settings.config);
  try {
    settings.validate();
    return "";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

TEST(RunSettings, CaseB2WarmupLongerThanTheRun) {
  const auto with = [](int64_t warmup, int64_t total, const std::string& sched = "cosine") {
    return refusal_with([&](RunConfig& c) {
      c.warmup_steps = warmup;
      c.max_steps = total;
      c.sched = sched;
    });
  };
  for (const char* sched : {"cosine", "linear", "constant"}) {
    EXPECT_THAT(with(20, 10, sched),
                AllOf(HasSubstr("`warmup_steps` 20"), HasSubstr("10 updates"), Not(HasSubstr("\n"))));
  }
  for (const auto& [warmup, total] : {std::pair(0, 1), std::pair(1, 1), std::pair(0, 10), std::pair(10, 10)})
    EXPECT_EQ(with(warmup, total), "");
}

TEST(RunSettings, WhatTheLibraryRefusesIsRefused) {
  const auto nesterov = [](const std::string& opt, double momentum) {
    return refusal_with([&](RunConfig& c) {
      c.opt = opt;
      c.momentum = momentum;
      c.nesterov = true;
    });
  };
  EXPECT_EQ(nesterov("sgd", 0.9), "");
  EXPECT_THAT(nesterov("sgd", 0), AllOf(HasSubstr("`nesterov`"), HasSubstr("`momentum`")));
  EXPECT_THAT(nesterov("adamw", 0.9), AllOf(HasSubstr("`nesterov`"), HasSubstr("`opt` sgd")));
  const auto min_lr = [](const std::string& sched) {
    return refusal_with([&](RunConfig& c) {
      c.min_lr = 1;
      c.sched = sched;
    });
  };
  EXPECT_THAT(min_lr("linear"), AllOf(HasSubstr("`min_lr` 1 "), HasSubstr("`lr` 0.001")));
  EXPECT_EQ(min_lr("constant"), "");
  EXPECT_THAT(refusal_with([](RunConfig& c) { c.best_metric = "ema_val_acc"; }), HasSubstr("`ema`"));
}

// With --max-time alone the number of updates is not known.
TEST(RunSettings, ARunWithoutAnEndMayWarmUp) {
  EXPECT_EQ(refusal_with([](RunConfig& c) {
              c.max_time = 60;
              c.sched = "constant";
              c.warmup_steps = 100;
            }),
            "");
}

TEST(RunSettings, RangesOfRecipesAreKept) {
  RunSettings settings(program().catalog);
  const auto refusal = [&](const char* key, const char* text) {
    return message_of<ConfigError>([&] { settings.set(key, text, std::string("--") + key); });
  };
  EXPECT_THAT(refusal("dropout", "1"),
              HasSubstr("--dropout '1': must be a number of at least 0 and less than 1"));
  EXPECT_THAT(refusal("hidden", "0"), HasSubstr("--hidden '0': must be a whole number from 1 to 1000000"));
  EXPECT_THAT(refusal("label_smoothing", "1.5"), HasSubstr("must be a number from 0 to 1"));
  EXPECT_NO_THROW(settings.set("label_smoothing", "1", ""));
}

TEST(RunSettings, SettledTextsStandInPlaceOfWhatWasAsked) {
  const RunSettings settings(program().catalog);
  const Settings texts = settings.texts({{"precision", "bf16"}});
  for (const auto& [key, text] : {std::pair{"precision", "bf16"}, std::pair{"matmul", "auto"}}) {
    const auto found = std::ranges::find(texts, key, &Setting::key);
    ASSERT_NE(found, texts.end()) << key;
    EXPECT_EQ(found->text, text) << key;
  }
  EXPECT_EQ(settings.config.precision, "auto");
}

TEST(RunSettings, WriteValuesAsToml) {
  RunSettings settings(program().catalog);
  settings.set("data_dir", "/a\"b\\c\n", "");
  settings.config.max_steps = 5;
  settings.config.lr = 1;
  settings.config.seed = kMaxSeed;
  const std::string text = settings.toml({});
  EXPECT_THAT(text, HasSubstr("data_dir = \"/a\\\"b\\\\c\\u000A\"\n"));
  EXPECT_THAT(text, HasSubstr("max_steps = 5\n"));
  EXPECT_THAT(text, HasSubstr("epochs = \"none\"\n"));
  EXPECT_THAT(text, HasSubstr("lr = 1.0\n"));
  EXPECT_THAT(text, HasSubstr("nesterov = false\n"));
  EXPECT_THAT(text, HasSubstr("seed = 4294967295\n"));
}

TEST(RunSettings, TomlHoldsOneOfTheTwoThatExcludeEachOther) {
  RunSettings settings(program().catalog);
  EXPECT_THAT(settings.toml({}), HasSubstr("\ngrad_accum_steps = 4\n"));
  settings.config.global_batch_size = 128;
  EXPECT_THAT(settings.toml({}),
              AllOf(HasSubstr("\nglobal_batch_size = 128\n"), Not(HasSubstr("grad_accum_steps"))));
}

// Two models that share one option, and have one of their own each.
template <int kNumber>
class Toy final : public ModelRecipe {
 public:
  void flags(Flags& flags) override {
    flags.add("width", width, "Width of it all.");
    flags.add("own" + std::to_string(kNumber), own, "An option of its own.");
  }
  Task task(const DatasetSpec& /*spec*/) override { return {}; }
  int64_t width = 3;
  bool own = false;
};

class NoData final : public DataRecipe {
 public:
  std::shared_ptr<const Dataset> load(Split /*part*/) override { return nullptr; }
};

TEST(RunSettings, AnOptionOfAModelThatIsNotChosenIsRefused) {
  Catalog catalog;
  catalog.add_model("one", [] { return std::make_unique<Toy<1>>(); });
  catalog.add_model("two", [] { return std::make_unique<Toy<2>>(); });
  catalog.add_dataset("none", [] { return std::make_unique<NoData>(); });
  RunSettings settings(catalog);
  settings.set("model", "two", "--model");
  settings.set("width", "8", "--width");
  settings.set("own2", "true", "--own2");
  EXPECT_NO_THROW(settings.validate());
  EXPECT_EQ(settings.rebuilding().at("width"), "8");
  EXPECT_THAT(settings.toml({}),
              AllOf(HasSubstr("width = 8"), HasSubstr("own2 = true"), Not(HasSubstr("own1"))));
  settings.set("own1", "true", "job.toml, line 3: own1");
  EXPECT_THAT(message_of<ConfigError>([&] { settings.validate(); }),
              HasSubstr("job.toml, line 3: own1: belongs to --model one, not to two"));
}

// A model with one option: its key, and an alias if there is one.
class OneFlag final : public ModelRecipe {
 public:
  OneFlag(std::string key, std::string alias) : key_(std::move(key)), alias_(std::move(alias)) {}
  void flags(Flags& flags) override {
    Flags::Entry& entry = flags.add(key_, value_, "Mine.");
    if (!alias_.empty()) entry.alias(alias_);
  }
  Task task(const DatasetSpec& /*spec*/) override { return {}; }

 private:
  std::string key_, alias_;
  double value_ = 0;
};

class Text final : public ModelRecipe {
 public:
  void flags(Flags& flags) override { flags.add("temperature", text_, "Heat."); }
  Task task(const DatasetSpec& /*spec*/) override { return {}; }

 private:
  std::string text_;
};

// Models and a data set that share an option, each with a default and a range of its own.
class Shared final : public ModelRecipe {
 public:
  Shared(double value, double max) : temperature(value), max_(max) {}
  void flags(Flags& flags) override { flags.add("temperature", temperature, "Heat.").range(0, max_); }
  Task task(const DatasetSpec& /*spec*/) override { return {}; }
  double temperature;

 private:
  double max_;
};

class SharedData final : public DataRecipe {
 public:
  void flags(Flags& flags) override { flags.add("temperature", temperature_, "Heat."); }
  std::shared_ptr<const Dataset> load(Split /*part*/) override { return nullptr; }

 private:
  double temperature_ = 3;
};

class SharedOption : public ::testing::Test {
 protected:
  SharedOption() {
    catalog_.add_model("soft", [] { return std::make_unique<Shared>(1, 100); });
    catalog_.add_model("hard", [] { return std::make_unique<Shared>(20, 50); });
    catalog_.add_dataset("none", [] { return std::make_unique<NoData>(); });
    catalog_.add_dataset("warm", [] { return std::make_unique<SharedData>(); });
  }
  Catalog catalog_;
};

TEST_F(SharedOption, TheDefaultOfTheChosenRecipeIsRecordedAndReadBack) {
  RunSettings settings(catalog_);
  settings.set("model", "hard", "--model");
  EXPECT_THAT(settings.toml({}), HasSubstr("temperature = 20.0\n"));
  EXPECT_EQ(settings.rebuilding().at("temperature"), "20");
  const Settings texts = settings.texts({});
  const auto found = std::ranges::find(texts, "temperature", &Setting::key);
  ASSERT_NE(found, texts.end());
  EXPECT_EQ(found->text, "20");
  EXPECT_EQ(found->default_text, "20");
  RunSettings again(catalog_);
  again.restore("a file", settings.rebuilding());
  EXPECT_EQ(again.toml({}), settings.toml({}));
  const std::vector<FlagInfo> flags = settings.flags();
  EXPECT_EQ(std::ranges::find(flags, "temperature", &FlagInfo::key)->default_text,
            "3 for warm, 1 for soft, 20 for hard");
}

TEST_F(SharedOption, TheRangeOfTheChosenRecipeHolds) {
  RunSettings settings(catalog_);
  EXPECT_NO_THROW(settings.set("temperature", "70", "--temperature"));
  settings.set("model", "hard", "--model");
  EXPECT_THAT(message_of<ConfigError>([&] { settings.set("temperature", "70", "--temperature"); }),
              HasSubstr("--temperature '70': must be a number from 0 to 50"));
}

TEST_F(SharedOption, AModelAndADataSetThatBeginWithOtherValuesNeedOneFromTheUser) {
  RunSettings settings(catalog_);
  settings.set("dataset", "warm", "--dataset");
  EXPECT_THAT(message_of<ConfigError>([&] { settings.validate(); }),
              HasSubstr("--temperature: is 3 by default for warm, and 1 for soft"));
  settings.set("temperature", "5", "--temperature");
  EXPECT_NO_THROW(settings.validate());
}

TEST_F(SharedOption, OtherKindsOfValueAreRefused) {
  catalog_.add_model("third", [] { return std::make_unique<OneFlag>("temperature", ""); });
  EXPECT_NO_THROW(RunSettings{catalog_});
  catalog_.add_model("fourth", [] { return std::make_unique<Text>(); });
  EXPECT_THAT(message_of<std::logic_error>([&] { RunSettings{catalog_}; }),
              HasSubstr("'temperature' of a recipe has another kind of value in another recipe"));
}

TEST(RunSettings, ADefaultThatItsOwnRangeExcludesIsAnErrorOfTheProgram) {
  Catalog catalog;
  catalog.add_model("hot", [] { return std::make_unique<Shared>(200, 100); });
  EXPECT_THAT(message_of<std::logic_error>([&] { RunSettings{catalog}; }),
              HasSubstr("its default is '200', and must be a number from 0 to 100"));
}

// What a program with these models says; empty: nothing.
std::string complaint_about(const std::vector<std::pair<std::string, std::string>>& flags) {
  Catalog catalog;
  for (size_t i = 0; i < flags.size(); ++i) {
    catalog.add_model("model" + std::to_string(i),
                      [flag = flags[i]] { return std::make_unique<OneFlag>(flag.first, flag.second); });
  }
  try {
    const RunSettings settings(catalog);
    return "";
  } catch (const std::logic_error& error) {
    return error.what();
  }
}

TEST(RunSettings, ARecipeMayNotTakeANameThatEveryProgramHas) {
  for (const char* taken : {"lr", "wd", "learning_rate", "optimizer", "num_workers", "config", "help",
                            "dataset", "model", "predictions", "json", "num_classes", "input_shape",
                            "vocab_size", "update", "version", "git_commit", "black_box"}) {
    EXPECT_THAT(complaint_about({{taken, ""}}), HasSubstr(std::string("flag '") + taken + "' of a recipe"));
    EXPECT_THAT(complaint_about({{"mine", taken}}),
                HasSubstr(std::string("flag 'mine' of a recipe: its alias '") + taken + "'"));
  }
  EXPECT_THAT(complaint_about({{"wd", ""}}), HasSubstr("for 'weight_decay'"));
  EXPECT_EQ(complaint_about({{"mine", "my_own"}}), "");
}

TEST(RunSettings, RecipesMayShareAKeyButNoAlias) {
  EXPECT_EQ(complaint_about({{"mine", "my_own"}, {"mine", "my_own"}}), "");
  EXPECT_THAT(complaint_about({{"mine", "other"}, {"other", ""}}),
              HasSubstr("'other' of a recipe is one of another recipe"));
  EXPECT_THAT(complaint_about({{"other", ""}, {"mine", "other"}}),
              HasSubstr("its alias 'other' is one of another recipe"));
}

}  // namespace
}  // namespace gradstep::testing

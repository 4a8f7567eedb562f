// Where settings come from: precedence, config files and the environment, with their complaints.
// no torch
#include "app/train_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "commands/arguments.h"
#include "gradstep/base/error.h"
#include "support/gradstep_program.h"

namespace gradstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

// What came out, with the options of the recipes.
struct Resolved : RunConfig {
  std::map<std::string, std::string> texts{};
  int64_t hidden = 0;
  std::string toml{};
  std::vector<std::string> warnings{};
  bool operator==(const Resolved& other) const { return texts == other.texts; }
};

class TrainSettingsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string folder = (std::filesystem::temp_directory_path() / "gradstep_config_XXXXXX").string();
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string file(const std::string& text) const {
    const std::string path = folder_ / "job.toml";
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  [[nodiscard]] static Resolved resolved(const Words& words, const Environment& environment = {}) {
    RunSettings settings(program().catalog);
    Resolved result;
    result.warnings =
        resolve_train_settings(parse_arguments(command("train"), words).flags, environment, settings);
    static_cast<RunConfig&>(result) = settings.config;
    for (const Setting& setting : settings.texts({})) result.texts[setting.key] = setting.text;
    result.hidden = std::stoll(result.texts.at("hidden"));
    result.toml = settings.toml({});
    return result;
  }

  [[nodiscard]] static std::string refusal(const Words& words, const Environment& environment = {}) {
    try {
      (void)resolved(words, environment);
      return "";
    } catch (const ConfigError& error) {
      const std::string what = error.what();
      EXPECT_EQ(what.find('\n'), std::string::npos) << what;
      return what;
    }
  }

  [[nodiscard]] std::string file_refusal(const std::string& text) const {
    return refusal({"-c", file(text)});
  }

 private:
  std::filesystem::path folder_;
};

TEST_F(TrainSettingsTest, FlagsOverEnvironmentOverFileOverDefault) {
  const Words config{"--config", file("batch_size = 2\nlr = 2.0\nhidden = 2\n")};
  const Environment environment{{"GRADSTEP_BATCH_SIZE", "3"}, {"GRADSTEP_LR", "3"}};
  Words all = config;
  all.insert(all.end(), {"--batch-size", "4"});
  const Resolved both = resolved(all, environment);
  EXPECT_EQ(both.batch_size, 4);  // flag
  EXPECT_EQ(both.lr, 3);          // environment
  EXPECT_EQ(both.hidden, 2);      // file
  EXPECT_EQ(both.workers, 1);     // default
  EXPECT_EQ(resolved(config).batch_size, 2);
  EXPECT_EQ(resolved({}, environment).batch_size, 3);
  EXPECT_EQ(resolved({}).batch_size, 32);
}

TEST_F(TrainSettingsTest, ASwitchOfTheFileCanBeTakenBack) {
  const std::string path = file("opt = \"sgd\"\nnesterov = true\n");
  EXPECT_TRUE(resolved({"-c", path}).nesterov);
  EXPECT_FALSE(resolved({"-c", path}, {{"GRADSTEP_NESTEROV", "0"}}).nesterov);
  EXPECT_FALSE(resolved({"-c", path, "--nesterov=false"}, {{"GRADSTEP_NESTEROV", "1"}}).nesterov);
}

TEST_F(TrainSettingsTest, ALengthThatIsNotGivenStaysOpen) {
  EXPECT_EQ(resolved({}).epochs, std::nullopt);
  EXPECT_THAT(resolved({}).toml, HasSubstr("epochs = \"none\"\n"));
  EXPECT_EQ(resolved({"--max-steps", "200"}).epochs, std::nullopt);
  EXPECT_EQ(resolved({"--max-steps", "200", "--epochs", "3"}).epochs, 3);
}

TEST_F(TrainSettingsTest, TheResolvedFileReadsBackToTheSameSettings) {
  const std::vector<Words> jobs{
      {},
      {"--global-batch-size", "96", "--lr", "0.1", "--opt", "sgd", "--nesterov", "--seed", "4294967295"},
      {"--max-steps", "300", "--min-lr", "1e-5", "--eval-interval", "90s", "--data-dir",
       "a \"b\" \\ \xC3\xA9\n\x01"},
      {"--epochs", "3", "--eps", "1e-12", "--clip-grad", "1", "--quiet", "--device", "cuda:1", "--sched",
       "linear"}};
  for (const Words& job : jobs) {
    const Resolved config = resolved(job);
    EXPECT_EQ(resolved({"-c", file(config.toml)}), config);
  }
}

TEST_F(TrainSettingsTest, TomlValuesOfEachKind) {
  const Resolved config = resolved(
      {"-c", file("lr = 1\nweight_decay = 1e-2\nbatch-size = 1_000\nhidden = \"64\"\ndecay_all = \"yes\"\n"
                  "log_interval = 0x10\nnum_workers = 3\nmax_steps = \"none\"\n")});
  EXPECT_EQ(config.lr, 1);
  EXPECT_EQ(config.weight_decay, 1e-2);
  EXPECT_EQ(config.batch_size, 1000);
  EXPECT_EQ(config.hidden, 64);
  EXPECT_TRUE(config.decay_all);
  EXPECT_EQ(config.log_interval, 16);
  EXPECT_EQ(config.workers, 3);
}

TEST_F(TrainSettingsTest, FileErrorsNameLineAndColumn) {
  EXPECT_THAT(file_refusal("lr = 1\nepochz = 7\n"),
              EndsWith("job.toml, line 2, column 1: unknown key epochz; did you mean epochs?"));
  EXPECT_THAT(file_refusal("lr = 1\nepochs =\n"), HasSubstr("job.toml, line 2, column 9: not TOML: "));
  EXPECT_THAT(file_refusal("\n\nlr = \"12x\"\n"),
              EndsWith("job.toml, line 3, column 6: lr '12x': must be a number of at least 0"));
  EXPECT_THAT(file_refusal("batch_size = 64.0\n"),
              HasSubstr("line 1, column 14: batch_size '64.0': must be a whole number"));
  EXPECT_THAT(file_refusal("batch_size = true\n"), HasSubstr("batch_size 'true': must be a whole number"));
  EXPECT_THAT(file_refusal("lr = nan\n"), HasSubstr("lr 'nan': must be a number"));
  EXPECT_THAT(file_refusal("lr = inf\n"), HasSubstr("lr 'inf': must be a number"));
  EXPECT_THAT(file_refusal("nesterov = 2\n"), HasSubstr("nesterov '2': must be true or false"));
}

TEST_F(TrainSettingsTest, TablesListsAndDatesAreRefused) {
  EXPECT_THAT(file_refusal("seed = 1\nlr = [1, 2]\n"),
              HasSubstr("line 2, column 6: lr is a table, a list or a date"));
  EXPECT_THAT(file_refusal("[lr]\nx = 1\n"), HasSubstr("line 1, column 1: lr is a table"));
  EXPECT_THAT(file_refusal("lr = 2026-01-01\n"), HasSubstr("lr is a table, a list or a date"));
  EXPECT_THAT(file_refusal("[optimizer]\nlr = 1\n"), HasSubstr("optimizer is a table"));
}

TEST_F(TrainSettingsTest, AKeyOfManyPartsIsRefused) {
  std::string key = "a";
  for (int i = 0; i < 60'000; ++i) key += ".a";
  for (const std::string& text : {key + " = 1\n", "[" + key + "]\n", "lr = {" + key + " = 1}\n"}) {
    EXPECT_THAT(file_refusal("seed = 1\n" + text), AllOf(HasSubstr("line 2"), HasSubstr("points")));
  }
  const std::string points(500, '.');
  EXPECT_EQ(file_refusal("data_dir = \"" + points + "\\\"" + points + "\"  # " + points + "\n"), "");
}

TEST_F(TrainSettingsTest, AKeyGivenTwiceIsRefused) {
  EXPECT_THAT(file_refusal("lr = 1\nlr = 2\n"), HasSubstr("line 2"));
  EXPECT_THAT(file_refusal("lr = 1\nlearning_rate = 2\n"), HasSubstr("is given twice"));
}

TEST_F(TrainSettingsTest, AFileOfFilesIsNoSetting) {
  EXPECT_THAT(file_refusal("config = \"other.toml\"\n"), HasSubstr("unknown key config"));
}

TEST_F(TrainSettingsTest, AFileThatCannotBeReadIsNamed) {
  EXPECT_THAT(refusal({"-c", "/nonexistent/x.toml"}),
              AllOf(HasSubstr("/nonexistent/x.toml"), HasSubstr("No such file")));
  EXPECT_THAT(refusal({"-c", "/"}), AllOf(HasSubstr("config file /:"), HasSubstr("Is a directory")));
  EXPECT_EQ(resolved({"-c", file("")}), resolved({}));
}

TEST_F(TrainSettingsTest, AFileWithoutEndIsRefusedAndAPipeIsRead) {
  EXPECT_THAT(refusal({"-c", "/dev/zero"}),
              AllOf(HasSubstr("/dev/zero"), HasSubstr("more than 1048576 bytes")));
  EXPECT_THAT(file_refusal(std::string(1 << 20, '#') + "\n"), HasSubstr("more than 1048576 bytes"));
  EXPECT_EQ(resolved({"-c", file(std::string((1 << 20) - 12, '#') + "\nhidden = 5\n")}).hidden, 5);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(write(ends[1], "hidden = 7\n", 11), 11);
  close(ends[1]);
  EXPECT_EQ(resolved({"-c", "/dev/fd/" + std::to_string(ends[0])}).hidden, 7);
  close(ends[0]);
}

TEST_F(TrainSettingsTest, TheEnvironmentMayNameTheFile) {
  const Environment environment{{"GRADSTEP_CONFIG", file("hidden = 5\n")}};
  EXPECT_EQ(resolved({}, environment).hidden, 5);
}

TEST_F(TrainSettingsTest, EnvironmentErrorsNameTheVariable) {
  EXPECT_EQ(refusal({}, {{"GRADSTEP_LR", "12x"}}), "GRADSTEP_LR '12x': must be a number of at least 0");
  EXPECT_EQ(refusal({}, {{"GRADSTEP_LR", ""}}), "GRADSTEP_LR is empty; give it a value, or unset it");
  EXPECT_THAT(refusal({}, {{"GRADSTEP_LR", "1"}, {"GRADSTEP_LEARNING_RATE", "2"}}),
              HasSubstr("are the same setting"));
  EXPECT_EQ(resolved({}, {{"GRADSTEP_LEARNING_RATE", "2"}}).lr, 2);
}

TEST_F(TrainSettingsTest, UnknownVariablesWarnWithTheNearest) {
  const Resolved settings = resolved({}, {{"GRADSTEP_BATCHSIZE", "3"}, {"GRADSTEP_TENSORBOARD", "1"}});
  EXPECT_THAT(settings.warnings,
              ElementsAre("GRADSTEP_BATCHSIZE is not a variable of gradstep and is ignored; did you mean "
                          "GRADSTEP_BATCH_SIZE?",
                          "GRADSTEP_TENSORBOARD is not a variable of gradstep and is ignored"));
  EXPECT_EQ(settings, resolved({}));
}

TEST_F(TrainSettingsTest, ReadsTheEnvironmentOfTheProcess) {
  ASSERT_EQ(setenv("GRADSTEP_HIDDEN", "7=8", 1), 0);
  const Environment environment = gradstep_environment();
  unsetenv("GRADSTEP_HIDDEN");
  EXPECT_THAT(environment,
              ::testing::Contains(std::pair<std::string, std::string>("GRADSTEP_HIDDEN", "7=8")));
  for (const auto& [name, text] : environment) EXPECT_THAT(name, ::testing::StartsWith("GRADSTEP_"));
}

TEST_F(TrainSettingsTest, AccumulationAndGlobalBatchSizeExcludeEachOther) {
  const std::string both = refusal({"--grad-accum-steps", "4", "--global-batch-size", "128"});
  EXPECT_THAT(both, AllOf(HasSubstr("--grad-accum-steps and --global-batch-size"), HasSubstr("drop one")));
  const std::string path = file("global_batch_size = 128\n");
  EXPECT_THAT(refusal({"-c", path, "--grad-accum-steps", "4"}),
              AllOf(HasSubstr("--grad-accum-steps and "),
                    HasSubstr("job.toml, line 1, column 21: global_batch_size")));
  EXPECT_EQ(resolved({"-c", path}).global_batch_size, 128);
  EXPECT_EQ(resolved({"-c", path, "--grad-accum-steps", "2", "--global-batch-size", "none"}).global_batch(1),
            64);
}

TEST_F(TrainSettingsTest, CaseB2IsRefusedBeforeDataIsRead) {
  EXPECT_THAT(refusal({"--warmup-steps", "20", "--max-steps", "10", "--data-dir", "/nonexistent"}),
              AllOf(HasSubstr("20"), HasSubstr("10")));
}

TEST_F(TrainSettingsTest, NumbersThatDoNotParseWhole) {
  for (const char* bad : {"12x", "1e", "nan", "inf", "1e999", "-1", " 1"}) {
    EXPECT_EQ(refusal({}, {{"GRADSTEP_CLIP_GRAD", bad}}),
              "GRADSTEP_CLIP_GRAD '" + std::string(bad) + "': must be a number of at least 0");
  }
  EXPECT_EQ(refusal({"--epochs", "0"}), "--epochs '0': must be a whole number from 1 to 1000000000, or none");
  EXPECT_EQ(refusal({"--batch-size", "auto"}),
            "--batch-size 'auto': must be a whole number from 1 to 1000000000");
}

}  // namespace
}  // namespace gradstep::testing

// gradstep doctor on the folder of a run: whole, and with one thing wrong after the other.
#include "commands/doctor_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <utime.h>

#include <ctime>
#include <nlohmann/json.hpp>
#include <set>

#include "base/memory_limit.h"
#include "commands/doctor_run.h"
#include "gradstep/base/error.h"
#include "gradstep/checkpoint/checkpoint.h"
#include "gradstep/checkpoint/model_file.h"
#include "gradstep/checkpoint/output_dir.h"
#include "support/message_of.h"
#include "support/small_run.h"
#include "support/trained.h"

namespace gradstep::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class DoctorRun : public ::testing::Test {
 protected:
  // Six updates, a checkpoint and an evaluation every two.
  void SetUp() override {
    run_.config.output_dir = folder();
    run_.config.max_steps = 6;
    run_.config.save_interval = parse_interval("2");
    run_.config.eval_interval = parse_interval("2");
    run_.config.keep_checkpoints = 0;
    (void)trained(run_.settings);
    limit_tensor_memory(0);
  }
  [[nodiscard]] std::string folder() const { return out_.file("run"); }
  [[nodiscard]] std::string checkpoint(int64_t update) const {
    return checkpoints_dir(folder()) + "/" + checkpoint_name(update);
  }
  [[nodiscard]] std::vector<Finding> findings() const {
    std::vector<Finding> found;
    examine_run(folder(), [&](Finding each) { found.push_back(std::move(each)); });
    return found;
  }
  // All that is not well.
  [[nodiscard]] std::vector<Finding> complaints() const {
    std::vector<Finding> found = findings();
    std::erase_if(found, [](const Finding& each) { return each.grade == Grade::kOk; });
    return found;
  }
  void expect_one(Grade grade, const std::string& name, ExitCode code, const std::string& words) const {
    const std::vector<Finding> found = complaints();
    ASSERT_EQ(found.size(), 1U) << (found.empty() ? "" : found[0].text + " / " + found.back().text);
    EXPECT_EQ(found[0].grade, grade);
    EXPECT_EQ(found[0].name, name);
    EXPECT_EQ(found[0].exit_code, code);
    EXPECT_THAT(found[0].text, HasSubstr(words));
  }
  [[nodiscard]] std::string text_of(const std::string& name) const {
    for (const Finding& each : findings()) {
      if (each.name == name) return each.text;
    }
    return "";
  }
  void flip_last_byte(const std::string& path) const {
    const std::string name = fs::relative(path, out_.path()).string();
    std::string bytes = out_.read(name);
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    out_.write(name, bytes);
  }
  SmallRun run_;
  ScratchDir out_;
};

TEST_F(DoctorRun, OfAWholeRunAllIsWell) {
  EXPECT_THAT(complaints(), IsEmpty());
  std::set<std::string> names;
  for (const Finding& each : findings()) names.insert(each.name);
  EXPECT_EQ(names, (std::set<std::string>{"lock", "leftovers", "checkpoints", "settings", "rows", "end",
                                          "rights", "model", "data", "times"}));
  EXPECT_THAT(text_of("checkpoints"),
              AllOf(HasSubstr("3 checkpoints are whole"), HasSubstr("update 6 of 6")));
  EXPECT_THAT(text_of("settings"), HasSubstr("mlp on mnist"));
  EXPECT_THAT(text_of("end"), HasSubstr("ended at update 6: done"));
  EXPECT_THAT(text_of("data"), AllOf(HasSubstr(run_.data.path()), HasSubstr("9 training samples")));
}

TEST_F(DoctorRun, ChangesNothing) {
  const auto state = [&] {
    std::map<std::string, std::pair<fs::file_time_type, uintmax_t>> all;
    for (const auto& entry : fs::recursive_directory_iterator(folder()))
      all[entry.path().string()] = {entry.last_write_time(), entry.is_regular_file() ? entry.file_size() : 0};
    all[folder()] = {fs::last_write_time(folder()), 0};
    return all;
  };
  const auto before = state();
  EXPECT_GT(before.size(), 10U);
  (void)findings();
  EXPECT_EQ(state(), before);
}

TEST_F(DoctorRun, NamesBrokenCheckpoints) {
  flip_last_byte(checkpoint(4) + "/optimizer.safetensors");
  expect_one(Grade::kProblem, "checkpoints", ExitCode::kCheckpoint, "step-00000004/optimizer.safetensors");
  EXPECT_THAT(text_of("data"), HasSubstr("as the run was trained on"));
  fs::remove(checkpoint(6) + "/state.json");
  const std::vector<Finding> found = complaints();
  ASSERT_EQ(found.size(), 3U);
  EXPECT_THAT(found[1].text, HasSubstr("step-00000006/state.json: missing"));
  EXPECT_THAT(found[2].text, HasSubstr("its newest checkpoint is step-00000002"));
}

TEST_F(DoctorRun, NamesAModelThatTheEndedRunHasNot) {
  fs::copy_file(folder() + "/best.safetensors", folder() + "/model.safetensors",
                fs::copy_options::overwrite_existing);
  if (read_model_file(folder() + "/best.safetensors").info.update < 6)
    expect_one(Grade::kWarning, "model", ExitCode::kOk, "and the run ended at 6");
  fs::remove(folder() + "/model.safetensors");
  expect_one(Grade::kWarning, "model", ExitCode::kOk, "missing, though the run has ended");
}

TEST_F(DoctorRun, NamesWeightsThatAreNoNumbers) {
  ModelFile file = read_model_file(folder() + "/best.safetensors");
  file.tensors[1].second[0] = NAN;
  save_model(posix_file_system(), folder() + "/best.safetensors", file.tensors, file.info);
  expect_one(Grade::kProblem, "model", ExitCode::kDiverged,
             "tensor " + file.tensors[1].first + " is not finite");
}

TEST_F(DoctorRun, NamesModelFilesThatAreBrokenMissingOrOfAnotherUpdate) {
  const std::string best = folder() + "/best.safetensors";
  const ModelFile file = read_model_file(best);
  ModelInfo other = file.info;
  other.update = 1;
  save_model(posix_file_system(), best, file.tensors, other);
  expect_one(Grade::kWarning, "model", ExitCode::kOk,
             "is of update 1, while the best evaluation is of update");
  other.update = 9;  // written before a checkpoint that never came
  save_model(posix_file_system(), best, file.tensors, other);
  EXPECT_THAT(complaints(), IsEmpty());
  fs::resize_file(best, fs::file_size(best) - 1);
  expect_one(Grade::kProblem, "model", ExitCode::kCheckpoint, best);
  fs::remove(best);
  expect_one(Grade::kWarning, "model", ExitCode::kOk, "missing");
  ASSERT_EQ(mkfifo(best.c_str(), 0600), 0);
  expect_one(Grade::kProblem, "model", ExitCode::kCheckpoint, "no plain file");
}

TEST_F(DoctorRun, NamesDataThatMovedOrChanged) {
  fs::rename(run_.data.file("train-images-idx3-ubyte"), run_.data.file("away"));
  expect_one(Grade::kProblem, "data", ExitCode::kData, "train-images");
  fs::rename(run_.data.file("away"), run_.data.file("train-images-idx3-ubyte"));
  EXPECT_THAT(complaints(), IsEmpty());
  std::string bytes = run_.data.read("train-images-idx3-ubyte");
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  run_.data.write("train-images-idx3-ubyte", bytes);
  expect_one(Grade::kProblem, "data", ExitCode::kData, "is not what the run was trained on (fingerprint ");
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  run_.data.write("train-images-idx3-ubyte", bytes);
  bytes = run_.data.read("t10k-images-idx3-ubyte");
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  run_.data.write("t10k-images-idx3-ubyte", bytes);
  expect_one(Grade::kWarning, "data", ExitCode::kOk, "the evaluation part is another than before");
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  run_.data.write("t10k-images-idx3-ubyte", bytes);
  fs::rename(run_.data.path(), run_.data.path() + "-moved");
  expect_one(Grade::kProblem, "data", ExitCode::kData, run_.data.path() + ", is not there; put it back");
  fs::rename(run_.data.path() + "-moved", run_.data.path());
}

TEST_F(DoctorRun, NamesSettingsThatCannotBeRead) {
  const std::string text = out_.read("run/config.toml");
  out_.write("run/config.toml", text + "\nlearning = 3\n");
  expect_one(Grade::kProblem, "settings", ExitCode::kUsage, "config.toml, line ");
  fs::remove(folder() + "/config.toml");
  expect_one(Grade::kWarning, "settings", ExitCode::kOk, "missing");
  ASSERT_EQ(mkfifo((folder() + "/config.toml").c_str(), 0600), 0);
  expect_one(Grade::kProblem, "settings", ExitCode::kUsage, "no plain file");
}

TEST_F(DoctorRun, SaysWhatAKilledRunLeft) {
  fs::create_directory(checkpoints_dir(folder()) + "/.tmp-step-00000008-4711");
  out_.write("run/.config.toml.tmp-4711", "x");
  fs::rename(checkpoint(4), checkpoints_dir(folder()) + "/.old-step-00000004-4711");
  EXPECT_THAT(complaints(), IsEmpty());
  EXPECT_THAT(text_of("leftovers"),
              AllOf(HasSubstr("2 leftovers"), HasSubstr("step-00000004 was moved aside")));
  EXPECT_THAT(text_of("checkpoints"), HasSubstr("2 checkpoints are whole"));
}

TEST_F(DoctorRun, TellsAHeldLockFromOneThatIsLeftOver) {
  out_.write("run/.gradstep.lock", "pid 2147483647 on nowhere\n1-2\n");
  EXPECT_THAT(complaints(), IsEmpty());
  EXPECT_THAT(text_of("lock"), HasSubstr("left over from pid 2147483647 on nowhere"));
  {
    const OutputDir held(folder(), OutputDir::Use::kGoOn);
    EXPECT_THAT(complaints(), IsEmpty());
    EXPECT_THAT(text_of("lock"), HasSubstr("held by pid " + std::to_string(getpid())));
    EXPECT_TRUE(is_going_on(folder()));
    EXPECT_THAT(text_of("end"), HasSubstr("goes on"));
  }
  EXPECT_FALSE(is_going_on(folder()));
  EXPECT_EQ(text_of("lock"), "free");
  ASSERT_EQ(mkfifo((folder() + "/.gradstep.lock").c_str(), 0600), 0);
  expect_one(Grade::kProblem, "lock", ExitCode::kUsage, "no plain file");
}

TEST_F(DoctorRun, NamesCheckpointsThatAreLost) {
  fs::remove_all(checkpoints_dir(folder()));
  expect_one(Grade::kProblem, "checkpoints", ExitCode::kCheckpoint, "a run that has ended");
  fs::remove(folder() + "/metrics.jsonl");
  expect_one(Grade::kWarning, "checkpoints", ExitCode::kOk, "none yet");
  fs::create_symlink(out_.file("other-disk"), checkpoints_dir(folder()));
  expect_one(Grade::kProblem, "checkpoints", ExitCode::kCheckpoint, "mount its disk");
}

// Links that lead to themselves cannot be looked at, not even by root; what they hide may be whole.
TEST_F(DoctorRun, CallsNothingDamagedThatCannotBeRead) {
  const std::string loop = out_.file("loop");
  fs::create_symlink(loop, loop);
  const std::string state = checkpoint(6) + "/state.json";
  fs::remove(state);
  fs::create_symlink(loop, state);
  for (const char* name : {"config.toml", "metrics.jsonl", "model.safetensors"}) {
    fs::remove(folder() + "/" + name);
    fs::create_symlink(loop, folder() + "/" + name);
  }
  std::set<std::string> names;
  for (const Finding& each : complaints()) {
    EXPECT_EQ(each.grade, Grade::kProblem);
    EXPECT_THAT(each.text, AllOf(HasSubstr("cannot look at"), Not(HasSubstr("damaged"))));
    names.insert(each.name);
  }
  EXPECT_EQ(names, (std::set<std::string>{"checkpoints", "settings", "rows", "model"}));
}

TEST_F(DoctorRun, NamesFilesOfTheFuture) {
  const utimbuf future{std::time(nullptr) + 3600, std::time(nullptr) + 3600};
  ASSERT_EQ(utime((folder() + "/config.toml").c_str(), &future), 0);
  expect_one(Grade::kWarning, "times", ExitCode::kOk, "config.toml: was written in the future");
}

TEST_F(DoctorRun, ThatIsNoRunIsRefused) {
  const auto refusal = [&](const std::string& path) {
    return message_of<CheckpointError>([&] { (void)run_doctor({.run = path}); });
  };
  EXPECT_THAT(refusal(out_.file("absent")), HasSubstr("no such folder; give the output folder of a run"));
  EXPECT_THAT(refusal(folder() + "/config.toml"), HasSubstr("is a file; give"));
  EXPECT_THAT(refusal(run_.data.path()), HasSubstr("no run in it; give"));
}

TEST_F(DoctorRun, AsLinesAndAsJson) {
  const auto output = [&](const DoctorOptions& options, int& code) {
    ::testing::internal::CaptureStdout();
    code = run_doctor(options);
    limit_tensor_memory(0);
    return ::testing::internal::GetCapturedStdout();
  };
  flip_last_byte(checkpoint(2) + "/model.safetensors");
  int code = 0;
  const std::string lines = output({.run = folder() + "/checkpoints"}, code);
  EXPECT_EQ(code, 4);
  EXPECT_THAT(lines, HasSubstr("\nok       lock         free\n"));
  EXPECT_THAT(lines, HasSubstr("\nproblem  checkpoints  " + checkpoint(2) + "/model.safetensors: "));
  EXPECT_THAT(lines, HasSubstr("\n1 problem, "));
  const auto json = nlohmann::json::parse(output({.run = folder(), .json = true}, code));
  EXPECT_EQ(json["exit_code"], 4);
  EXPECT_EQ(json["run"], folder());
  EXPECT_EQ(json["findings"][0]["name"], "processor");
  const std::string last = output({.run = folder(), .quiet = true}, code);
  EXPECT_THAT(last, ::testing::StartsWith("1 problem, "));
  EXPECT_EQ(std::count(last.begin(), last.end(), '\n'), 1);
}

}  // namespace
}  // namespace gradstep::testing

// ckpt ls, verify, diff and export on checkpoints that are whole, flipped, cut, missing or different.
#include "commands/ckpt_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "checkpoint/manifest.h"
#include "gradstep/base/error.h"
#include "gradstep/checkpoint/checkpoint.h"
#include "gradstep/checkpoint/model_file.h"
#include "gradstep/io/safetensors.h"
#include "io/hash.h"
#include "support/failing_file_system.h"
#include "support/full_state.h"
#include "support/gradstep_program.h"
#include "support/message_of.h"
#include "support/scratch_dir.h"
#include "support/toys.h"

namespace gradstep::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class Ckpt : public ::testing::Test {
 protected:
  // Checkpoints 60, the best one, and 120.
  void SetUp() override {
    write(full_state(60, 0.25));
    write(full_state(120));
  }
  void write(const TrainState& state, const std::string& run = "run") {
    FailingFileSystem disk(posix_file_system(), /*syncs=*/false);
    write_checkpoint(disk, dir_.file(run), state);
  }
  [[nodiscard]] std::string run() const { return dir_.file("run"); }
  [[nodiscard]] std::string checkpoint(int64_t update, const std::string& run = "run") const {
    return checkpoints_dir(dir_.file(run)) + "/" + checkpoint_name(update);
  }
  void flip(int64_t update, const std::string& file) {
    const std::string name = "run/checkpoints/" + checkpoint_name(update) + "/" + file;
    std::string bytes = dir_.read(name);
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    dir_.write(name, bytes);
  }
  template <class Call>
  std::string output_of(Call call) {
    ::testing::internal::CaptureStdout();
    try {
      exit_code_ = call();
    } catch (const Error& error) {
      exit_code_ = static_cast<int>(error.exit_code());
      error_ = error.what();
    }
    return ::testing::internal::GetCapturedStdout();
  }
  template <class Call>
  nlohmann::json json_of(Call call) {
    return nlohmann::json::parse(output_of(call));
  }
  ScratchDir dir_;
  int exit_code_ = -1;
  std::string error_;
};

TEST_F(Ckpt, LsShowsAllWithMarks) {
  const std::string text = output_of([&] { return run_ckpt_ls({.path = run()}); });
  EXPECT_EQ(exit_code_, 0);
  EXPECT_THAT(text, ContainsRegex("\nstep-00000060  60 of 500 +3 +11 +0\\.8665 +-Infinity .* best\n"));
  EXPECT_THAT(text, ContainsRegex("\nstep-00000120  120 of 500 .* latest\n"));
  EXPECT_THAT(text, Not(HasSubstr(" \n")));
  EXPECT_THAT(output_of([&] { return run_ckpt_ls({.path = checkpoint(60) + "/"}); }),
              HasSubstr("step-00000060"));
}

TEST_F(Ckpt, LsShowsTheMetricOfTheTask) {
  TrainState state = full_state(120);
  state.best_metric = "val_loss";
  state.last_eval->metrics = {{"mae", 0.5}};
  write(state, "regression");
  const auto list = [&] { return run_ckpt_ls({.path = dir_.file("regression")}); };
  EXPECT_THAT(output_of(list), AllOf(HasSubstr("val_mae"), HasSubstr("0.5000"), Not(HasSubstr("val_acc"))));
  state.last_eval->metrics.clear();
  write(state, "regression");
  EXPECT_THAT(output_of(list), AllOf(HasSubstr("skipped  val_loss"), Not(HasSubstr("val_acc"))));
}

TEST_F(Ckpt, LsOfBrokenOnesGoesOn) {
  flip(120, "model.safetensors");
  // The sizes are right: only the hash tells.
  auto list = json_of([&] { return run_ckpt_ls({.path = run(), .json = true}); })["checkpoints"];
  ASSERT_EQ(list.size(), 2U);
  EXPECT_TRUE(list[1]["broken"].is_null());
  EXPECT_EQ(list[1]["latest"], true);
  list = json_of([&] { return run_ckpt_ls({.path = run(), .verify = true, .json = true}); })["checkpoints"];
  EXPECT_THAT(list[1]["broken"].get<std::string>(), AllOf(HasSubstr("model.safetensors"), HasSubstr("hash")));
  EXPECT_EQ(list[1]["latest"], false);
  EXPECT_FALSE(list[1].contains("update"));
  EXPECT_EQ(list[0]["latest"], true);
  EXPECT_EQ(list[0]["best"], true);
  EXPECT_EQ(list[0]["update"], 60);
  EXPECT_EQ(list[0]["val_loss"], "-Infinity");
  EXPECT_EQ(exit_code_, 0);
  fs::remove(checkpoint(120) + "/manifest.json");
  EXPECT_THAT(output_of([&] { return run_ckpt_ls({.path = run()}); }),
              ContainsRegex("step-00000120 .* broken: .*manifest\\.json: missing"));
}

TEST_F(Ckpt, F7_VerifyNamesEachBrokenFile) {
  EXPECT_THAT(output_of([&] { return run_ckpt_verify({.path = run()}); }),
              ContainsRegex("^step-00000060 ok \\([0-9.]+ kB\\)\nstep-00000120 ok \\([0-9.]+ kB\\)\n$"));
  EXPECT_EQ(exit_code_, 0);
  flip(60, "optimizer.safetensors");
  const std::string text = output_of([&] { return run_ckpt_verify({.path = run()}); });
  EXPECT_EQ(exit_code_, 4);
  EXPECT_THAT(text, ContainsRegex("^step-00000060 broken: .*optimizer\\.safetensors.*\nstep-00000120 ok"));
  EXPECT_THAT(error_, AllOf(HasSubstr("1 of 2 checkpoints are broken"), HasSubstr("optimizer.safetensors"),
                            Not(HasSubstr("\n"))));
  EXPECT_EQ(output_of([&] { return run_ckpt_verify({.path = checkpoint(60), .quiet = true}); }), "");
  EXPECT_EQ(exit_code_, 4);
  const auto json = json_of([&] { return run_ckpt_verify({.path = run(), .json = true}); });
  EXPECT_EQ(json["checkpoints"][0]["ok"], false);
  EXPECT_EQ(json["checkpoints"][1]["ok"], true);
  fs::resize_file(checkpoint(120) + "/state.json", 10);
  (void)output_of([&] { return run_ckpt_verify({.path = checkpoint(120)}); });
  EXPECT_THAT(error_, AllOf(HasSubstr("state.json"), HasSubstr("found 10")));
}

// As by a tool that writes checkpoints itself: the hashes are right, the weights are none.
TEST_F(Ckpt, R64_ASealedCheckpointWithoutNumbersIsBroken) {
  const std::string place = checkpoint(120);
  std::string content = dir_.read("run/checkpoints/step-00000120/model.safetensors");
  const float nan = std::nanf("");
  std::memcpy(content.data() + content.size() - sizeof nan, &nan, sizeof nan);
  dir_.write("run/checkpoints/step-00000120/model.safetensors", content);
  std::vector<ManifestFile> files = read_manifest(place + "/manifest.json");
  for (ManifestFile& file : files) {
    if (file.name == "model.safetensors") file.xxh3 = xxh3(content.data(), content.size());
  }
  dir_.write("run/checkpoints/step-00000120/manifest.json", format_manifest(files));
  EXPECT_NO_THROW(verify_checkpoint(place));
  const std::string text = output_of([&] { return run_ckpt_verify({.path = run()}); });
  EXPECT_EQ(exit_code_, 4);
  EXPECT_THAT(text, ContainsRegex("step-00000120 broken: .*fc2.weight is not finite"));
}

TEST_F(Ckpt, NoCheckpointIsAnError) {
  for (const std::string& path : {dir_.file("absent"), dir_.path()}) {
    for (const auto& call : std::vector<std::function<int()>>{
             [&] { return run_ckpt_ls({.path = path}); }, [&] { return run_ckpt_verify({.path = path}); },
             [&] { return run_ckpt_diff({.first = run(), .second = path}); },
             [&] { return run_ckpt_export({.path = path, .file = dir_.file("a.pt")}); }}) {
      EXPECT_EQ(output_of(call), "");
      EXPECT_EQ(exit_code_, 4) << path;
      EXPECT_THAT(error_, AllOf(HasSubstr(path), HasSubstr("give the output folder of a run")));
    }
  }
}

TEST_F(Ckpt, TheFolderOfCheckpointsStandsForItsRun) {
  const std::string expected = output_of([&] { return run_ckpt_ls({.path = run()}); });
  for (const char* ending : {"/checkpoints", "/checkpoints/"})
    EXPECT_EQ(output_of([&] { return run_ckpt_ls({.path = run() + ending}); }), expected);
  EXPECT_THAT(output_of([&] { return run_ckpt_diff({.first = run() + "/checkpoints", .second = run()}); }),
              HasSubstr("\nequal: "));
  EXPECT_EQ(exit_code_, 0);
}

TEST_F(Ckpt, DiffOfEqualStates) {
  TrainState same = full_state(120);
  same.settings["output_dir"] = "/elsewhere";
  same.settings["log_interval"] = "3";
  same.settings["stop_after"] = "7";
  same.seconds = 1;
  write(same, "other");
  EXPECT_THAT(output_of([&] { return run_ckpt_diff({.first = run(), .second = dir_.file("other")}); }),
              HasSubstr("\nequal: 22 tensors, bit for bit"));
  EXPECT_EQ(exit_code_, 0);
}

TEST_F(Ckpt, DiffNamesSettingsCountersAndTensors) {
  TrainState other = full_state(120);
  other.settings["lr"] = "0.5";
  other.engine.counters.skipped_total = 12;
  other.optimizer[0].second = other.optimizer[0].second.clone();
  other.optimizer[0].second.view(-1)[4] += 0.5;
  write(other, "other");
  const std::string text =
      output_of([&] { return run_ckpt_diff({.first = checkpoint(120), .second = dir_.file("other")}); });
  EXPECT_EQ(exit_code_, 1);
  EXPECT_THAT(text, AllOf(HasSubstr("\nsetting lr: 0.30000000000000004 and 0.5\n"),
                          HasSubstr("\nengine skipped_total: 11 and 12\n"),
                          HasSubstr("\noptimizer fc1.weight.exp_avg: 1 of 6 values, the first at 4: "),
                          HasSubstr("\n3 differences\n")));
}

TEST_F(Ckpt, DiffPassesOverABrokenNewestOneAndSaysSo) {
  flip(120, "model.safetensors");
  ::testing::internal::CaptureStderr();
  const std::string text =
      output_of([&] { return run_ckpt_diff({.first = run(), .second = checkpoint(60)}); });
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("gradstep: warning: "), HasSubstr("step-00000120/model.safetensors")));
  EXPECT_THAT(text, HasSubstr("first:  " + checkpoint(60)));
  EXPECT_EQ(exit_code_, 0);
  (void)output_of([&] { return run_ckpt_diff({.first = checkpoint(120), .second = checkpoint(60)}); });
  EXPECT_EQ(exit_code_, 4);
}

TEST_F(Ckpt, ExportedModelsLoadAndHoldTheTensors) {
  const TrainState state = full_state(120);
  const std::string file = dir_.file("m.safetensors");
  EXPECT_THAT(output_of([&] { return run_ckpt_export({.path = run(), .file = file}); }),
              HasSubstr("m.safetensors: 4 tensors of " + checkpoint(120)));
  EXPECT_EQ(read_model_file(file).info.update, 120);
  std::map<std::string, at::Tensor> found;
  for (const auto& [name, tensor] : read_safetensors(file).tensors) found[name] = tensor;
  for (const auto& [name, tensor] : state.model) EXPECT_TRUE(same_bytes(found.at(name), tensor)) << name;

  (void)output_of([&] {
    return run_ckpt_export(
        {.path = checkpoint(60), .file = dir_.file("ema"), .format = "safetensors", .ema = true});
  });
  EXPECT_EQ(exit_code_, 0);
  const TrainState before = full_state(60, 0.25);
  found.clear();
  for (const auto& [name, tensor] : read_safetensors(dir_.file("ema")).tensors) found[name] = tensor;
  ASSERT_EQ(found.size(), before.ema.size());
  for (const auto& [name, tensor] : before.ema) EXPECT_TRUE(same_bytes(found.at(name), tensor)) << name;

  // From a model file: metadata stay, and the bytes are the same.
  EXPECT_EQ(output_of([&] {
              return run_ckpt_export({.path = file, .file = dir_.file("copy.safetensors"), .quiet = true});
            }),
            "");
  EXPECT_EQ(dir_.read("copy.safetensors"), dir_.read("m.safetensors"));
  (void)output_of([&] { return run_ckpt_export({.path = file, .file = dir_.file("m.pt")}); });
  EXPECT_EQ(exit_code_, 0);
}

TEST_F(Ckpt, ExportOfAveragesKeepsBuffers) {
  TrainState state = full_state(120);
  state.model.emplace_back("bn.running_mean", numbers({4}, 9));
  write(state, "norm");
  (void)output_of([&] {
    return run_ckpt_export({.path = dir_.file("norm"), .file = dir_.file("a.safetensors"), .ema = true});
  });
  std::map<std::string, at::Tensor> found;
  for (const auto& [name, tensor] : read_safetensors(dir_.file("a.safetensors")).tensors)
    found[name] = tensor;
  EXPECT_EQ(found.size(), 5U);
  EXPECT_TRUE(same_bytes(found.at("bn.running_mean"), numbers({4}, 9)));
}

TEST_F(Ckpt, ExportRefusals) {
  const auto refusal = [&](const CkptExportOptions& options) {
    error_.clear();
    EXPECT_EQ(output_of([&] { return run_ckpt_export(options); }), "");
    EXPECT_EQ(exit_code_, 2);
    return error_;
  };
  dir_.write("there.pt", "old");
  EXPECT_THAT(refusal({.path = run(), .file = dir_.file("there.pt")}), HasSubstr("--force"));
  EXPECT_EQ(dir_.read("there.pt"), "old");
  EXPECT_THAT(refusal({.path = run(), .file = dir_.file("a.bin")}), HasSubstr("--format"));
  EXPECT_THAT(refusal({.path = run(), .file = run(), .format = "pt", .force = true}),
              HasSubstr("is a folder"));
  TrainState state = full_state(120);
  state.ema.clear();
  write(state, "plain");
  EXPECT_THAT(refusal({.path = dir_.file("plain"), .file = dir_.file("a.pt"), .ema = true}),
              HasSubstr("train --ema"));
  EXPECT_FALSE(fs::exists(dir_.file("a.pt")));
  (void)output_of(
      [&] { return run_ckpt_export({.path = run(), .file = dir_.file("there.pt"), .force = true}); });
  EXPECT_EQ(exit_code_, 0);
  EXPECT_NE(dir_.read("there.pt"), "old");
  (void)output_of(
      [&] { return run_ckpt_export({.path = dir_.file("there.pt"), .file = dir_.file("b.pt")}); });
  EXPECT_EQ(exit_code_, 4);
  EXPECT_THAT(error_, HasSubstr("there.pt"));
  (void)output_of([&] { return run_ckpt_export({.path = run(), .file = dir_.file("no/such/b.pt")}); });
  EXPECT_EQ(exit_code_, 4);
  EXPECT_THAT(error_, HasSubstr("there is no folder " + dir_.file("no/such")));
  flip(60, "model.safetensors");
  (void)output_of([&] { return run_ckpt_export({.path = checkpoint(60), .file = dir_.file("b.pt")}); });
  EXPECT_EQ(exit_code_, 4);
  EXPECT_FALSE(fs::exists(dir_.file("b.pt")));
}

}  // namespace
}  // namespace gradstep::testing

// Black boxes: written, read and replayed, and refused when they are not what they say.
#include "incident/black_box.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gradstep/base/error.h"
#include "incident/black_box_json.h"
#include "support/message_of.h"
#include "support/mlp.h"
#include "support/scratch_dir.h"
#include "support/toys.h"

namespace gradstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const DatasetSpec kSpec{"mnist", {3, 3}, 4};

std::shared_ptr<const Dataset> samples(int64_t n = 40) {
  torch::manual_seed(2);
  return std::make_shared<TensorDataset>(kSpec, torch::randint(0, 256, {n, 3, 3}, torch::kByte),
                                         torch::randint(0, 4, {n}, torch::kLong));
}

Task mlp(double dropout = 0.25) {
  torch::manual_seed(1);
  return make_task({.hidden = 6, .dropout = dropout}, kSpec);
}

Task mlp_with(const NamedTensors& tensors) {
  Task task = mlp();
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : tensors) task.module->named_parameters()[name].copy_(tensor);
  return task;
}

Window window_of(const Dataset& data, const std::vector<int64_t>& ids) {
  Window window;
  window.ids = at::tensor(ids, at::kLong);
  window.batch = data.gather(window.ids);
  window.total_samples = static_cast<int64_t>(ids.size());
  window.position.epoch = 2;
  return window;
}

EngineOptions options(Precision precision) {
  return {.schedule = {.shape = LrShape::kConstant, .peak = 0.01},
          .precision = precision,
          .scaler = {.init_scale = 64},
          .micro_batch = 4,
          .seed = 77,
          .spikes = {.z_score = 3, .window = 4}};
}

// Two good updates, then fc2 breaks, and the box of the window after that. As the trainer makes it.
BlackBox box_of_broken_run(Precision precision, const Dataset& data) {
  Task task = mlp();
  Engine engine(task, options(precision), solo());
  engine.step(window_of(data, {0, 1, 2, 3, 4, 5}));
  engine.step(window_of(data, {6, 7, 8, 9, 10}));
  {
    const at::NoGradGuard no_grad;
    task.module->named_parameters()["fc2.weight"][1][2] = 3e38F;
  }
  const Window window = window_of(data, {30, 11, 29, 12, 5, 39});
  const StepReport report = engine.step(window);
  EXPECT_TRUE(report.skipped());
  BlackBox box = make_black_box(engine, window, report);
  box.scale_history = {{1, 64}, {3, 32}};
  box.info = {.settings = {{"model", "mlp"}, {"hidden", "6"}}, .precision = precision, .update = 2};
  box.settings = {{"dataset", "mnist"}, {"data_dir", "some/folder"}, {"seed", "77"}, {"hidden", "6"}};
  box.dataset_fingerprint = data.fingerprint();
  return box;
}

// By its key; by the words of the cause in files that have no such key.
TEST(BlackBox, TheOutcomeHasAKeyOfItsOwn) {
  BlackBox box = box_of_broken_run(Precision::kFp32, *samples());
  box.outcome = StepOutcome::kSpike;  // with the words of the other
  std::string text = black_box_json(box);
  const auto outcome_of = [](const std::string& json) {
    BlackBox read;
    read_black_box_json("box", json, read);
    return read.outcome;
  };
  EXPECT_EQ(outcome_of(text), StepOutcome::kSpike);
  const std::string key = R"("outcome":"spike",)";
  ASSERT_NE(text.find(key), std::string::npos);
  EXPECT_EQ(outcome_of(text.erase(text.find(key), key.size())), StepOutcome::kNotFinite);
}

// Older files have none; one rank knows its own.
TEST(BlackBox, TheDivisorMayBeMissing) {
  const auto data = samples();
  const BlackBox box = box_of_broken_run(Precision::kFp32, *data);
  EXPECT_EQ(box.divisor, 6.0);
  std::string text = black_box_json(box);
  const std::string key = R"("divisor":6.0,)";
  ASSERT_NE(text.find(key), std::string::npos);
  BlackBox old{.model = box.model};
  read_black_box_json("box", text.erase(text.find(key), key.size()), old);
  EXPECT_FALSE(old.divisor);
  EXPECT_TRUE(compare_with_recorded(old, replay(old, mlp_with(old.model), *data)).same);
}

void expect_equal(const BlackBox& a, const BlackBox& b) {
  EXPECT_EQ(format_norm_table(a), format_norm_table(b));
  EXPECT_TRUE(compare_with_recorded(a, {b.first_non_finite, b.modules}).same);
  EXPECT_EQ(a.ids, b.ids);
  EXPECT_EQ(a.frozen, b.frozen);
  EXPECT_EQ(a.outcome, b.outcome);
  EXPECT_EQ(a.total_samples, b.total_samples);
  EXPECT_EQ(a.divisor, b.divisor);
  EXPECT_EQ(a.settings, b.settings);
  EXPECT_EQ(a.dataset_fingerprint, b.dataset_fingerprint);
  EXPECT_EQ(a.info.settings, b.info.settings);
  EXPECT_EQ(a.engine.counters.windows, b.engine.counters.windows);
  EXPECT_EQ(a.engine.counters.updates, b.engine.counters.updates);
  EXPECT_EQ(a.engine.loss_scale, b.engine.loss_scale);
  EXPECT_EQ(a.engine.num_good_updates, b.engine.num_good_updates);
  EXPECT_EQ(a.engine.micro_batch, b.engine.micro_batch);
  EXPECT_EQ(a.model.size(), b.model.size());
  for (const auto& [name, tensor] : a.model) {
    const auto found = std::ranges::find_if(b.model, [&](const auto& item) { return item.first == name; });
    ASSERT_NE(found, b.model.end()) << name;
    EXPECT_TRUE(same_bytes(tensor, found->second)) << name;
  }
}

TEST(BlackBox, ComesBackFromTheFileAndIsReplayedToTheSameBits) {
  const auto data = samples();
  for (const Precision precision : {Precision::kFp32, Precision::kBf16, Precision::kFp16}) {
    SCOPED_TRACE(to_string(precision));
    const ScratchDir dir;
    const BlackBox box = box_of_broken_run(precision, *data);
    EXPECT_EQ(box.window, 3);
    EXPECT_EQ(box.update, 2);
    EXPECT_EQ(box.epoch, 2);
    EXPECT_EQ(box.cause, "not finite");
    EXPECT_EQ(box.ids, (std::vector<int64_t>{30, 11, 29, 12, 5, 39}));
    EXPECT_EQ(box.modules.size(), 2U);
    write_black_box(posix_file_system(), dir.file("box.safetensors"), box);
    const BlackBox read = read_black_box(dir.file("box.safetensors"));
    expect_equal(box, read);
    // The file is a model file too.
    const std::string file = dir.file("box.safetensors");
    const Task loaded = mlp();
    load_model(file, read_model_file(file), *loaded.module);
    const Examination again = replay(read, loaded, *data);
    EXPECT_TRUE(compare_with_recorded(read, again).same);
  }
}

TEST(BlackBox, ASpikeIsExaminedForItAndTheRunGoesOnAsIfNot) {
  const auto data = samples();
  const auto run = [&](bool leave_box) {
    Task task = mlp();
    Engine engine(task, options(Precision::kFp32), solo());
    for (int i = 0; i < 6; ++i) engine.step(window_of(*data, {0, 1, 2, 3, 4, 5}));
    const std::vector<at::Tensor> before = copies(engine.optimizer().parameters());
    Window odd = window_of(*data, {20, 21, 22, 23});
    {
      const at::NoGradGuard no_grad;
      task.module->named_parameters()["fc2.weight"].mul_(40);
    }
    const StepReport report = engine.step(odd);
    EXPECT_TRUE(report.spike);
    if (leave_box) {
      const BlackBox box = make_black_box(engine, odd, report);
      EXPECT_EQ(box.cause, to_string(*report.spike));
      EXPECT_EQ(box.outcome, StepOutcome::kSpike);
      EXPECT_EQ(box.first_non_finite, "");
      EXPECT_EQ(box.engine.counters.windows, 6);
      EXPECT_EQ(box.modules.size(), 2U);
      EXPECT_TRUE(compare_with_recorded(box, replay(box, mlp_with(box.model), *data)).same);
    }
    for (int i = 0; i < 3; ++i) engine.step(window_of(*data, {7, 8, 9}));
    EXPECT_EQ(engine.counters().windows, 10);
    return everything(engine);
  };
  EXPECT_TRUE(same_bytes(run(true), run(false)));
}

TEST(BlackBox, WhatIsDifferentIsNamed) {
  const auto data = samples();
  const BlackBox box = box_of_broken_run(Precision::kFp32, *data);
  Examination other{box.first_non_finite, box.modules};
  other.modules[1].forward = 4.5;
  EXPECT_THAT(compare_with_recorded(box, other).text,
              HasSubstr("differs in module fc2: forward norm 4.5, recorded "));
  other = {box.first_non_finite, box.modules};
  other.modules[0].num_bad += 1;
  EXPECT_THAT(compare_with_recorded(box, other).text, HasSubstr("differs in module fc1: bad values"));
  EXPECT_THAT(compare_with_recorded(box, {"elsewhere", box.modules}).text, HasSubstr("began at elsewhere"));
  EXPECT_THAT(compare_with_recorded(box, {box.first_non_finite, {}}).text,
              HasSubstr("0 modules, recorded 2"));
  // Another sample, other numbers.
  BlackBox moved = box;
  moved.ids[0] = 31;
  EXPECT_FALSE(compare_with_recorded(box, replay(moved, mlp_with(box.model), *data)).same);
}

TEST(BlackBox, SamplesThatAreNotThereAreRefused) {
  BlackBox box = box_of_broken_run(Precision::kFp32, *samples());
  box.ids[2] = 40;
  EXPECT_THAT(message_of<CheckpointError>([&] { (void)replay(box, mlp(), *samples()); }),
              HasSubstr("sample 40 of the black box is not in the data set, which has 40"));
}

// A Trainer without a recipe records no model.
TEST(BlackBox, R2_WhatIsWrittenCanBeRead) {
  const ScratchDir dir;
  const auto data = samples();
  BlackBox box = box_of_broken_run(Precision::kFp32, *data);
  box.info = {};
  write_black_box(posix_file_system(), dir.file("box"), box);
  EXPECT_EQ(read_black_box(dir.file("box")).window, box.window);
  box.micro_batch = 0;
  EXPECT_THROW(write_black_box(posix_file_system(), dir.file("other"), box), CheckpointError);
  EXPECT_FALSE(std::filesystem::exists(dir.file("other")));
}

TEST(BlackBox, AModelFileIsNone) {
  const ScratchDir dir;
  save_model(posix_file_system(), dir.file("model.safetensors"), *mlp().module, {});
  EXPECT_THAT(message_of<CheckpointError>([&] { (void)read_black_box(dir.file("model.safetensors")); }),
              AllOf(HasSubstr("model.safetensors"), HasSubstr("not a black box")));
}

// Every key in turn gone, of another type, or out of range; and text cut anywhere.
TEST(BlackBox, AHostileFileIsAnErrorAndNothingElse) {
  const ScratchDir dir;
  const std::string path = dir.file("box.safetensors");
  write_black_box(posix_file_system(), path, box_of_broken_run(Precision::kFp32, *samples()));
  const SafetensorsFile good = read_safetensors(path);
  const std::string text = good.metadata.at("gradstep.black_box");
  const auto refused = [&](const std::string& json) {
    std::map<std::string, std::string> metadata = good.metadata;
    metadata["gradstep.black_box"] = json;
    write_safetensors(posix_file_system(), path, good.tensors, metadata);
    return message_of<CheckpointError>([&] { (void)read_black_box(path); });
  };
  for (size_t length = 0; length < text.size(); length += 41) (void)refused(text.substr(0, length));
  const auto replaced = [&](const std::string& from, const std::string& to) {
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return refused(text.substr(0, at) + to + text.substr(at + from.size()));
  };
  EXPECT_THAT(replaced("\"window\":3", "\"window\":0"), HasSubstr("window"));
  EXPECT_THAT(replaced("\"window\":3", "\"window\":\"3\""), HasSubstr("window"));
  EXPECT_THAT(replaced("\"window\":3", "\"windov\":3"), HasSubstr("window"));
  EXPECT_THAT(replaced("\"micro_batch\":4", "\"micro_batch\":0"), HasSubstr("micro_batch"));
  EXPECT_THAT(replaced("\"precision\":\"fp32\"", "\"precision\":\"fp8\""), HasSubstr("precision"));
  EXPECT_THAT(replaced("\"divisor\":6.0", "\"divisor\":-6.0"), HasSubstr("divisor"));
  EXPECT_THAT(replaced("\"loss_scale\":1.0", "\"loss_scale\":\"Infinity\""), HasSubstr("loss_scale"));
  EXPECT_THAT(replaced("\"ids\":[30", "\"ids\":[-30"), HasSubstr("ids"));
  EXPECT_THAT(replaced("\"ids\":[30", "\"ids\":[1e300"), HasSubstr("ids"));
  EXPECT_THAT(replaced("\"hidden\":\"6\"", "\"hidden\":6"), HasSubstr("hidden"));
  EXPECT_THAT(replaced("\"modules\":[", "\"modules\":[7,"), HasSubstr("modules"));
  EXPECT_THAT(replaced("\"seed\":77", "\"seed\":-1"), HasSubstr("seed"));
}

TEST(NormTable, SaysAllAndMarksWhereItBegan) {
  BlackBox box;
  box.window = 12;
  box.update = 9;
  box.epoch = 1;
  box.cause = "not finite";
  box.first_non_finite = "aten::addmm with parameter fc2.weight (module fc2)";
  box.loss = std::nan("");
  box.grad_norm = INFINITY;
  box.loss_scale = 1024;
  box.micro_batch = 16;
  box.scale_history = {{1, 65536}, {7, 1024}};
  for (int64_t id = 100; id < 140; ++id) box.ids.push_back(id);
  box.modules = {{"", 0.5, 0.25, 0}, {"fc1", 3.25, std::nan(""), 96}, {"fc2", INFINITY, std::nan(""), 200}};
  const std::string text = format_norm_table(box);
  EXPECT_THAT(text, HasSubstr("window         12 (epoch 1, after update 9)\n"));
  EXPECT_THAT(text, HasSubstr("began at       aten::addmm with parameter fc2.weight (module fc2)\n"));
  EXPECT_THAT(text, HasSubstr("loss           NaN, gradient norm Infinity\n"));
  EXPECT_THAT(text, HasSubstr("loss scale     1024; history: 65536 from window 1, 1024 from window 7\n"));
  EXPECT_THAT(text, HasSubstr("40 in micro-batches of 16: 100 101"));
  EXPECT_THAT(text, HasSubstr("114 115 ... (8 more) ... 124 125"));
  EXPECT_THAT(text, HasSubstr("(root)             0.5            0.25           0\n"));
  EXPECT_THAT(text, HasSubstr("fc2           Infinity             NaN         200  <- first\n"));
  // Where every forward is finite it began at the end of the network.
  box.modules[2].forward = 7;
  EXPECT_THAT(format_norm_table(box),
              HasSubstr("fc2                  7             NaN         200  <- first\n"));
  box.modules[2] = {"fc2", 7, 1, 0};
  EXPECT_THAT(format_norm_table(box),
              HasSubstr("fc1               3.25             NaN          96  <- first\n"));
  box.modules[1] = {"fc1", 7, 1, 0};
  EXPECT_THAT(format_norm_table(box), Not(HasSubstr("<- first")));
}

TEST(BlackBox, ParametersThatRestedRestInTheReplayToo) {
  const ScratchDir dir;
  const auto data = samples();
  Task task = mlp();
  EngineOptions frozen = options(Precision::kFp32);
  frozen.optimizer.groups = parse_param_groups("fc1.*:frozen");
  Engine engine(task, frozen, solo());
  {
    const at::NoGradGuard no_grad;
    task.module->named_parameters()["fc2.weight"][1][2] = NAN;
  }
  const Window window = window_of(*data, {30, 11, 29, 12, 5, 39});
  BlackBox written = make_black_box(engine, window, engine.step(window));
  EXPECT_EQ(written.frozen, (std::vector<std::string>{"fc1.weight", "fc1.bias"}));
  write_black_box(posix_file_system(), dir.file("box"), written);
  const BlackBox box = read_black_box(dir.file("box"));
  expect_equal(box, written);
  EXPECT_TRUE(compare_with_recorded(box, replay(box, mlp_with(box.model), *data)).same);
}

}  // namespace
}  // namespace gradstep::testing

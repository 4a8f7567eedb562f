// with_averages: what stands under each name of a model once averages take the place of parameters; and the
// scale of a run that goes on in fp16.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "gradstep/base/error.h"
#include "gradstep/checkpoint/checkpoint.h"
#include "gradstep/checkpoint/model_file.h"
#include "support/lin.h"
#include "support/message_of.h"
#include "support/scratch_dir.h"
#include "support/toys.h"

namespace gradstep::testing {
namespace {

TEST(WithAverages, ParametersGoUnderAllTheirNamesAndBuffersStay) {
  TrainState state;
  const at::Tensor tied = at::zeros({2});
  state.model = {
      {"head.weight", tied}, {"bias", at::zeros({1})}, {"wte.weight", tied}, {"mean", at::full({1}, 3)}};
  state.ema = {{"head.weight", at::ones({2})}, {"bias", at::full({1}, 2)}};
  const NamedTensors model = with_averages(state);
  ASSERT_EQ(model.size(), 4U);
  const std::vector<std::pair<std::string, double>> expected{
      {"head.weight", 1}, {"bias", 2}, {"wte.weight", 1}, {"mean", 3}};
  for (size_t i = 0; i < model.size(); ++i) {
    EXPECT_EQ(model[i].first, expected[i].first);
    EXPECT_TRUE(model[i].second.eq(expected[i].second).all().item<bool>()) << model[i].first;
  }
  EXPECT_TRUE(state.model[0].second.eq(0).all().item<bool>());  // the state keeps its own
}

TEST(TrainState, R22_ARunThatGoesOnInFp16BeginsWithTheScaleOfANewRun) {
  Lin lin;
  Engine fp32(lin_task(lin), plain_sgd(1), solo());
  fp32.step(column({-2}), no_targets(1));
  const TrainState state = capture_engine(fp32);
  EXPECT_EQ(state.engine.loss_scale, 1);
  Lin other;
  EngineOptions options = plain_sgd(1);
  options.precision = Precision::kFp16;
  Engine fp16(lin_task(other), options, solo());
  restore_engine("c", state, fp16);
  EXPECT_EQ(fp16.state().loss_scale, 65536);
  EXPECT_EQ(fp16.counters().updates, 1);
  // The scale of fp16 itself comes back.
  TrainState own = capture_engine(fp16);
  own.engine.loss_scale = 8;
  own.engine.num_good_updates = 3;
  restore_engine("c", own, fp16);
  EXPECT_EQ(fp16.state().loss_scale, 8);
  EXPECT_EQ(fp16.state().num_good_updates, 3);
}

TEST(TrainState, Float8BuffersAreSavedAndComeBack) {
  for (const at::ScalarType type : {at::kFloat8_e4m3fn, at::kFloat8_e5m2}) {
    const ScratchDir folder;
    Lin lin;
    at::Tensor scales = lin->register_buffer("scales", at::tensor({0.5, -240.0, 0.0}).to(type));
    Engine engine(lin_task(lin), plain_sgd(1), solo());
    engine.step(column({-2}), no_targets(1));
    TrainState before = capture_engine(engine);
    before.next = {.epoch = 1};
    write_checkpoint(posix_file_system(), folder.path(), before);
    const std::vector<at::Tensor> saved = copies(model_tensors(*lin));
    save_model(posix_file_system(), folder.file("model.safetensors"), *lin, {});
    scales.zero_();
    const FoundCheckpoint found = newest_checkpoint(folder.path()).value();
    restore_engine(found.path, found.state, engine);
    EXPECT_TRUE(same_bytes(copies(model_tensors(*lin)), saved)) << type;
    scales.zero_();
    load_model("m", read_model_file(folder.file("model.safetensors")), *lin);
    EXPECT_TRUE(same_bytes(copies(model_tensors(*lin)), saved)) << type;
    for (const at::Tensor& bad : {at::tensor({1.0, 1.0, std::nan("")}).to(type),
                                  at::tensor({1.0, std::nan("")}).to(type).expand({3, 2}).t()}) {
      TrainState state = capture_engine(engine);
      state.model[1].second = bad;
      EXPECT_THAT(message_of<Diverged>([&] { write_checkpoint(posix_file_system(), folder.path(), state); }),
                  ::testing::HasSubstr("buffer scales holds NaN"));
    }
  }
}

}  // namespace
}  // namespace gradstep::testing

// with_averages: what stands under each name of a model once averages take the place of parameters.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "gradstep/checkpoint/checkpoint.h"

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

}  // namespace
}  // namespace gradstep::testing

// Mlp: names, shapes and first weights are those of Python's two nn.Linear.
#include "model/mlp.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "support/toys.h"

namespace gradstep::testing {
namespace {

// torch.manual_seed(5); fc1 = nn.Linear(3, 4); fc2 = nn.Linear(4, 2), by PyTorch 2.13.
const std::vector<std::pair<std::string, std::vector<float>>>& weights_of_python() {
  static const std::vector<std::pair<std::string, std::vector<float>>> weights = {
      {"fc1.weight",
       {0x1.867e84p-2F, -0x1.ba1768p-2F, 0x1.e1cc3p-2F, 0x1.7a4936p-2F, 0x1.f0bc64p-2F, -0x1.c548a8p-2F,
        -0x1.8cd3f4p-2F, 0x1.1951aep-2F, -0x1.13efe2p-1F, 0x1.242a52p-1F, 0x1.f75ec6p-4F, 0x1.316652p-4F}},
      {"fc1.bias", {-0x1.f995e4p-2F, 0x1.78cf1ap-3F, 0x1.fc738cp-3F, 0x1.773124p-4F}},
      {"fc2.weight",
       {0x1.ec781cp-2F, 0x1.33866p-3F, -0x1.c601c4p-2F, 0x1.ae31c4p-2F, 0x1.5bada8p-3F, -0x1.e880c8p-3F,
        -0x1.d64ecp-2F, 0x1.23e06cp-2F}},
      {"fc2.bias", {0x1.e690bp-2F, -0x1.a37cccp-2F}}};
  return weights;
}

TEST(Mlp, FirstWeightsAreBitEqualToPythons) {
  torch::manual_seed(5);
  const Mlp mlp(MlpOptions{.num_inputs = 3, .hidden = 4, .num_classes = 2});
  const auto parameters = mlp->named_parameters();
  ASSERT_EQ(parameters.size(), weights_of_python().size());
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto& [name, values] = weights_of_python()[i];
    EXPECT_EQ(parameters[i].key(), name);
    EXPECT_TRUE(same_bytes(parameters[i].value().flatten(), torch::tensor(values))) << name;
  }
  EXPECT_EQ(mlp->named_buffers().size(), 0U);
}

TEST(Mlp, DropoutDrawsNothingWhileBuilding) {
  torch::manual_seed(5);
  const Mlp plain(MlpOptions{.num_inputs = 3, .hidden = 4, .num_classes = 2});
  torch::manual_seed(5);
  const Mlp dropping(MlpOptions{.num_inputs = 3, .hidden = 4, .num_classes = 2, .dropout = 0.5});
  for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(same_bytes(plain->parameters()[i], dropping->parameters()[i]));
}

TEST(Mlp, ForwardIsLinearReluLinearOverFlattenedSamples) {
  torch::manual_seed(1);
  Mlp mlp(MlpOptions{.num_inputs = 6, .hidden = 5, .num_classes = 3});
  const at::Tensor x = torch::randn({4, 2, 3});
  const std::vector<at::Tensor> p = mlp->parameters();
  const at::Tensor expected = at::linear(at::relu(at::linear(x.view({4, 6}), p[0], p[1])), p[2], p[3]);
  EXPECT_TRUE(same_bytes(mlp->forward(x), expected));
  EXPECT_TRUE(same_bytes(mlp->forward(x.view({4, 6})), expected));
  EXPECT_EQ(mlp->forward(torch::zeros({0, 6})).sizes(), at::IntArrayRef({0, 3}));
}

TEST(Mlp, DropoutActsInTrainingOnly) {
  torch::manual_seed(1);
  Mlp mlp(MlpOptions{.num_inputs = 6, .hidden = 64, .num_classes = 3, .dropout = 0.5});
  const at::Tensor x = torch::randn({4, 6});
  EXPECT_FALSE(at::equal(mlp->forward(x), mlp->forward(x)));
  mlp->eval();
  EXPECT_TRUE(at::equal(mlp->forward(x), mlp->forward(x)));
}

}  // namespace
}  // namespace gradstep::testing

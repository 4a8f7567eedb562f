// The loss of classification equals PyTorch's cross_entropy with reduction "sum", label smoothing included.
#include "gradstep/model/task.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "support/toys.h"

namespace gradstep::testing {
namespace {

// torch.manual_seed(3); torch.randn(4, 6), and what torch.nn.functional.cross_entropy makes of it in
// PyTorch 2.13.
at::Tensor scores() {
  return torch::tensor(
             {-0.07664429396390915F, 0.35988152027130127F,  -0.7820168137550354F,  0.07152773439884186F,
              0.6648393869400024F,   -0.28678029775619507F, 1.6205507516860962F,   -1.596708059310913F,
              0.4046071469783783F,   0.6112996339797974F,   0.7603904008865356F,   -0.03364326059818268F,
              -0.34484532475471497F, 0.4936535656452179F,   -0.07758074998855591F, -1.8053644895553589F,
              0.4851140081882477F,   0.2052343785762787F,   0.33842819929122925F,  1.35275399684906F,
              0.3736353814601898F,   0.013416479341685772F, 0.7736731767654419F,   -0.10924351960420609F})
      .view({4, 6});
}
at::Tensor targets() { return torch::tensor({0, 5, 2, 2}, at::kLong); }

TEST(CrossEntropySum, LabelSmoothingEqualsPythons) {
  const std::vector<std::pair<double, float>> expected{
      {0, 0x1.0c15f8p+3F}, {0.1, 0x1.0adbbap+3F}, {0.5, 0x1.05f2c2p+3F}, {1.0, 0x1.ff9f18p+2F}};
  for (const auto& [smoothing, loss] : expected) {
    EXPECT_FLOAT_EQ(cross_entropy_sum(scores(), targets(), smoothing).item<float>(), loss) << smoothing;
  }
}

TEST(CrossEntropySum, IsASumOverSamplesAndFp32WhateverTheScoresAre) {
  const at::Tensor all = cross_entropy_sum(scores(), targets());
  at::Tensor sum = torch::zeros({});
  for (int64_t i = 0; i < 4; ++i)
    sum += cross_entropy_sum(scores().narrow(0, i, 1), targets().narrow(0, i, 1));
  EXPECT_NEAR(all.item<double>(), sum.item<double>(), 1e-5);
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
    const at::Tensor rounded = scores().to(type);
    const at::Tensor loss = cross_entropy_sum(rounded, targets());
    EXPECT_EQ(loss.scalar_type(), at::kFloat);
    EXPECT_TRUE(same_bytes(loss, cross_entropy_sum(rounded.to(at::kFloat), targets())));
  }
  EXPECT_EQ(cross_entropy_sum(torch::zeros({0, 6}), torch::zeros({0}, at::kLong)).item<float>(), 0.0F);
}

TEST(CrossEntropySum, HasTheGradientOfSoftmaxMinusTarget) {
  const at::Tensor x = scores().requires_grad_();
  cross_entropy_sum(x, targets()).backward();
  const at::Tensor expected = scores().softmax(1) - torch::one_hot(targets(), 6);
  EXPECT_TRUE(at::allclose(x.grad(), expected, 0, 1e-6));
}

TEST(ClassificationTask, JoinsModuleAndLoss) {
  torch::nn::Sequential module = small_classifier();
  const Task task = classification_task(module, 0.2);
  EXPECT_EQ(task.module, module.ptr());
  EXPECT_FALSE(task.prepare);
  EXPECT_FALSE(task.weight);
  const at::Tensor x = torch::randn({5, 4});
  const at::Tensor y = torch::tensor({0, 1, 2, 1, 0}, at::kLong);
  const at::Tensor outputs = task.forward(x);
  EXPECT_TRUE(same_bytes(outputs, module->forward(x)));
  EXPECT_TRUE(same_bytes(task.loss_sum(outputs, y), cross_entropy_sum(outputs, y, 0.2)));
}

}  // namespace
}  // namespace gradstep::testing

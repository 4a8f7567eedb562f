// The losses equal PyTorch's, label smoothing included; weights and metrics by hand.
#include "gradstep/model/tasks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "gradstep/base/error.h"
#include "support/message_of.h"
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

// Of one batch: sum / weight, or what the metric makes of them.
double value_of(const Task& task, const std::string& name, const at::Tensor& outputs, const Batch& batch) {
  for (const Metric& metric : task.metrics) {
    if (metric.name != name) continue;
    if (!metric.measure)
      return metric.of(task.loss_sum(outputs, batch).item<double>(), weight_of(task, batch));
    const MetricSum sum = metric.measure(outputs, batch);
    return metric.of(sum.sum.item<double>(), sum.weight.item<double>());
  }
  ADD_FAILURE() << "no metric " << name;
  return 0;
}

TEST(ClassificationTask, JoinsModuleAndLoss) {
  torch::nn::Sequential module = small_classifier();
  const Task task = classification_task(module, {.label_smoothing = 0.2, .all_targets_count = true});
  EXPECT_EQ(task.module, module.ptr());
  EXPECT_FALSE(task.prepare);
  EXPECT_FALSE(task.weight);
  const Batch batch{torch::randn({5, 4}), torch::tensor({0, 1, 2, 1, 0}, at::kLong)};
  const at::Tensor outputs = task.forward(batch);
  EXPECT_TRUE(same_bytes(outputs, module->forward(batch.inputs)));
  EXPECT_TRUE(same_bytes(task.loss_sum(outputs, batch), cross_entropy_sum(outputs, batch.targets, 0.2)));
  module->eval();
  EXPECT_TRUE(same_bytes(task.loss_sum(outputs, batch), cross_entropy_sum(outputs, batch.targets)));
}

TEST(ClassificationTask, AnIgnoredTargetCountsNowhere) {
  const Task task = classification_task(small_classifier(), {.num_classes = 6});
  const at::Tensor some = torch::tensor({0, -100, 2, -100}, at::kLong);
  const at::Tensor kept = torch::tensor({0, 2}, at::kLong);  // rows of those that count
  const Batch all{scores(), some};
  const Batch counted{scores().index_select(0, kept), some.index_select(0, kept)};
  EXPECT_EQ(weight_of(task, all), 2);
  EXPECT_FLOAT_EQ(task.loss_sum(all.inputs, all).item<float>(),
                  task.loss_sum(counted.inputs, counted).item<float>());
  for (const char* name : {"acc", "top5"}) {
    EXPECT_EQ(value_of(task, name, all.inputs, all), value_of(task, name, counted.inputs, counted)) << name;
  }
  const MetricSum table = task.metrics.back().measure(all.inputs, all);
  EXPECT_EQ(table.weight.sum().item<double>(), 2);
  EXPECT_EQ(table.sum.numel(), 6);
}

TEST(ClassificationTask, TopFiveNeedsMoreThanFiveClasses) {
  const auto names = [](int64_t num_classes) {
    std::vector<std::string> result;
    for (const Metric& metric : classification_task(small_classifier(), {.num_classes = num_classes}).metrics)
      result.push_back(metric.name);
    return result;
  };
  EXPECT_EQ(names(0), (std::vector<std::string>{"acc"}));
  EXPECT_EQ(names(5), (std::vector<std::string>{"acc", "accuracy"}));
  EXPECT_EQ(names(6), (std::vector<std::string>{"acc", "top5", "accuracy"}));
}

TEST(ClassificationTask, TakesPixelsToo) {
  const Task task = classification_task(small_classifier(), {.num_classes = 6});
  const at::Tensor outputs = torch::randn({2, 6, 3, 3});
  const Batch batch{{}, torch::randint(6, {2, 3, 3}, at::kLong)};
  EXPECT_NEAR(task.loss_sum(outputs, batch).item<double>(),
              cross_entropy_sum(outputs.permute({0, 2, 3, 1}).reshape({18, 6}), batch.targets.flatten())
                  .item<double>(),
              1e-4);
  const double hits = outputs.argmax(1).eq(batch.targets).sum().item<double>();
  EXPECT_EQ(value_of(task, "acc", outputs, batch), hits / 18);
}

TEST(RegressionTask, MeasuresSquaresAndAbsoluteErrors) {
  const Task task = regression_task(torch::nn::Linear(2, 2));
  const at::Tensor outputs = torch::tensor({{1.F, 2.F}, {3.F, 4.F}});
  const Batch batch{torch::zeros({2, 2}), torch::tensor({{1.0, 0.0}, {0.0, 4.0}}, at::kDouble)};
  EXPECT_EQ(weight_of(task, batch), 4);
  EXPECT_EQ(task.loss_sum(outputs, batch).item<double>(), 4 + 9);
  EXPECT_EQ(value_of(task, "mse", outputs, batch), 13.0 / 4);
  EXPECT_EQ(value_of(task, "mae", outputs, batch), 5.0 / 4);
}

TEST(LanguageTask, MeasuresPerplexityOverTargetsThatCount) {
  const Task task = language_task(torch::nn::Linear(1, 1));
  const at::Tensor outputs = scores().view({2, 2, 6});
  const Batch batch{torch::zeros({2, 2}, at::kLong), torch::tensor({{0, -100}, {2, 2}}, at::kLong)};
  const at::Tensor kept = torch::tensor({0, 2, 3}, at::kLong);
  const double loss =
      cross_entropy_sum(scores().index_select(0, kept), torch::tensor({0, 2, 2}, at::kLong)).item<double>();
  EXPECT_EQ(weight_of(task, batch), 3);
  EXPECT_NEAR(task.loss_sum(outputs, batch).item<double>(), loss, 1e-5);
  EXPECT_NEAR(value_of(task, "perplexity", outputs, batch), std::exp(loss / 3), 1e-4);
  EXPECT_EQ(value_of(task, "tokens", outputs, batch), 3);
}

TEST(Tasks, ShapesThatTorchWouldSpreadAreRefused) {
  const Task task = regression_task(torch::nn::Linear(2, 1));
  const Batch batch{.inputs = at::ones({3, 2}), .targets = at::ones({3})};
  EXPECT_THAT(message_of<DataError>([&] { (void)task.loss_sum(task.forward(batch), batch); }),
              ::testing::HasSubstr("outputs of shape (3, 1), the targets have (3)"));
}

TEST(Tasks, ABatchWithoutTargetsIsRefused) {
  const torch::nn::Linear net(2, 3);
  const Batch batch{.inputs = at::ones({3, 2}), .targets = {}};
  for (const Task& task : {classification_task(net), regression_task(net), language_task(net)}) {
    EXPECT_THROW((void)weight_of(task, batch), DataError);
    EXPECT_THROW((void)task.loss_sum(at::ones({3, 2, 3}), batch), DataError);
  }
}

TEST(Tasks, R47_RowsThatPrepareLosesAreRefused) {
  Task task = regression_task(torch::nn::Linear(2, 1));
  task.prepare = [](const Batch& batch) { return batch.narrow(0, batch.size() - 1); };
  EXPECT_THAT(message_of<DataError>([&] { (void)prepared(task, {at::ones({3, 2}), at::ones({3, 1})}); }),
              ::testing::HasSubstr("made 2 rows of 3"));
}

}  // namespace
}  // namespace gradstep::testing

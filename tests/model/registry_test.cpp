// The models by name: what they are built of, how they are described, and what is refused.
#include "gradstep/model/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "gradstep/base/error.h"
#include "gradstep/model/mlp.h"
#include "gradstep/model/normalize.h"
#include "support/message_of.h"
#include "support/toys.h"

namespace gradstep::testing {
namespace {

using ::testing::HasSubstr;

const DatasetSpec kPictures{"fashion-mnist", {28, 28}, 10};

TEST(ModelRegistry, EveryNameBuildsAndTakesStoredBytes) {
  for (const std::string& name : model_names()) {
    const Task task = make_task({.name = name}, kPictures);
    const at::Tensor bytes = torch::randint(256, {3, 28, 28}, at::kByte);
    EXPECT_EQ(task.forward(task.prepare({bytes, {}})).sizes(), at::IntArrayRef({3, 10})) << name;
    for (const at::Tensor& parameter : task.module->parameters())
      EXPECT_EQ(parameter.scalar_type(), at::kFloat);
  }
}

TEST(ModelRegistry, TheMlpIsTheMlpOnNormalizedPixels) {
  torch::manual_seed(0);
  Mlp mlp(MlpOptions{});
  torch::manual_seed(0);
  const Task task = make_task({}, kPictures);
  const at::Tensor bytes = torch::randint(256, {3, 28, 28}, at::kByte);
  EXPECT_TRUE(same_bytes(task.forward(task.prepare({bytes, {}})), mlp->forward(normalize_bytes(bytes))));
}

TEST(ModelRegistry, LabelSmoothingReachesTheLoss) {
  const Task task = make_task({.label_smoothing = 0.3}, kPictures);
  const at::Tensor scores = torch::randn({2, 10});
  const at::Tensor targets = torch::tensor({1, 9}, at::kLong);
  EXPECT_TRUE(same_bytes(task.loss_sum(scores, {{}, targets}), cross_entropy_sum(scores, targets, 0.3)));
}

TEST(ModelRegistry, SizesAreThoseOfTheBuiltModel) {
  const DatasetSpec spec{"any", {3, 5, 7}, 11};
  int64_t parameters = 0;
  for (const at::Tensor& parameter : make_task({.hidden = 13}, spec).module->parameters())
    parameters += parameter.numel();
  EXPECT_EQ(model_size({.hidden = 13}, spec).parameters, parameters);
  EXPECT_EQ(model_size({.hidden = 13}, spec).activations, 13);
  EXPECT_THROW((void)model_size({.name = "resnet"}, spec), ConfigError);
}

TEST(ModelRegistry, DescriptionsNameTheSizes) {
  EXPECT_EQ(describe_model({}, kPictures), "mlp 784-256-10");
  EXPECT_EQ(describe_model({.hidden = 7}, {"cifar10", {3, 32, 32}, 4}), "mlp 3072-7-4");
}

TEST(ModelRegistry, AnUnknownNameIsRefused) {
  EXPECT_THAT(message_of<ConfigError>([] { (void)make_task({.name = "mpl"}, kPictures); }),
              HasSubstr("nown are mlp"));
  EXPECT_THAT(message_of<ConfigError>([] { (void)describe_model({.name = ""}, kPictures); }),
              HasSubstr("nown are mlp"));
}

}  // namespace
}  // namespace gradstep::testing

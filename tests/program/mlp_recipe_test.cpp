// The mlp of the program: what it is built of, how it is described, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "app/run_settings.h"
#include "gradstep/base/error.h"
#include "gradstep/model/tasks.h"
#include "model/mlp.h"
#include "model/normalize.h"
#include "support/gradstep_program.h"
#include "support/message_of.h"
#include "support/toys.h"

namespace gradstep::testing {
namespace {

using ::testing::HasSubstr;

const DatasetSpec kImages{"fashion-mnist", {28, 28}, 10};

// --model mlp with its options, as the program makes it.
class MlpRecipe {
 public:
  void set(const std::string& key, const std::string& text) { settings_.set(key, text, key); }
  ModelRecipe* operator->() const { return &settings_.model(); }

 private:
  RunSettings settings_{program().catalog};
};

TEST(MlpRecipe, TakesPicturesAsTheyAreStored) {
  const Task task = MlpRecipe()->task(kImages);
  const at::Tensor bytes = torch::randint(256, {3, 28, 28}, at::kByte);
  EXPECT_EQ(task.forward(task.prepare({bytes, {}})).sizes(), at::IntArrayRef({3, 10}));
}

TEST(MlpRecipe, DrawsItsWeightsLikeTheModuleItself) {
  torch::manual_seed(5);
  Mlp mlp(MlpOptions{});
  torch::manual_seed(5);
  const Task task = MlpRecipe()->task(kImages);
  const at::Tensor bytes = torch::randint(256, {3, 28, 28}, at::kByte);
  EXPECT_TRUE(same_bytes(task.forward(task.prepare({bytes, {}})), mlp->forward(normalize_bytes(bytes))));
}

TEST(MlpRecipe, LabelSmoothingReachesTheLoss) {
  MlpRecipe recipe;
  recipe.set("label_smoothing", "0.3");
  const Task task = recipe->task(kImages);
  const at::Tensor scores = torch::randn({2, 10});
  const at::Tensor targets = torch::tensor({1, 9}, at::kLong);
  EXPECT_TRUE(same_bytes(task.loss_sum(scores, {{}, targets}), cross_entropy_sum(scores, targets, 0.3)));
}

TEST(MlpRecipe, TellsItsSizesWithoutBuildingIt) {
  const DatasetSpec spec{"cifar10", {3, 32, 32}, 10};
  MlpRecipe recipe;
  recipe.set("hidden", "13");
  int64_t parameters = 0;
  for (const at::Tensor& parameter : recipe->task(spec).module->parameters()) parameters += parameter.numel();
  EXPECT_EQ(recipe->size(spec).parameters, parameters);
  EXPECT_EQ(recipe->size(spec).activations, 13);
}

TEST(MlpRecipe, IsDescribedByItsWidths) {
  MlpRecipe recipe;
  EXPECT_EQ(recipe->describe(kImages), "mlp 784-256-10");
  recipe.set("hidden", "7");
  EXPECT_EQ(recipe->describe({"cifar10", {3, 32, 32}, 4}), "mlp 3072-7-4");
}

TEST(MlpRecipe, DataWithoutClassesIsRefused) {
  EXPECT_THAT(message_of<ConfigError>([] { (void)MlpRecipe()->task({"text", {64}}); }),
              HasSubstr("--model mlp tells classes apart, and the data set text has none"));
}

}  // namespace
}  // namespace gradstep::testing

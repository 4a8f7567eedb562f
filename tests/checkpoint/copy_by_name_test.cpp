// Tensors find their place by name, and what does not fit is refused whole.
#include "checkpoint/copy_by_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "gradstep/base/error.h"
#include "support/message_of.h"

namespace gradstep::testing {
namespace {

using ::testing::HasSubstr;

TEST(CopyByName, OrderDoesNotMatter) {
  const NamedTensors live{{"a", torch::zeros(2)}, {"b", torch::zeros(2)}};
  copy_by_name("x", {{"b", torch::full(2, 2.0)}, {"a", torch::full(2, 1.0)}}, live);
  EXPECT_EQ(live[0].second[0].item<float>(), 1);
  EXPECT_EQ(live[1].second[0].item<float>(), 2);
}

TEST(CopyByName, NothingIsCopiedWhereOneDoesNotFit) {
  const NamedTensors live{{"a", torch::zeros(2)}, {"b", torch::zeros(2)}};
  const at::Tensor ones = torch::ones(2);
  const auto refused = [&](const NamedTensors& stored) {
    return message_of<CheckpointError>([&] { copy_by_name("file x", stored, live); });
  };
  EXPECT_THAT(refused({{"a", ones}}), HasSubstr("file x: tensor b is missing"));
  EXPECT_THAT(refused({{"a", ones}, {"b", torch::ones(3)}}), HasSubstr("tensor b is Float [3]"));
  EXPECT_THAT(refused({{"a", ones}, {"b", torch::ones(2, torch::kDouble)}}), HasSubstr("tensor b is Double"));
  EXPECT_THAT(refused({{"a", ones}, {"b", ones}, {"c", ones}}), HasSubstr("tensor c is one too many"));
  EXPECT_EQ(live[0].second.sum().item<float>(), 0);
}

}  // namespace
}  // namespace gradstep::testing

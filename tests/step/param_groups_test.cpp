// Groups of parameters: patterns, their text, what each group changes, and what makes no sense.
#include "step/param_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gradstep/base/error.h"
#include "support/lin.h"
#include "support/message_of.h"
#include "support/toys.h"

namespace gradstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ParamGroups, PatternsMatchWholeNames) {
  for (const char* pattern : {"*", "embed.*", "*.weight", "embed.weight", "e*d.w*t", "embed.weigh?", "**"})
    EXPECT_TRUE(matches(pattern, "embed.weight")) << pattern;
  for (const char* pattern : {"", "embed", "weight", "embed.?", "*.bias", "embed.weight.*", "Embed.*", "*x*"})
    EXPECT_FALSE(matches(pattern, "embed.weight")) << pattern;
  EXPECT_TRUE(matches("a*b*c", "axbxbxc"));
  EXPECT_TRUE(matches("layers.*.bias", "layers.3.attention.bias"));  // a star takes dots too
  EXPECT_TRUE(matches("", ""));
}

TEST(ParamGroups, AreReadFromText) {
  EXPECT_THAT(parse_param_groups(""), ::testing::IsEmpty());
  EXPECT_THAT(parse_param_groups(" ; "), ::testing::IsEmpty());
  EXPECT_THAT(parse_param_groups("embed.*:lr=0.1,wd=0; head.* : frozen ;*.bias:wd=2e-3"),
              ::testing::ElementsAre(ParamGroup{.pattern = "embed.*", .lr_factor = 0.1, .weight_decay = 0.0},
                                     ParamGroup{.pattern = "head.*", .frozen = true},
                                     ParamGroup{.pattern = "*.bias", .weight_decay = 2e-3}));
  for (const char* text : {"embed.*", ":frozen", "a:", "a:lr", "a:lr=", "a:lr=x", "a:lr=-1", "a:wd=inf",
                           "a:wd=nan", "a:momentum=1", "a:frozen,lr=1", "a:lr=1,", "a:lr=0.1x"}) {
    EXPECT_THAT(message_of<ConfigError>([&] { (void)parse_param_groups(text); }),
                AllOf(HasSubstr(std::string("'") + text + "'"), HasSubstr("head.*:frozen")));
  }
}

// A small net with an embedding, a body and a head.
struct ThreeImpl : torch::nn::Module {
  ThreeImpl() {
    embed = register_module("embed", torch::nn::Linear(4, 4));
    body = register_module("body", torch::nn::Linear(4, 4));
    head = register_module("head", torch::nn::Linear(4, 3));
  }
  at::Tensor forward(const at::Tensor& x) { return head(body(embed(x)).tanh()); }
  torch::nn::Linear embed{nullptr}, body{nullptr}, head{nullptr};
};
TORCH_MODULE(Three);

Three three() {
  torch::manual_seed(2);
  return {};
}

EngineOptions with_groups(const std::string& text, double weight_decay = 0, bool ema = false) {
  return {.optimizer = {.weight_decay = weight_decay, .groups = parse_param_groups(text)},
          .schedule = {.shape = LrShape::kConstant, .peak = 0.01},
          .ema_decay = ema ? 0.5 : 0};
}

const at::Tensor& inputs() {
  static const at::Tensor x = at::arange(20, at::kFloat).view({5, 4}).sin();
  return x;
}
const at::Tensor& targets() {
  static const at::Tensor y = at::arange(5).remainder(3);
  return y;
}

std::map<std::string, at::Tensor> trained(Three model, const EngineOptions& options, int updates = 3) {
  Engine engine(classification_task(model), options, solo());
  for (int i = 0; i < updates; ++i) engine.step(inputs(), targets());
  std::map<std::string, at::Tensor> result;
  for (const auto& item : model->named_parameters()) result[item.key()] = item.value().detach().clone();
  return result;
}

TEST(ParamGroups, ALearningRateFactorIsThatLearningRate) {
  const auto plain = trained(three(), with_groups(""), 1);
  const auto tenth = trained(three(), with_groups("embed.*:lr=0.1"), 1);
  EngineOptions lower = with_groups("");
  lower.schedule.peak = 0.01 * 0.1;
  const auto expected = trained(three(), lower, 1);
  for (const auto& [name, tensor] : tenth) {
    const bool in_group = name.starts_with("embed.");
    EXPECT_TRUE(same_bytes(tensor, (in_group ? expected : plain).at(name))) << name;
  }
}

TEST(ParamGroups, AWeightDecayOfItsOwnStillSparesVectors) {
  // After one update only the decayed matrix differs: its gradient does not feel the decay yet.
  const auto plain = trained(three(), with_groups(""), 1);
  const auto decayed = trained(three(), with_groups("head.*:wd=0.5"), 1);
  const at::Tensor start = three()->head->weight.detach();
  for (const auto& [name, tensor] : decayed)
    EXPECT_EQ(same_bytes(tensor, plain.at(name)), name != "head.weight") << name;
  EXPECT_TRUE(
      at::allclose(decayed.at("head.weight"), plain.at("head.weight") - 0.01 * 0.5 * start, 1e-6, 1e-7));
}

TEST(ParamGroups, TheFirstMatchHolds) {
  const auto first = trained(three(), with_groups("body.weight:lr=0.5; body.*:lr=0.1"), 1);
  const auto half = trained(three(), with_groups("body.*:lr=0.5"), 1);
  const auto tenth = trained(three(), with_groups("body.*:lr=0.1"), 1);
  EXPECT_TRUE(same_bytes(first.at("body.weight"), half.at("body.weight")));
  EXPECT_TRUE(same_bytes(first.at("body.bias"), tenth.at("body.bias")));
}

TEST(ParamGroups, FrozenParametersRest) {
  Three model = three();
  const auto before = model->head->weight.detach().clone();
  const auto body_before = model->body->weight.detach().clone();
  Engine engine(classification_task(model), with_groups("head.*:frozen", 0.1, /*ema=*/true), solo());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(engine.step(inputs(), targets()).update, i + 1);
  }
  EXPECT_TRUE(same_bytes(model->head->weight, before));
  EXPECT_FALSE(same_bytes(model->body->weight, body_before));
  EXPECT_FALSE(model->head->weight.requires_grad());
  const auto names_head = [](const auto& named) { return named.first.starts_with("head."); };
  EXPECT_TRUE(std::ranges::none_of(engine.optimizer().state(), names_head));
  EXPECT_TRUE(std::ranges::none_of(engine.averages(), names_head));
  EXPECT_EQ(engine.averages().size(), 4U);
  ASSERT_EQ(engine.frozen().size(), 2U);
  EXPECT_EQ(engine.frozen()[0].first, "head.weight");
  // A second engine over the same module takes the same groups.
  Engine again(classification_task(model), with_groups("head.*:frozen"), solo());
  EXPECT_EQ(again.frozen().size(), 2U);
}

TEST(ParamGroups, FrozenParametersNeedNotBeFp32) {
  Three model = three();
  Task task = classification_task(model);
  model->register_parameter("table", at::ones({3}, at::kBFloat16));
  EXPECT_THROW(Engine(task, with_groups(""), solo()), ConfigError);
  EXPECT_EQ(Engine(task, with_groups("table:frozen"), solo()).frozen().size(), 1U);
}

TEST(ParamGroups, WhatReachesNothingIsRefused) {
  const auto refusal = [](const std::string& text) {
    return message_of<ConfigError>([&] { (void)trained(three(), with_groups(text), 0); });
  };
  EXPECT_THAT(refusal("haed.*:frozen"), AllOf(HasSubstr("haed.*"), HasSubstr("did you mean head.*?")));
  EXPECT_THAT(refusal("zzzzzzzzzz:frozen"), AllOf(HasSubstr("zzzzzzzzzz"), HasSubstr("embed.weight")));
  EXPECT_THAT(refusal("*:lr=2; head.*:frozen"), AllOf(HasSubstr("head.*"), HasSubstr("earlier group")));
  EXPECT_THAT(refusal("*.bias:wd=0.1"), AllOf(HasSubstr("*.bias"), HasSubstr("one dimension")));
  EXPECT_THAT(refusal("*:frozen"), HasSubstr("freeze every parameter"));
}

}  // namespace
}  // namespace gradstep::testing

// Modes come back part by part.
#include "model/mode_guard.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace gradstep {
namespace {

struct Net : torch::nn::Module {
  torch::nn::Linear head = register_module("head", torch::nn::Linear(2, 2));
  torch::nn::Sequential body =
      register_module("body", torch::nn::Sequential(torch::nn::BatchNorm1d(2), torch::nn::Dropout(0.5)));
};

std::vector<bool> modes(const torch::nn::Module& module) {
  std::vector<bool> result;
  for (const auto& part : module.modules()) result.push_back(part->is_training());
  return result;
}

TEST(ModeGuard, EachPartComesBackIntoItsOwnMode) {
  const auto net = std::make_shared<Net>();
  net->body[0]->eval();  // a frozen batch norm
  const std::vector<bool> before = modes(*net);
  EXPECT_EQ(before, (std::vector<bool>{true, true, true, false, true}));
  for (const bool training : {false, true}) {
    {
      const ModeGuard guard(*net, training);
      EXPECT_EQ(modes(*net), std::vector<bool>(5, training));
    }
    EXPECT_EQ(modes(*net), before);
  }
}

}  // namespace
}  // namespace gradstep

// GradSync and the worlds behind it: plain sums, in one collective, equal on all ranks.
#include "gradstep/dist/grad_sync.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "support/thread_world.h"
#include "support/toys.h"

namespace gradstep::testing {
namespace {

std::vector<at::Tensor> parameters_of(int64_t rank) {
  std::vector<at::Tensor> parameters;
  for (int64_t i = 0; i < 3; ++i) parameters.push_back(torch::zeros({i + 1, 2}).requires_grad_());
  // The first has a gradient on all ranks, the second on rank 1 only, the third on none.
  parameters[0].mutable_grad() = torch::full({1, 2}, static_cast<double>(rank + 1));
  if (rank == 1) parameters[1].mutable_grad() = torch::arange(4, at::kFloat).view({2, 2});
  return parameters;
}

TEST(GradSync, SumsOverRanksAndKeepsAbsentGradientsAbsent) {
  run_ranks(3, [](World& world) {
    std::vector<at::Tensor> parameters = parameters_of(world.rank());
    GradSync(parameters, world).sum_();
    EXPECT_TRUE(same_bytes(parameters[0].grad(), torch::full({1, 2}, 6.0)));
    EXPECT_TRUE(same_bytes(parameters[1].grad(), torch::arange(4, at::kFloat).view({2, 2})));
    EXPECT_FALSE(parameters[2].grad().defined());
  });
}

TEST(GradSync, NotFiniteOnOneRankIsNotFiniteOnAll) {
  run_ranks(2, [](World& world) {
    std::vector<at::Tensor> parameters{torch::zeros({2}).requires_grad_()};
    parameters[0].mutable_grad() = torch::tensor({1.0F, world.rank() == 1 ? NAN : 1.0F});
    GradSync(parameters, world).sum_();
    EXPECT_EQ(parameters[0].grad()[0].item<float>(), 2.0F);
    EXPECT_TRUE(std::isnan(parameters[0].grad()[1].item<float>()));
  });
}

TEST(GradSync, OneCollectiveAWindow) {
  ThreadHub hub(2);
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&hub, rank] {
      ThreadWorld world(hub, rank);
      GradSync(parameters_of(rank), world).sum_();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(hub.num_collectives, 1);
}

TEST(GradSync, AWorldOfOneChangesNothing) {
  std::vector<at::Tensor> parameters = parameters_of(1);
  const at::Tensor grad = parameters[1].grad();
  GradSync(parameters, solo()).sum_();
  EXPECT_TRUE(parameters[1].grad().is_same(grad));
  EXPECT_EQ(solo().rank(), 0);
  EXPECT_EQ(solo().size(), 1);
}

TEST(GradSync, NoParametersNeedNoCollective) {
  ThreadHub hub(1);
  ThreadWorld world(hub, 0);
  GradSync({}, world).sum_();
  EXPECT_EQ(hub.num_collectives, 0);
}

}  // namespace
}  // namespace gradstep::testing

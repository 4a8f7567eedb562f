// GradSync and the worlds behind it: plain sums, in one collective, equal on all ranks.
#include "dist/grad_sync.h"

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

// One exchange in which this rank's passes end as `own`.
SyncStatus summed(const std::vector<at::Tensor>& parameters, World& world,
                  SyncStatus own = SyncStatus::kComplete) {
  const std::unique_ptr<GradSync> sync = make_grad_sync(parameters, world);
  sync->begin(1);
  if (own == SyncStatus::kComplete) sync->arm({});
  return sync->finish(own);
}

TEST(GradSync, SumsOverRanksAndKeepsAbsentGradientsAbsent) {
  run_ranks(3, [](World& world) {
    std::vector<at::Tensor> parameters = parameters_of(world.rank());
    EXPECT_EQ(summed(parameters, world), SyncStatus::kComplete);
    EXPECT_TRUE(same_bytes(parameters[0].grad(), torch::full({1, 2}, 6.0)));
    EXPECT_TRUE(same_bytes(parameters[1].grad(), torch::arange(4, at::kFloat).view({2, 2})));
    EXPECT_FALSE(parameters[2].grad().defined());
  });
}

TEST(GradSync, NotFiniteOnOneRankIsNotFiniteOnAll) {
  run_ranks(2, [](World& world) {
    std::vector<at::Tensor> parameters{torch::zeros({2}).requires_grad_()};
    parameters[0].mutable_grad() = torch::tensor({1.0F, world.rank() == 1 ? NAN : 1.0F});
    EXPECT_EQ(summed(parameters, world), SyncStatus::kComplete);
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
      EXPECT_EQ(summed(parameters_of(rank), world), SyncStatus::kComplete);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(hub.num_collectives, 1);
}

TEST(GradSync, AWorldOfOneChangesNothing) {
  std::vector<at::Tensor> parameters = parameters_of(1);
  const at::Tensor grad = parameters[1].grad();
  EXPECT_EQ(summed(parameters, solo()), SyncStatus::kComplete);
  EXPECT_TRUE(parameters[1].grad().is_same(grad));
  EXPECT_EQ(solo().rank(), 0);
  EXPECT_EQ(solo().size(), 1);
}

TEST(GradSync, NoParametersNeedNoCollective) {
  ThreadHub hub(1);
  ThreadWorld world(hub, 0);
  EXPECT_EQ(summed({}, world), SyncStatus::kComplete);
  EXPECT_EQ(hub.num_collectives, 0);
}

TEST(GradSync, TheWorstStatusOfAnyRankIsThatOfAll) {
  for (const int64_t bad_rank : {0, 1, 2}) {
    for (const SyncStatus bad : {SyncStatus::kOutOfMemory, SyncStatus::kFailed}) {
      run_ranks(3, [&](World& world) {
        std::vector<at::Tensor> parameters = parameters_of(world.rank());
        const bool is_bad = world.rank() == bad_rank;
        if (is_bad) {
          for (at::Tensor& parameter : parameters) parameter.mutable_grad().reset();
        }
        EXPECT_EQ(summed(parameters, world, is_bad ? bad : SyncStatus::kComplete), bad);
        // The next exchange is whole again.
        std::vector<at::Tensor> again = parameters_of(world.rank());
        EXPECT_EQ(summed(again, world), SyncStatus::kComplete);
        EXPECT_TRUE(same_bytes(again[0].grad(), torch::full({1, 2}, 6.0)));
      });
    }
  }
  run_ranks(2, [](World& world) {
    const auto own = world.rank() == 0 ? SyncStatus::kFailed : SyncStatus::kOutOfMemory;
    EXPECT_EQ(summed({torch::zeros({2}).requires_grad_()}, world, own), SyncStatus::kFailed);
  });
  EXPECT_EQ(summed({torch::zeros({2})}, solo(), SyncStatus::kOutOfMemory), SyncStatus::kOutOfMemory);
}

}  // namespace
}  // namespace gradstep::testing

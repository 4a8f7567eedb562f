// Cutting a window, and the seeds of windows.
#include "step/micro_batches.h"

#include <gtest/gtest.h>

#include <set>

#include "step/window_seed.h"
#include "support/toys.h"

namespace gradstep::testing {
namespace {

std::vector<int64_t> sizes(int64_t window, int64_t micro, bool join) {
  std::vector<int64_t> result;
  int64_t expected_begin = 0;
  for (const Range range : micro_batches(window, micro, join)) {
    EXPECT_EQ(range.begin, expected_begin);
    expected_begin = range.end;
    result.push_back(range.size());
  }
  EXPECT_EQ(expected_begin, window);
  return result;
}

TEST(MicroBatches, AreCutGreedily) {
  EXPECT_EQ(sizes(8, 4, false), (std::vector<int64_t>{4, 4}));
  EXPECT_EQ(sizes(10, 4, true), (std::vector<int64_t>{4, 4, 2}));
  EXPECT_EQ(sizes(3, 10, false), (std::vector<int64_t>{3}));
  EXPECT_EQ(sizes(0, 4, false), (std::vector<int64_t>{}));
}

TEST(MicroBatches, ATailOfOneJoinsUnderBatchNorm) {
  EXPECT_EQ(sizes(9, 4, false), (std::vector<int64_t>{4, 4, 1}));
  EXPECT_EQ(sizes(9, 4, true), (std::vector<int64_t>{4, 5}));
  EXPECT_EQ(sizes(1, 4, true), (std::vector<int64_t>{1}));
}

TEST(MicroBatches, BatchNormTrainsOnATailOfOne) {
  torch::nn::Sequential model(torch::nn::Linear(4, 4), torch::nn::BatchNorm1d(4), torch::nn::Linear(4, 3));
  Engine engine(classification_task(model), {.schedule = {.shape = LrShape::kConstant}, .micro_batch = 4},
                solo());
  EXPECT_EQ(engine.step(at::randn({9, 4}), at::zeros({9}, at::kLong)).num_micro_batches, 2);
}

TEST(WindowSeed, IsFrozenAndSpreads) {
  // Part of the format: resume on another version depends on these.
  // The values come from the formula in window_seed.h, computed in Python.
  EXPECT_EQ(mix32(0U, 0, 0), 0U);
  EXPECT_EQ(mix32(0U, 1, 0), 4076774786U);
  EXPECT_EQ(mix32(0U, 0, 1), 675862180U);
  EXPECT_EQ(mix32(1U, 0, 0), 3793791033U);
  EXPECT_EQ(mix32(12345U, 678, 9), 192498983U);
  EXPECT_EQ(mix32(~uint64_t{0}, 1000000000000, 1023), 417857026U);
  std::set<uint32_t> seen;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    for (int64_t window = 0; window < 100; ++window) {
      for (int64_t rank = 0; rank < 4; ++rank) seen.insert(mix32(seed, window, rank));
    }
  }
  EXPECT_EQ(seen.size(), 4000U);
}

TEST(WindowSeed, DropoutDependsOnTheWindowAlone) {
  const auto run = [](int64_t disturb) {
    torch::manual_seed(3);
    torch::nn::Sequential model(torch::nn::Dropout(0.5), torch::nn::Linear(4, 3));
    Engine engine(classification_task(model),
                  {.schedule = {.shape = LrShape::kConstant}, .micro_batch = 2, .seed = 9}, solo());
    for (int i = 0; i < 3; ++i) {
      if (disturb > 0) (void)at::rand({disturb});
      engine.step(at::ones({4, 4}), at::zeros({4}, at::kLong));
    }
    return everything(engine);
  };
  EXPECT_TRUE(same_bytes(run(0), run(17)));
}

}  // namespace
}  // namespace gradstep::testing

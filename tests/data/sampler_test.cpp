// Sampler: the order is torch.randperm's, the cuts are numpy.array_split's, and every sample is seen once an
// epoch.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <limits>
#include <vector>

#include "gradstep/base/error.h"
#include "gradstep/data/loader.h"

namespace gradstep {
namespace {

std::vector<int64_t> to_vector(const at::Tensor& tensor) {
  return {tensor.const_data_ptr<int64_t>(), tensor.const_data_ptr<int64_t>() + tensor.numel()};
}

// Values printed by Python: torch.randperm(n, generator=torch.Generator().manual_seed(s)).tolist()
TEST(Sampler, OrderIsPythons) {
  EXPECT_EQ(to_vector(Sampler(10, 4, 0).epoch_order(0)),
            (std::vector<int64_t>{4, 1, 7, 5, 3, 9, 0, 8, 6, 2}));
  EXPECT_EQ(to_vector(Sampler(10, 4, 0).epoch_order(3)),
            (std::vector<int64_t>{6, 0, 3, 7, 8, 5, 1, 9, 2, 4}));
  EXPECT_EQ(to_vector(Sampler(10, 4, 5).epoch_order(2)),
            (std::vector<int64_t>{5, 0, 3, 4, 1, 7, 9, 6, 8, 2}));
}

TEST(Sampler, R27_SeedsThatTheGeneratorWouldCutAreRefused) {
  for (const uint64_t seed : {(uint64_t{1} << 32) + 5, ~uint64_t{0}})
    EXPECT_THROW(Sampler(7, 4, seed), ConfigError) << seed;
}

TEST(Sampler, LongOrderIsPythons) {
  const at::Tensor order = Sampler(60000, 128, 0).epoch_order(1);
  const std::vector<int64_t> ids = to_vector(order);
  EXPECT_EQ(std::vector<int64_t>(ids.begin(), ids.begin() + 5),
            (std::vector<int64_t>{35845, 27522, 33254, 23645, 11299}));
  EXPECT_EQ(std::vector<int64_t>(ids.end() - 5, ids.end()),
            (std::vector<int64_t>{6467, 3437, 21675, 36444, 12053}));
  EXPECT_EQ((order * torch::arange(60000)).sum().item<int64_t>(), 54051541603727);
}

TEST(Sampler, OrderIsThatOfTorchHere) {
  for (const int64_t size : {1, 2, 3, 1000, 40000, 100001}) {
    for (const uint64_t seed : {uint64_t{0}, uint64_t{42}, uint64_t{4294967295}}) {
      const at::Tensor expected =
          at::randperm(size, at::detail::createCPUGenerator(seed), at::TensorOptions(at::kLong));
      EXPECT_TRUE(torch::equal(Sampler(size, 1, seed).epoch_order(0), expected)) << size << " " << seed;
    }
  }
}

TEST(Sampler, OrderLeavesTheGlobalGeneratorAlone) {
  torch::manual_seed(3);
  const at::Tensor expected = torch::rand({4});
  torch::manual_seed(3);
  (void)Sampler(1000, 1, 9).epoch_order(0);
  EXPECT_TRUE(torch::equal(torch::rand({4}), expected));
}

// E7 within one rank: epochs differ, and repeat for the same seed.
TEST(Sampler, EpochsDiffer) {
  const Sampler sampler(100, 10, 1);
  EXPECT_FALSE(torch::equal(sampler.epoch_order(0), sampler.epoch_order(1)));
  EXPECT_TRUE(torch::equal(sampler.epoch_order(1), Sampler(100, 7, 1).epoch_order(1)));
}

TEST(Sampler, WindowsCoverAnEpochOnce) {
  for (const int64_t global_batch : {1, 3, 9, 10, 392, 1000}) {
    const Sampler sampler(10, global_batch, 0);
    int64_t next = 0;
    for (int64_t index = 0; index < sampler.windows_per_epoch(); ++index) {
      const Range range = sampler.window_range(index);
      EXPECT_EQ(range.begin, next);
      EXPECT_GE(range.size(), 1);
      EXPECT_LE(range.size(), global_batch);
      next = range.end;
    }
    EXPECT_EQ(next, 10);
  }
  EXPECT_EQ(Sampler(60000, 392, 0).windows_per_epoch(), 154);
  EXPECT_EQ(Sampler(60000, 392, 0).window_range(153).size(), 24);
}

TEST(ArraySplit, IsNumpys) {
  const auto sizes = [](int64_t size, int64_t world_size) {
    std::vector<int64_t> result;
    int64_t next = 0;
    for (int64_t rank = 0; rank < world_size; ++rank) {
      const Range range = array_split(size, world_size, rank);
      EXPECT_EQ(range.begin, next);
      next = range.end;
      result.push_back(range.size());
    }
    EXPECT_EQ(next, size);
    return result;
  };
  EXPECT_EQ(sizes(10, 4), (std::vector<int64_t>{3, 3, 2, 2}));
  EXPECT_EQ(sizes(2, 3), (std::vector<int64_t>{1, 1, 0}));
  EXPECT_EQ(sizes(0, 2), (std::vector<int64_t>{0, 0}));
}

TEST(Sampler, RefusesNonsense) {
  for (const int64_t num_samples : {int64_t{0}, std::numeric_limits<int64_t>::max()})
    EXPECT_THROW(Sampler(num_samples, 1, 0), DataError);
  EXPECT_THROW(Sampler(1, 0, 0), ConfigError);
  EXPECT_THROW((void)Sampler(10, 5, 0).window_range(2), c10::Error);
  EXPECT_THROW((void)array_split(4, 2, 2), c10::Error);
}

TEST(Sampler, AnOrderThatIsNotShuffledIsTheSameInEveryEpoch) {
  const Sampler sampler(5, 2, sequential_order(5));
  for (const int64_t epoch : {0, 1, 7})
    EXPECT_TRUE(torch::equal(sampler.epoch_order(epoch), torch::arange(5))) << epoch;
  EXPECT_EQ(sampler.windows_per_epoch(), 3);
}

TEST(Sampler, AnOrderOfOnesOwnMayRepeatSamples) {
  const Sampler sampler(4, 3, [](int64_t epoch) { return torch::full({4}, epoch, torch::kLong); });
  EXPECT_TRUE(torch::equal(sampler.epoch_order(2), torch::tensor({2, 2, 2, 2}, torch::kLong)));
}

TEST(Sampler, AnOrderOfAnotherLengthOrTypeIsRefused) {
  const auto refused = [](at::Tensor order) {
    return Sampler(4, 3, [order](int64_t /*epoch*/) { return order; });
  };
  EXPECT_THROW((void)refused(torch::arange(3)).epoch_order(0), DataError);
  EXPECT_THROW((void)refused(torch::arange(4, torch::kInt)).epoch_order(0), DataError);
  EXPECT_THROW((void)refused(torch::arange(8).slice(0, 0, 8, 2)).epoch_order(0), DataError);
}

}  // namespace
}  // namespace gradstep

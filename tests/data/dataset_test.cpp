// Data sets in memory: gather copies the right rows, bad targets are refused, a split is a pure function of
// its seed.
#include "gradstep/data/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "gradstep/base/error.h"
#include "gradstep/data/loader.h"
#include "support/message_of.h"

namespace gradstep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::message_of;
using ::testing::Not;

std::shared_ptr<TensorDataset> toy(int64_t size = 20) {
  return std::make_shared<TensorDataset>(DatasetSpec{"toy", {2, 3}, 10},
                                         torch::arange(size * 6).to(at::kByte).reshape({size, 2, 3}),
                                         torch::arange(size).remainder(10));
}

TEST(TensorDataset, GatherIsIndexSelect) {
  const auto dataset = toy();
  const at::Tensor inputs = torch::arange(120).to(at::kByte).reshape({20, 2, 3});
  for (const at::Tensor& ids : {torch::tensor({3, 3, 4, 5, 19, 0, 1}, at::kLong), torch::arange(20),
                                torch::empty({0}, at::kLong), torch::randperm(20, at::kLong)}) {
    const Batch batch = dataset->gather(ids);
    EXPECT_EQ(batch.size(), ids.numel());
    EXPECT_TRUE(torch::equal(batch.inputs, inputs.index_select(0, ids)));
    EXPECT_TRUE(torch::equal(batch.targets, ids.remainder(10)));
  }
}

TEST(TensorDataset, GatherKeepsTypeAndTrailingShape) {
  const TensorDataset dataset({"floats", {}, 0}, torch::rand({5}), torch::arange(10).reshape({5, 2}));
  const Batch batch = dataset.gather(torch::tensor({4, 0}, at::kLong));
  EXPECT_EQ(batch.inputs.scalar_type(), at::kFloat);
  EXPECT_TRUE(torch::equal(batch.targets, torch::tensor({{8, 9}, {0, 1}}, at::kLong)));
}

TEST(TensorDataset, GatherRefusesForeignIds) {
  EXPECT_THROW((void)toy()->gather(torch::tensor({20}, at::kLong)), c10::Error);
  EXPECT_THROW((void)toy()->gather(torch::tensor({-1}, at::kLong)), c10::Error);
  EXPECT_THROW((void)toy()->gather(torch::tensor({1}, at::kInt)), c10::Error);
}

TEST(TensorDataset, H6BadTargetIsRefusedWithItsRow) {
  for (const int64_t bad : {10, -1}) {
    at::Tensor targets = torch::zeros({7}, at::kLong);
    targets[5] = bad;
    const std::string message =
        message_of<DataError>([&] { TensorDataset({"toy", {1}, 10}, torch::zeros({7, 1}), targets); });
    EXPECT_THAT(message, HasSubstr("row 5"));
    EXPECT_THAT(message, HasSubstr("from 0 to 9, found " + std::to_string(bad)));
    EXPECT_THAT(message, Not(HasSubstr("\n")));
  }
}

TEST(TensorDataset, R50_TargetsThatAreNoClassesAreOneLine) {
  const auto refusal = [](const at::Tensor& targets) {
    return message_of<DataError>([&] { TensorDataset({"toy", {1}, 10}, torch::zeros({7, 1}), targets); });
  };
  EXPECT_THAT(refusal(torch::zeros({7})),
              AllOf(HasSubstr("expected int64 class indices"), Not(HasSubstr("\n"))));
  EXPECT_THAT(refusal(torch::zeros({7}, at::kInt)), HasSubstr("found Int"));
}

TEST(Loader, R50_ALoaderWithoutDataIsRefused) {
  EXPECT_THAT(message_of<ConfigError>([] { Loader(nullptr, Sampler(4, 2, uint64_t{0}), {}); }),
              HasSubstr("data"));
}

TEST(TensorDataset, ATargetThatDoesNotCountMayStandAmongClasses) {
  const at::Tensor targets = torch::tensor({int64_t{1}, kIgnoreIndex, int64_t{9}});
  const TensorDataset data({"toy", {1}, 10}, torch::zeros({3, 1}), targets);
  EXPECT_TRUE(at::equal(data.gather(torch::tensor({1}, at::kLong)).targets, targets.slice(0, 1, 2)));
}

TEST(TensorDataset, H4CountsThatDifferAreRefused) {
  EXPECT_THAT(message_of<DataError>([] {
                TensorDataset({"toy", {1}, 10}, torch::zeros({3, 1}), torch::zeros({2}, at::kLong));
              }),
              HasSubstr("3 inputs and 2 targets"));
  EXPECT_THROW(TensorDataset({"toy", {1}, 10}, torch::zeros({0, 1}), torch::zeros({0}, at::kLong)),
               DataError);
}

TEST(TensorDataset, FingerprintFollowsEveryByte) {
  const auto make = [](int64_t changed_input, int64_t changed_target, const std::string& name) {
    at::Tensor inputs = torch::zeros({4, 2, 2}, at::kByte);
    at::Tensor targets = torch::zeros({4}, at::kLong);
    if (changed_input >= 0) inputs.view({-1})[changed_input] = 1;
    if (changed_target >= 0) targets[changed_target] = 1;
    return TensorDataset({name, {2, 2}, 10}, inputs, targets).fingerprint();
  };
  EXPECT_EQ(make(-1, -1, "a"), make(-1, -1, "a"));
  std::set<std::string> all = {make(-1, -1, "a"), make(-1, -1, "b")};
  for (int64_t i = 0; i < 16; ++i) all.insert(make(i, -1, "a"));
  for (int64_t i = 0; i < 4; ++i) all.insert(make(-1, i, "a"));
  EXPECT_EQ(all.size(), 22U);
  EXPECT_NE(TensorDataset({"a", {4}, 10}, torch::zeros({4, 4}, at::kByte), torch::zeros({4}, at::kLong))
                .fingerprint(),
            make(-1, -1, "a"));
}

TEST(SubsetDataset, RenumbersItsParent) {
  const SubsetDataset subset(toy(), torch::tensor({7, 2, 19}, at::kLong));
  EXPECT_EQ(subset.size(), 3);
  EXPECT_EQ(subset.spec().name, "toy");
  EXPECT_TRUE(torch::equal(subset.gather(torch::tensor({2, 0}, at::kLong)).targets,
                           torch::tensor({9, 7}, at::kLong)));
  EXPECT_THROW((void)subset.gather(torch::tensor({3}, at::kLong)), c10::Error);
  EXPECT_THROW(SubsetDataset(toy(), torch::tensor({20}, at::kLong)), c10::Error);
  EXPECT_NE(subset.fingerprint(), SubsetDataset(toy(), torch::tensor({7, 2, 18}, at::kLong)).fingerprint());
  EXPECT_NE(subset.fingerprint(), toy()->fingerprint());
}

at::Tensor all_inputs(const Dataset& dataset) { return dataset.gather(torch::arange(dataset.size())).inputs; }

TEST(SplitValidation, PartsAreDisjointAndWhole) {
  const auto dataset = toy();
  const DatasetPair pair = split_validation(dataset, 0.25, 0);
  EXPECT_EQ(pair.train->size(), 15);
  EXPECT_EQ(pair.eval->size(), 5);
  // torch.randperm(20, generator=torch.Generator().manual_seed(0))[:5], sorted
  const at::Tensor held_out =
      std::get<0>(at::randperm(20, at::detail::createCPUGenerator(0), at::TensorOptions(at::kLong))
                      .slice(0, 0, 5)
                      .sort());
  EXPECT_TRUE(torch::equal(all_inputs(*pair.eval), dataset->gather(held_out).inputs));
  const at::Tensor both =
      torch::cat({all_inputs(*pair.train), all_inputs(*pair.eval)}).select(2, 0).select(1, 0);
  EXPECT_TRUE(torch::equal(std::get<0>(both.sort()), all_inputs(*dataset).select(2, 0).select(1, 0)));
}

TEST(SplitValidation, DependsOnSeedAndFractionAlone) {
  const auto fingerprint = [](double fraction, uint64_t seed) {
    const DatasetPair pair = split_validation(toy(), fraction, seed);
    return pair.train->fingerprint() + pair.eval->fingerprint();
  };
  EXPECT_EQ(fingerprint(0.3, 4), fingerprint(0.3, 4));
  EXPECT_NE(fingerprint(0.3, 4), fingerprint(0.3, 5));
  EXPECT_NE(fingerprint(0.3, 4), fingerprint(0.4, 4));
}

TEST(SplitValidation, LeavesASampleOnEitherSide) {
  EXPECT_EQ(split_validation(toy(), 1e-9, 0).eval->size(), 1);
  EXPECT_EQ(split_validation(toy(), 0.9999, 0).train->size(), 1);
  for (const double bad : {0.0, 1.0, -0.1, 1.5, std::nan("")}) {
    EXPECT_THROW((void)split_validation(toy(), bad, 0), ConfigError) << bad;
  }
  EXPECT_THROW((void)split_validation(toy(1), 0.5, 0), ConfigError);
}

}  // namespace
}  // namespace gradstep

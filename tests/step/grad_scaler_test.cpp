// The loss scale moves exactly as torch.amp.GradScaler's, down to the floor.
#include "step/grad_scaler.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "support/golden.h"
#include "support/toys.h"

namespace gradstep::testing {
namespace {

struct Entry {
  int64_t interval = 0;
  bool finite = false;
  double scale_before = 0;
  int64_t tracker_before = 0;
  double scale_after = 0;
  int64_t tracker_after = 0;
};

std::vector<Entry> golden_trajectory() {
  std::vector<Entry> entries;
  for (const std::string& line : golden_lines("scaler_trajectory.txt")) {
    std::istringstream text(line);
    Entry e;
    text >> e.interval >> e.finite >> e.scale_before >> e.tracker_before >> e.scale_after >> e.tracker_after;
    EXPECT_FALSE(text.fail()) << line;
    entries.push_back(e);
  }
  return entries;
}

TEST(GradScaler, FollowsThePythonClass) {
  const std::vector<Entry> entries = golden_trajectory();
  ASSERT_GT(entries.size(), 150U);
  std::unique_ptr<GradScaler> scaler;
  for (size_t i = 0; i < entries.size(); ++i) {
    const Entry& e = entries[i];
    const bool goes_on = i > 0 && entries[i - 1].interval == e.interval &&
                         entries[i - 1].scale_after == e.scale_before &&
                         entries[i - 1].tracker_after == e.tracker_before;
    if (!goes_on) {
      scaler = std::make_unique<GradScaler>(true, GradScalerOptions{.growth_interval = e.interval}, at::kCPU);
      scaler->restore(e.scale_before, e.tracker_before);
    }
    scaler->update(at::full({}, e.finite ? 0.0F : 1.0F));
    ASSERT_EQ(scaler->scale(), e.scale_after) << "entry " << i;
    ASSERT_EQ(scaler->num_good_updates(), e.tracker_after) << "entry " << i;
  }
}

TEST(GradScaler, DefaultsAreThoseOfPyTorch) {
  const GradScaler scaler(true, {}, at::kCPU);
  EXPECT_EQ(scaler.scale(), 65536.0);
  EXPECT_EQ(GradScalerOptions{}.growth_factor, 2.0);
  EXPECT_EQ(GradScalerOptions{}.backoff_factor, 0.5);
  EXPECT_EQ(GradScalerOptions{}.growth_interval, 2000);
}

TEST(GradScaler, UnscalesOnceAndFindsInfAnywhere) {
  GradScaler scaler(true, {.init_scale = 8}, at::kCPU);
  at::Tensor found = at::zeros({});
  std::vector<at::Tensor> grads{at::full({3}, 16.0F), at::full({2, 2}, 4.0F)};
  scaler.unscale_(grads, found);
  EXPECT_TRUE(at::equal(grads[0], at::full({3}, 2.0F)));
  EXPECT_TRUE(at::equal(grads[1], at::full({2, 2}, 0.5F)));
  EXPECT_EQ(found.item<float>(), 0.0F);
  grads[1][1][1] = std::numeric_limits<float>::infinity();
  scaler.unscale_(grads, found);
  EXPECT_EQ(found.item<float>(), 1.0F);
}

TEST(GradScaler, DisabledIsANoOp) {
  GradScaler scaler(false, {}, at::kCPU);
  at::Tensor found = at::zeros({});
  std::vector<at::Tensor> grads{at::full({1}, std::numeric_limits<float>::infinity())};
  scaler.unscale_(grads, found);
  scaler.update(at::ones({}));
  EXPECT_EQ(found.item<float>(), 0.0F);
  EXPECT_EQ(scaler.scale(), 1.0);
  EXPECT_EQ(scaler.num_good_updates(), 0);
}

TEST(GradScaler, EngineGrowsAfterTheInterval) {
  Dot dot(at::ones({1, 1}));
  Engine engine(dot_task(dot),
                {.schedule = {.shape = LrShape::kConstant, .peak = 0.1},
                 .precision = Precision::kFp16,
                 .scaler = {.init_scale = 4, .growth_interval = 3},
                 .micro_batch = 1},
                solo());
  std::vector<double> scales;
  for (int i = 0; i < 7; ++i)
    scales.push_back(engine.step(at::ones({1, 1}), at::zeros({1}, at::kLong)).loss_scale);
  EXPECT_EQ(scales, (std::vector<double>{4, 4, 4, 8, 8, 8, 16}));
}

}  // namespace
}  // namespace gradstep::testing

// normalize_bytes: bit-equal to the three ATen operations, for each byte, each layout and each length.
#include "model/normalize.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "support/toys.h"

namespace gradstep::testing {
namespace {

at::Tensor three_operations(const at::Tensor& bytes) { return ((bytes.to(at::kFloat) / 255) - 0.5) / 0.5; }

TEST(Normalize, AllBytesAreBitEqualToTheThreeOperations) {
  const at::Tensor bytes = torch::arange(256, at::kByte);
  const at::Tensor floats = normalize_bytes(bytes);
  EXPECT_TRUE(same_bytes(floats, three_operations(bytes)));
  EXPECT_EQ(floats[0].item<float>(), -1.0F);
  EXPECT_EQ(floats[255].item<float>(), 1.0F);
}

// Around vector widths, and above the size from which threads share the work.
TEST(Normalize, EveryLengthAndShape) {
  torch::manual_seed(0);
  for (const int64_t n : {0, 1, 2, 7, 8, 15, 16, 17, 31, 33, 63, 65, 255, (1 << 15) + 1, 3 * (1 << 15) + 5}) {
    const at::Tensor bytes = torch::randint(256, {n}, at::kByte);
    EXPECT_TRUE(same_bytes(normalize_bytes(bytes), three_operations(bytes))) << n;
  }
  const at::Tensor pictures = torch::randint(256, {3, 28, 28}, at::kByte);
  EXPECT_TRUE(same_bytes(normalize_bytes(pictures), three_operations(pictures)));
}

TEST(Normalize, StridesAndOffsetsDoNoHarm) {
  const at::Tensor bytes = torch::randint(256, {6, 8}, at::kByte);
  for (const at::Tensor& view :
       {bytes.t(), bytes.slice(1, 1, 8, 2), bytes.slice(0, 1, 5), bytes.select(1, 3)}) {
    EXPECT_TRUE(same_bytes(normalize_bytes(view), three_operations(view).contiguous()));
  }
  EXPECT_TRUE(at::equal(bytes, bytes.clone()));
}

TEST(Normalize, LeavesItsInputAloneAndFloatsAsTheyAre) {
  const at::Tensor bytes = torch::randint(256, {100}, at::kByte);
  const at::Tensor before = bytes.clone();
  (void)normalize_bytes(bytes);
  EXPECT_TRUE(at::equal(bytes, before));
  const at::Tensor floats = torch::randn({3});
  EXPECT_TRUE(normalize_bytes(floats).is_same(floats));
}

}  // namespace
}  // namespace gradstep::testing

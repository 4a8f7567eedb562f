// Suggestions for misspelt names.
// no torch
#include "base/nearest.h"

#include <gtest/gtest.h>

namespace gradstep {
namespace {

TEST(Nearest, EditDistance) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("abc", ""), 3U);
  EXPECT_EQ(edit_distance("batch", "batch"), 0U);
  EXPECT_EQ(edit_distance("bacth", "batch"), 1U);  // two letters swapped
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
}

TEST(Nearest, NamesWhatWasMeantAndNothingWhereNothingIsNear) {
  const std::vector<std::string> known{"--batch-size", "--lr", "--warmup-steps", "--seed", "--sched"};
  EXPECT_EQ(nearest("--bacth-size", known), "--batch-size");
  EXPECT_EQ(nearest("--batchsize", known), "--batch-size");
  EXPECT_EQ(nearest("--warmup", known), "--warmup-steps");
  EXPECT_EQ(nearest("--lrr", known), "--lr");
  EXPECT_EQ(nearest("--resume", known), "");
  EXPECT_EQ(nearest("--x", {}), "");
  EXPECT_EQ(did_you_mean("--sead", known), "; did you mean --seed?");
  EXPECT_EQ(did_you_mean("--tensorboard", known), "");
}

TEST(Nearest, KnownNamesBehindTheHint) {
  const std::vector<std::string> known{"mnist", "cifar10"};
  EXPECT_EQ(known_names("mnits", known), "; did you mean mnist? Known are mnist, cifar10");
  EXPECT_EQ(known_names("imagenet", known), "; known are mnist, cifar10");
}

}  // namespace
}  // namespace gradstep

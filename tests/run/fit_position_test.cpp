// no torch
// Where a run goes on, with the same global batch and with another.
#include "run/fit_position.h"

#include <gtest/gtest.h>

namespace gradstep {
namespace {

TrainState at(int64_t epoch, int64_t index, int64_t global_batch) {
  TrainState state;
  state.next = {.epoch = epoch, .index = index, .number = 100};
  state.global_batch = global_batch;
  return state;
}

void expect_position(const Position& position, int64_t epoch, int64_t index) {
  EXPECT_EQ(position.epoch, epoch);
  EXPECT_EQ(position.index, index);
  EXPECT_EQ(position.number, 100);
}

TEST(FitPosition, TheSameBatchGoesOnWhereItWas) {
  const Sampler sampler(100, 8, 0);
  expect_position(fit_position(at(2, 12, 8), sampler), 2, 12);
}

TEST(FitPosition, AnotherBatchGoesOnBehindTheConsumedSamples) {
  expect_position(fit_position(at(0, 6, 8), Sampler(100, 16, 0)), 0, 3);
  expect_position(fit_position(at(0, 5, 8), Sampler(100, 16, 0)), 0, 3);  // 40 consumed: none of them again
  expect_position(fit_position(at(1, 3, 16), Sampler(100, 8, 0)), 1, 6);
}

TEST(FitPosition, AnEpochThatIsUsedUpIsOver) {
  expect_position(fit_position(at(0, 12, 8), Sampler(100, 50, 0)), 1,
                  0);  // 96 of 100, and no window begins there
  expect_position(fit_position(at(0, 12, 8), Sampler(90, 96, 0)), 1, 0);
}

}  // namespace
}  // namespace gradstep

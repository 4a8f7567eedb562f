// no torch
// Which evaluation is the best, by each metric, and when patience ends.
#include "run/best_tracker.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace gradstep {
namespace {

EvalRow row(int64_t update, double loss, double acc) {
  return {.update = update, .val_loss = loss, .metrics = {{"acc", acc}}};
}

bool offer(BestTracker& tracker, EvalRow each) {
  tracker.offer(each);
  return each.best;
}

TEST(BestTracker, AccuracyRisesAndTheFirstOfEqualsStays) {
  BestTracker tracker({"val_acc", true}, 0);
  EXPECT_TRUE(offer(tracker, row(1, 2, 0.5)));
  EXPECT_FALSE(offer(tracker, row(2, 1, 0.5)));
  EXPECT_TRUE(offer(tracker, row(3, 3, 0.6)));
  EXPECT_EQ(tracker.best()->update, 3);
  EXPECT_FALSE(tracker.out_of_patience());
}

TEST(BestTracker, LossFalls) {
  BestTracker tracker({"val_loss", false}, 0);
  EXPECT_TRUE(offer(tracker, row(1, 2, 0.5)));
  EXPECT_FALSE(offer(tracker, row(2, 3, 0.9)));
  EXPECT_TRUE(offer(tracker, row(3, 1, 0.1)));
}

TEST(BestTracker, AveragesAreJudgedByTheirOwnNumbers) {
  BestTracker tracker({"ema_val_loss", false}, 0);
  EvalRow first = row(1, 2, 0.5);
  EXPECT_FALSE(offer(tracker, first));  // without averages it cannot be judged
  first.ema_val_loss = 4;
  first.ema_metrics = {{"acc", 0.1}};
  EXPECT_TRUE(offer(tracker, first));
  EvalRow worse = first;
  worse.val_loss = 0;
  worse.ema_val_loss = 5;
  EXPECT_FALSE(offer(tracker, worse));
  BestTracker by_accuracy({"ema_val_acc", true}, 0);
  EXPECT_TRUE(offer(by_accuracy, first));
}

// Case F11.
TEST(BestTracker, F11_WhatIsNotFiniteIsNeverTheBest) {
  BestTracker tracker({"val_acc", true}, 0);
  EXPECT_FALSE(offer(tracker, row(1, std::nan(""), 0.9)));
  EXPECT_TRUE(offer(tracker, row(2, 1, 0.1)));
  EXPECT_FALSE(offer(tracker, row(3, std::numeric_limits<double>::infinity(), 0.95)));
  EXPECT_EQ(tracker.best()->update, 2);
}

TEST(BestTracker, WhereTheBestWasLostTheNextIsTheBest) {
  BestTracker tracker({"val_acc", true}, 0);
  offer(tracker, row(1, 1, 0.5));
  tracker.forget(7);  // that of another update
  EXPECT_TRUE(tracker.best().has_value());
  tracker.forget(1);
  EXPECT_FALSE(tracker.best().has_value());
  EXPECT_TRUE(offer(tracker, row(2, 1, 0.4)));
}

TEST(BestTracker, PatienceIsPartOfWhatIsRestored) {
  BestTracker tracker({"val_acc", true}, 2);
  offer(tracker, row(1, 1, 0.5));
  offer(tracker, row(2, 1, 0.4));
  BestTracker resumed({"val_acc", true}, 2);
  resumed.restore(tracker.last(), tracker.best(), tracker.evals_without_best());
  EXPECT_FALSE(resumed.out_of_patience());
  offer(resumed, row(3, 1, 0.3));
  EXPECT_TRUE(resumed.out_of_patience());
  EXPECT_EQ(resumed.best()->update, 1);
}

}  // namespace
}  // namespace gradstep

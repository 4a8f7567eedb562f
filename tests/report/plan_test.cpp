// The plan of a run, word for word.
// no torch
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gradstep/report/rows.h"

namespace gradstep {
namespace {

using testing::HasSubstr;
using testing::Not;

RunPlan reference_job() {
  return {.dataset = "fashion-mnist in /data",
          .train_samples = 60000,
          .eval_samples = 10000,
          .eval_part = "validation part of the training set",
          .model = "mlp 784-256-10",
          .num_parameters = 203530,
          .device = "cpu, 2 threads",
          .precision = "bf16",
          .precision_reason = "2.1 x as fast as fp32",
          .world_size = 1,
          .micro_batch = 32,
          .num_micro_batches = 4,
          .global_batch = 128,
          .windows_per_epoch = 469,
          .last_window_samples = 96,
          .total_updates = 1407,
          .ends = "after 3 epochs",
          .lr_points = {{1, 1e-5}, {100, 1e-3}, {1407, 0}},
          .schedule = "cosine, 100 warm-up updates, peak 0.001, min 0",
          .optimizer = "adamw, betas 0.9 0.999, eps 1e-08",
          .decay_tensors = 2,
          .decay_parameters = 203264,
          .no_decay_tensors = 2,
          .no_decay_parameters = 266,
          .weight_decay = 1e-4,
          .checkpoint_bytes = 2442360,
          .memory_bytes = 300000000,
          .memory_free_bytes = 15000000000,
          .output_dir = "runs/first"};
}

TEST(Plan, Golden) {
  EXPECT_EQ(format_plan(reference_job()),
            "data        fashion-mnist in /data, 60,000 training samples\n"
            "evaluation  10,000 samples, validation part of the training set\n"
            "model       mlp 784-256-10, 203,530 parameters\n"
            "device      cpu, 2 threads\n"
            "precision   bf16: 2.1 x as fast as fp32\n"
            "batch       128 samples an update: 4 micro-batches of up to 32\n"
            "epoch       469 windows, the last one of 96 samples\n"
            "length      1,407 updates, ends after 3 epochs\n"
            "schedule    cosine, 100 warm-up updates, peak 0.001, min 0\n"
            "lr          1.00e-05 at 1, 1.00e-03 at 100, 0.00e+00 at 1407\n"
            "optimizer   adamw, betas 0.9 0.999, eps 1e-08\n"
            "decay       1e-04 on 2 tensors (203,264 parameters), none on 2 tensors (266 parameters)\n"
            "checkpoint  2.4 MB\n"
            "memory      about 300.0 MB of 15.0 GB free\n"
            "output      runs/first\n");
}

TEST(Plan, SaysRanksOneMicroBatchAndFullWindows) {
  RunPlan plan = reference_job();
  plan.world_size = 2;
  plan.num_micro_batches = 1;
  plan.micro_batch = 64;
  plan.last_window_samples = 128;
  plan.output_dir.clear();
  const std::string text = format_plan(plan);
  EXPECT_THAT(text, HasSubstr("batch       128 samples an update: 2 ranks, on each 1 micro-batch of 64\n"));
  EXPECT_THAT(text, HasSubstr("epoch       469 windows\n"));
  EXPECT_THAT(text, Not(HasSubstr("output")));
}

TEST(Plan, LeavesOutWhatHasNoNameAndNoNumber) {
  RunPlan plan = reference_job();
  plan.dataset = plan.model = plan.eval_part = "";
  std::string text = format_plan(plan);
  EXPECT_THAT(text, HasSubstr("data        60,000 training samples\nevaluation  10,000 samples\n"
                              "model       203,530 parameters\n"));
  plan.eval_samples = 0;
  plan.eval_part = "validation part of the training set";
  plan.total_updates = 0;
  plan.ends = "when its time is over";
  text = format_plan(plan);
  EXPECT_THAT(text, Not(HasSubstr("evaluation")));
  EXPECT_THAT(text, HasSubstr("length      ends when its time is over\n"));
}

TEST(Plan, ShowsGroupsBehindTheDecay) {
  RunPlan plan = reference_job();
  plan.groups = {"fc1.*: frozen, 2 tensors (9 parameters)", "*.bias: decay 0, 1 tensor (3 parameters)"};
  EXPECT_THAT(format_plan(plan), HasSubstr("(266 parameters)\n"
                                           "group       fc1.*: frozen, 2 tensors (9 parameters)\n"
                                           "group       *.bias: decay 0, 1 tensor (3 parameters)\n"
                                           "checkpoint"));
}

}  // namespace
}  // namespace gradstep

// R55: other programs on the machine. The clock is the test's own, so that no load decides.
#include "step/threads_probe.h"

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "gradstep/base/error.h"
#include "support/toys.h"

namespace gradstep::testing {
namespace {

using ::testing::HasSubstr;

// A model whose passes take as long as `seconds` says, for the number of threads and the passes
// already made with it. The clock stands still otherwise.
class ThreadsProbe : public ::testing::Test {
 protected:
  using Seconds = std::function<double(int threads, int64_t pass)>;

  void SetUp() override { at::set_num_threads(4); }
  void TearDown() override { at::set_num_threads(before_); }

  ThreadsChoice choose(const Seconds& seconds, const std::function<void()>& check_stop = {}) {
    torch::nn::Sequential model = small_classifier();
    Task task = classification_task(model);
    clock_ = 0;
    num_passes_.clear();
    task.forward = [&](const Batch& batch) mutable {
      const int threads = at::get_num_threads();
      clock_ += seconds(threads, num_passes_[threads]++);
      return model->forward(batch.inputs);
    };
    const Batch micro{at::rand({4, 4}), at::zeros({4}, at::kLong)};
    return choose_threads(task, micro, Precision::kFp32, Matmul::kTorch, check_stop,
                          {.wall = [&] { return clock_; }, .cpu = [&] { return own_core_ * clock_; }});
  }

  int before_ = at::get_num_threads();
  double clock_ = 0;
  double own_core_ = 1;                // the part of the time that the kernel lets the thread compute
  std::map<int, int64_t> num_passes_;  // by the number of threads
};

TEST_F(ThreadsProbe, R55_TheFastestNumberIsTakenAndTheOldOneStays) {
  EXPECT_EQ(choose([](int threads, int64_t) { return threads == 1 ? 0.002 : 0.06; }).threads, 1);
  EXPECT_EQ(choose([](int threads, int64_t) { return threads == 2 ? 0.002 : 0.06; }).threads, 2);
  const ThreadsChoice many = choose([](int threads, int64_t) { return 0.012 / threads; });
  EXPECT_EQ(many.threads, 4);
  EXPECT_EQ(many.reason, "measured a micro-batch: 1 thread 12.00 ms, 2 threads 6.00 ms, 4 threads 3.00 ms");
  EXPECT_EQ(at::get_num_threads(), 4);
  at::set_num_threads(1);
  EXPECT_EQ(choose([](int, int64_t) { return 0.01; }).reason, "");
}

TEST_F(ThreadsProbe, R55_MoreThreadsMustBeClearlyFaster) {
  EXPECT_EQ(choose([](int, int64_t) { return 0.005; }).threads, 1);
  EXPECT_EQ(choose([](int threads, int64_t) { return threads == 4 ? 0.0092 : 0.01; }).threads, 1);
  EXPECT_EQ(choose([](int threads, int64_t) { return threads == 4 ? 0.0088 : 0.01; }).threads, 4);
}

// A neighbour takes a core from time to time: at its fastest the larger number wins, and on the whole it
// loses.
TEST_F(ThreadsProbe, R55_LuckyMomentsDoNotDecide) {
  const auto disturbed = [](int threads, int64_t pass) {
    if (threads == 1) return 0.010;
    return pass % 40 < 15 ? 0.005 : 0.020;
  };
  EXPECT_EQ(choose(disturbed).threads, 1);
  EXPECT_GT(clock_, 0.5) << "it goes on measuring as long as there is doubt";
  EXPECT_LT(clock_, 1.5);
}

TEST_F(ThreadsProbe, R55_OneThreadStaysWhereOthersWantTheCores) {
  const auto two_thirds = [](int threads, int64_t) { return threads == 4 ? 0.006 : 0.010; };
  EXPECT_EQ(choose(two_thirds).threads, 4);
  own_core_ = 0.5;
  const ThreadsChoice beside = choose(two_thirds);
  EXPECT_EQ(beside.threads, 1);
  EXPECT_THAT(beside.reason, HasSubstr("; others want the cores"));
  EXPECT_EQ(choose([](int threads, int64_t) { return threads == 4 ? 0.003 : 0.010; }).threads, 4);
}

TEST_F(ThreadsProbe, R55_TheTrialIsShortWhereNothingDisturbs) {
  (void)choose([](int threads, int64_t) { return 0.004 / threads; });
  EXPECT_LT(clock_, 3 * 3 * 0.04);  // blocks, numbers of threads, seconds
  (void)choose([](int, int64_t) { return 0.004; });
  EXPECT_LT(clock_, 3 * 3 * 0.04);
  // Of a large model one block must do.
  (void)choose([](int threads, int64_t) { return 20.0 / threads; });
  EXPECT_EQ(num_passes_[1], 2);
}

TEST_F(ThreadsProbe, R36_AStopEndsTheTrial) {
  const auto stop = [&] {
    if (clock_ > 0.05) throw Error(ExitCode::kSigterm, "stopped");
  };
  EXPECT_THROW((void)choose([](int, int64_t) { return 0.01; }, stop), Error);
  EXPECT_LT(clock_, 0.12);
  EXPECT_EQ(at::get_num_threads(), 4);
}

}  // namespace
}  // namespace gradstep::testing

// The thread of the Checkpointer: it computes with nobody else, sees no signals, and holds no more memory
// after many saves than after a few.
#include <gtest/gtest.h>
#include <torch/torch.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "gradstep/checkpoint/checkpointer.h"
#include "support/saves.h"
#include "support/scratch_dir.h"

namespace gradstep::testing {
namespace {

namespace fs = std::filesystem;

// Of the threads of this process.
std::set<std::string> tasks() {
  std::set<std::string> numbers;
  for (const auto& entry : fs::directory_iterator("/proc/self/task"))
    numbers.insert(entry.path().filename().string());
  return numbers;
}

int64_t resident_bytes() {
  int64_t size = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// That 140 saves may add; a state has 8 MB. ThreadSanitizer's records of past accesses grow meanwhile.
#ifdef __SANITIZE_THREAD__
constexpr int64_t kAllowedBytes = 16'000'000;
#else
constexpr int64_t kAllowedBytes = 2'000'000;
#endif

// Bit n - 1 is signal n.
uint64_t blocked_signals(const std::string& task) {
  std::ifstream status("/proc/self/task/" + task + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("SigBlk:")) return std::stoull(line.substr(7), nullptr, 16);
  }
  return 0;
}

// A state of 8 MB, large enough for ATen to divide work on it among threads.
TrainState large_state() {
  TrainState state = state_at(0);
  state.model = {{"w", torch::randn({512, 1024})}};
  state.optimizer = {{"w.exp_avg", torch::randn({512, 1024})}, {"w.exp_avg_sq", torch::rand({512, 1024})}};
  state.ema = {{"w", torch::randn({512, 1024})}};
  return state;
}

class NumThreads {
 public:
  explicit NumThreads(int num) : before_(at::get_num_threads()) { at::set_num_threads(num); }
  ~NumThreads() { at::set_num_threads(before_); }
  NumThreads(const NumThreads&) = delete;
  NumThreads& operator=(const NumThreads&) = delete;

 private:
  const int before_;
};

TEST(CheckpointerThread, TwoHundredSavesTakeNoMoreThreadsAndNoMoreMemory) {
  const NumThreads two(2);
  const ScratchDir dir;
  FailingFileSystem disk = quick_disk();
  TrainState state = large_state();
  state.model[0].second.add_(1);  // the team of this thread is there
  const size_t num_before = tasks().size();
  Checkpointer checkpointer(disk, {.output_dir = dir.path(), .keep = 1});
  int64_t resident = 0;
  for (int64_t update = 1; update <= 200; ++update) {
    state.engine.counters.updates = update;
    // Now and then large numbers, which are looked at once more, and exports.
    state.model[0].second[0][0] = update % 20 == 0 ? 3e38 : 0.5;
    const SaveRequest request{.best = update % 50 == 0, .export_model = update % 50 == 0};
    ASSERT_EQ(save_and_wait(checkpointer, state, request).error, "");
    if (update == 60) resident = resident_bytes();
  }
  EXPECT_EQ(tasks().size(), num_before + 1);
  EXPECT_LT(resident_bytes() - resident, kAllowedBytes);
}

TEST(CheckpointerThread, SignalsAreBlockedInIt) {
  const ScratchDir dir;
  FailingFileSystem disk = quick_disk();
  const std::set<std::string> before = tasks();
  Checkpointer checkpointer(disk, {.output_dir = dir.path()});
  std::set<std::string> added;
  std::ranges::set_difference(tasks(), before, std::inserter(added, added.end()));
  ASSERT_EQ(added.size(), 1U);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGHUP, SIGALRM, SIGCHLD, SIGWINCH, SIGQUIT}) {
    EXPECT_TRUE(blocked_signals(*added.begin()) >> (signal - 1) & 1) << signal;
    // Those of the thread that made it are as before.
    EXPECT_FALSE(blocked_signals(std::to_string(getpid())) >> (signal - 1) & 1) << signal;
  }
}

}  // namespace
}  // namespace gradstep::testing

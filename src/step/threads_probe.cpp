// Means count and not the fastest pass: others that want the cores come and go, and stay for the whole run.
#include "step/threads_probe.h"

#include <torch/torch.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace gradstep {
namespace {

constexpr double kBlockSeconds = 0.03;  // longer than a time slice of the kernel
constexpr size_t kMinBlocks = 3;        // for each number of threads,
constexpr double kEnoughSeconds = 1;    // no further ones after that in all,
constexpr double kTooManySeconds = 5;   // and not even the fewest after that
constexpr double kMargin = 0.9;         // more threads must take at most this part of the time,
constexpr double kMarginBeside = 0.4;   // where others want the cores, too;
constexpr double kOwnCore = 0.9;        // those do if one thread gets less than this part of a core

// A number of threads and the times it took.
struct Way {
  int64_t threads = 1;
  double seconds = 0;      // in all blocks
  double cpu_seconds = 0;  // of the calling thread, in all blocks
  int64_t num_passes = 0;  // a forward and backward each, in all blocks
  size_t num_blocks = 0;
  double fastest = std::numeric_limits<double>::infinity();  // mean seconds a pass of the fastest block
  double slowest = 0;                                        // and of the slowest one
  bool is_out = false;                                       // another one won beyond doubt
  [[nodiscard]] double mean() const { return seconds / static_cast<double>(num_passes); }
};

// The number of threads is part of the process, not of the task.
class ThreadsGuard {
 public:
  ThreadsGuard() : threads_(at::get_num_threads()) {}
  ~ThreadsGuard() { use(threads_); }
  static void use(int64_t threads) {
    if (threads != at::get_num_threads()) at::set_num_threads(static_cast<int>(threads));
  }
  ThreadsGuard(const ThreadsGuard&) = delete;
  ThreadsGuard& operator=(const ThreadsGuard&) = delete;

 private:
  int threads_;
};

// Down from `most` by halves, so that all the cores are among them; the fewest first.
std::vector<Way> ways_up_to(int64_t most) {
  std::vector<Way> ways;
  for (int64_t threads = most; threads >= 1; threads /= 2) ways.insert(ways.begin(), Way{.threads = threads});
  return ways;
}

void time_block(Way& way, const std::function<void()>& pass, const TrialClock& clock) {
  ThreadsGuard::use(way.threads);
  pass();  // threads start, and fill their caches
  const double start = clock.wall();
  const double cpu_start = clock.cpu();
  double seconds = 0;
  int64_t num_passes = 0;
  do {
    pass();
    ++num_passes;
    seconds = clock.wall() - start;
  } while (seconds < kBlockSeconds);
  way.seconds += seconds;
  way.cpu_seconds += clock.cpu() - cpu_start;
  way.num_passes += num_passes;
  ++way.num_blocks;
  const double mean = seconds / static_cast<double>(num_passes);
  way.fastest = std::min(way.fastest, mean);
  way.slowest = std::max(way.slowest, mean);
}

// Where one thread has to share its core, the kernel still lets the threads of a short trial run side by
// side, and not those of a long run: on two cores beside two busy neighbours two threads took 0.6 of the time
// of one in the trial, and 1.3 in the run.
bool is_beside_others(const std::vector<Way>& ways) {
  const Way& one_thread = ways.front();
  return one_thread.cpu_seconds < kOwnCore * one_thread.seconds;
}
double margin(const std::vector<Way>& ways) { return is_beside_others(ways) ? kMarginBeside : kMargin; }

// Beside other work more threads lose far more when they are wrong than they win when they are right, so the
// fewer stay unless the more are clearly faster.
const Way& best_of(const std::vector<Way>& ways) {
  const Way* best = &ways.front();
  for (const Way& way : ways) {
    if (!way.is_out && (best->is_out || way.mean() < margin(ways) * best->mean())) best = &way;
  }
  return *best;
}

// Whether best_of would hold between any two of their blocks.
bool wins_beyond_doubt(const Way& best, const Way& other, double margin) {
  return best.threads > other.threads ? best.slowest < margin * other.fastest
                                      : margin * best.slowest < other.fastest;
}

// Takes out those that lost beyond doubt. Whether only one is left.
bool is_settled(std::vector<Way>& ways) {
  const Way& best = best_of(ways);
  for (Way& way : ways)
    way.is_out = way.is_out || (&way != &best && wins_beyond_doubt(best, way, margin(ways)));
  return std::ranges::count(ways, false, &Way::is_out) == 1;
}

}  // namespace

ThreadsChoice choose_threads(const Task& task, const Batch& micro, Precision precision, Matmul matmul,
                             const std::function<void()>& check_stop, const TrialClock& clock) {
  std::vector<Way> ways = ways_up_to(at::get_num_threads());
  if (ways.size() == 1) return {.threads = 1};
  TrialGuard guard(task, task.module->parameters().front().device());
  const ThreadsGuard threads;
  const Batch batch = prepared(task, micro.to(task.module->parameters().front().device()));
  use_matmul(matmul);
  const auto pass = [&] { forward_backward(task, batch, precision); };
  const double begin = clock.wall();
  const auto enough = [&] {
    const double seconds = clock.wall() - begin;
    if (ways.front().num_blocks < kMinBlocks) return seconds > kTooManySeconds;
    return is_settled(ways) || seconds > kEnoughSeconds;
  };
  do {
    for (Way& way : ways) {
      if (way.is_out) continue;
      if (check_stop) check_stop();
      time_block(way, pass, clock);
    }
  } while (!enough());
  guard.undo();
  std::vector<std::pair<std::string, double>> times;
  for (const Way& way : ways) {
    times.emplace_back(std::to_string(way.threads) + (way.threads == 1 ? " thread" : " threads"), way.mean());
  }
  std::string reason = times_text(times);
  if (is_beside_others(ways))
    reason += "; others want the cores, too, so more threads would have to win by far";
  return {.threads = best_of(ways).threads, .reason = reason};
}

}  // namespace gradstep

// One thread that writes what save() copied. It takes no part in computing, and no signals.
#include "gradstep/checkpoint/checkpointer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "base/error_text.h"
#include "base/out_of_memory.h"
#include "checkpoint/checkpoint_files.h"
#include "checkpoint/disk_room.h"
#include "checkpoint/finite.h"
#include "checkpoint/leftover.h"
#include "checkpoint/output_lock.h"
#include "checkpoint/staging.h"
#include "gradstep/base/error.h"
#include "gradstep/checkpoint/checkpoint.h"

namespace gradstep {
namespace {

using Clock = std::chrono::steady_clock;

// So many saves are remembered to say how long the next one takes.
constexpr size_t kRecentSaves = 5;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// What distinguishes two states of one run: the position, and what happened since without an update.
struct StateKey {
  int64_t updates = -1;
  int64_t windows = -1;
  int64_t evaluated = -1;
  int64_t num_rollbacks = -1;
  int64_t micro_batch = -1;
  bool operator==(const StateKey&) const = default;
};

StateKey key_of(const TrainState& state) {
  return {state.engine.counters.updates, state.engine.counters.windows,
          state.last_eval ? state.last_eval->update : -1, state.num_rollbacks, state.engine.micro_batch};
}

// The exception being handled, in one line; sets `diverged` if it is a Diverged.
std::string current_error(bool& diverged) {
  constexpr char kAdvice[] = "; check the disk and the rights of the folder";
  try {
    throw;
  } catch (const Error& error) {
    diverged = error.exit_code() == ExitCode::kDiverged;
    return error.what();
  } catch (const std::system_error& error) {
    return one_line(error) + kAdvice;
  } catch (const std::exception& error) {
    return "cannot save: " + one_line(error);
  } catch (...) {
    return "cannot save: an exception of an unknown type";
  }
}

// Threads that start while this lives receive no signals: handlers run on the thread of the run.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

class Checkpointer::Impl {
 public:
  Impl(FileSystem& file_system, CheckpointerOptions options)
      : file_system_(file_system), options_(std::move(options)), owner_(lock_text(options_.output_dir)) {
    tidy();
    const SignalsBlocked blocked;
    worker_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
  }

  ~Impl() { wait(); }

  void save(const TrainState& state, const SaveRequest& request) {
    const Clock::time_point start = Clock::now();
    wait();
    // From here on nothing is shared with the thread until the job is handed over.
    Job job{.request = request, .key = key_of(state), .start = start};
    job.writes = job.key != saved_;
    job.outcome.update = state.engine.counters.updates;
    job.outcome.best = request.best;
    if (!job.writes && !request.best && !request.export_model) return finish(job, job.outcome);
    try {
      staging_.copy(state, job.writes);
    } catch (const std::exception& error) {
      // If no memory is left for a copy, the run waits while its own tensors are written.
      if (is_out_of_memory(error)) return finish(job, run(state, job));
      job.outcome.error = current_error(job.outcome.diverged);
      return finish(job, job.outcome);
    }
    job.outcome.stall_seconds = seconds_since(start);
    const std::lock_guard lock(mutex_);
    job_ = std::move(job);
    changed_.notify_all();
  }

  void note_saved(const TrainState& state) {
    wait();
    saved_ = key_of(state);
  }

  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !job_; });
  }

  [[nodiscard]] bool in_flight() {
    const std::lock_guard lock(mutex_);
    return job_.has_value();
  }

  std::vector<SaveOutcome> outcomes() {
    const std::lock_guard lock(mutex_);
    return std::exchange(outcomes_, {});
  }

  [[nodiscard]] std::optional<double> save_seconds() {
    const std::lock_guard lock(mutex_);
    if (recent_seconds_.empty()) return std::nullopt;
    return std::ranges::max(recent_seconds_);
  }

 private:
  struct Job {
    SaveRequest request{};
    StateKey key{};
    Clock::time_point start{};
    bool writes = true;  // else only the exports
    SaveOutcome outcome{};
  };

  void tidy() {
    tidy_checkpoints(file_system_, options_.output_dir);
    try {
      for (const std::string& name : file_system_.list(options_.output_dir)) {
        if (is_leftover(name)) file_system_.remove_all(options_.output_dir + "/" + name);
      }
    } catch (const std::system_error&) {
      bool diverged = false;
      throw CheckpointError(current_error(diverged));
    }
  }

  void work(const std::stop_token& stop) {
    const at::NoGradGuard no_grad;
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [&] { return job_.has_value(); })) {
      lock.unlock();
      // save() waits while there is a job: it is ours alone.
      SaveOutcome outcome = run(staging_.state(), *job_);
      lock.lock();
      note(*job_, std::move(outcome));
      job_.reset();
      changed_.notify_all();
    }
  }

  // REQUIRES: the lock is held.
  void note(const Job& job, SaveOutcome outcome) {
    if (outcome.error.empty() && job.writes) {
      saved_ = job.key;
      recent_seconds_.push_back(outcome.seconds);
      if (recent_seconds_.size() > kRecentSaves) recent_seconds_.pop_front();
    }
    outcomes_.push_back(std::move(outcome));
  }

  // Nothing was handed over: the outcome is known to the caller's thread.
  void finish(const Job& job, SaveOutcome outcome) {
    outcome.stall_seconds = outcome.seconds = seconds_since(job.start);
    const std::lock_guard lock(mutex_);
    note(job, std::move(outcome));
  }

  SaveOutcome run(const TrainState& state, const Job& job) {
    SaveOutcome outcome = job.outcome;
    try {
      outcome.bytes = write(state, job);
    } catch (...) {
      outcome.error = current_error(outcome.diverged);
    }
    outcome.seconds = seconds_since(job.start);
    // A file of 100 MB takes some 20 ms to remove; the new one is durable before.
    if (outcome.error.empty() && job.writes) remove_old(state);
    return outcome;
  }

  uint64_t write(const TrainState& state, const Job& job) {
    require_owner(options_.output_dir, owner_);
    // Before an export: write_checkpoint looks for itself.
    if (job.request.best || job.request.export_model) require_finite(state);
    SaveBytes bytes = save_bytes(state);
    if (!job.writes) bytes.checkpoint = 0;
    require_room(file_system_, options_.output_dir, bytes, job.request);
    uint64_t written = 0;
    if (job.request.best) written += export_as("best", state);
    if (job.request.export_model) written += export_as("model", state);
    if (!job.writes) return written;
    sync_reports(state);
    return written + write_checkpoint_of(owner_, file_system_, options_.output_dir, state);
  }

  uint64_t export_as(const std::string& stem, const TrainState& state) {
    const std::string path = options_.output_dir + "/" + stem;
    uint64_t written = save_model(file_system_, path + ".safetensors", state.model, state.info);
    if (!state.ema.empty())
      written += save_model(file_system_, path + "-ema.safetensors", with_averages(state), state.info);
    return written;
  }

  // A checkpoint must not know of rows that a power cut can take.
  void sync_reports(const TrainState& state) {
    if (state.report_positions.empty()) return;
    const std::vector<std::string> names = file_system_.list(options_.output_dir);
    for (const auto& [name, position] : state.report_positions) {
      if (std::ranges::binary_search(names, name)) file_system_.sync_file(options_.output_dir + "/" + name);
    }
  }

  // Keeps the checkpoint just written, even if the run went back and newer ones exist. If one cannot be
  // removed, the next save tries again: this save is durable and does not fail.
  void remove_old(const TrainState& state) {
    const auto best = state.best_eval ? std::optional(state.best_eval->update) : std::nullopt;
    try {
      for (const int64_t update : retention(list_checkpoints(options_.output_dir), options_.keep, best)) {
        if (update == state.engine.counters.updates) continue;
        // Renamed first, so that what is named step-* is whole if this is killed.
        const std::string parent = checkpoints_dir(options_.output_dir) + "/";
        const std::string doomed = parent + temporary_name(checkpoint_name(update));
        file_system_.remove_all(doomed);
        file_system_.rename(parent + checkpoint_name(update), doomed);
        file_system_.remove_all(doomed);
      }
    } catch (const std::exception&) {
    }
  }

  FileSystem& file_system_;
  const CheckpointerOptions options_;
  const std::string owner_;  // the folder's lock, as it was

  // Of save() while there is no job, else of the thread.
  Staging staging_;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::optional<Job> job_;
  StateKey saved_;  // changes only while there is a job
  std::vector<SaveOutcome> outcomes_;
  std::deque<double> recent_seconds_;

  std::jthread worker_;  // last: it stops before the others go
};

Checkpointer::Checkpointer(FileSystem& file_system, CheckpointerOptions options)
    : impl_(std::make_unique<Impl>(file_system, std::move(options))) {}
Checkpointer::~Checkpointer() = default;
void Checkpointer::save(const TrainState& state, const SaveRequest& request) { impl_->save(state, request); }
void Checkpointer::note_saved(const TrainState& state) { impl_->note_saved(state); }
void Checkpointer::wait() { impl_->wait(); }
bool Checkpointer::in_flight() const { return impl_->in_flight(); }
std::vector<SaveOutcome> Checkpointer::outcomes() { return impl_->outcomes(); }
std::optional<double> Checkpointer::save_seconds() const { return impl_->save_seconds(); }

}  // namespace gradstep

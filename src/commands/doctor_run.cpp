// Reads all that a run left, as the commands would that use it.
#include "commands/doctor_run.h"

#include <ATen/core/Tensor.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>

#include "app/make_job.h"
#include "app/program.h"
#include "app/resume_flag.h"
#include "app/saved_run.h"
#include "app/train_config.h"
#include "base/utf8.h"
#include "checkpoint/checkpoint_files.h"
#include "checkpoint/finite.h"
#include "checkpoint/leftover.h"
#include "checkpoint/lock_state.h"
#include "checkpoint/output_lock.h"
#include "commands/ckpt_path.h"
#include "commands/doctor_rows.h"
#include "config/config_file.h"
#include "gradstep/checkpoint/checkpoint.h"
#include "gradstep/checkpoint/model_file.h"
#include "io/read_file.h"
#include "report/format.h"

namespace gradstep {
namespace {

namespace fs = std::filesystem;

constexpr char kModelFiles[][24] = {"model.safetensors", "model-ema.safetensors", "best.safetensors",
                                    "best-ema.safetensors"};

// The names in a folder. A run beside us may remove them at any moment. Throws CheckpointError.
std::vector<std::string> names_in(const std::string& folder) try {
  return posix_file_system().list(folder);
} catch (const std::system_error& error) {
  throw AccessError(std::string(error.what()) + "; check the folder and its rights");
}

std::string count_text(size_t number, const std::string& what) {
  return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
}

class RunChecks {
 public:
  RunChecks(std::string run, const Tell& tell) : run_(std::move(run)), tell_(tell) {}

  void all() {
    guarded("lock", ExitCode::kUsage, [&] { lock(); });
    guarded("leftovers", ExitCode::kCheckpoint, [&] { leftovers(); });
    guarded("checkpoints", ExitCode::kCheckpoint, [&] { checkpoints(); });
    guarded("settings", ExitCode::kUsage, [&] { settings(); });
    guarded("rows", ExitCode::kCheckpoint, [&] { rows(); });
    for (const char* name : kModelFiles) guarded("model", ExitCode::kCheckpoint, [&] { model_file(name); });
    guarded("data", ExitCode::kData, [&] { data(); });
    guarded("times", ExitCode::kCheckpoint, [&] { times(); });
    guarded("rights", ExitCode::kUsage, [&] { rights(); });
  }

 private:
  // An exception is a problem of the check. What cannot be read is not called damage; it gets the code that a
  // run would leave with.
  template <class Check>
  void guarded(const std::string& name, ExitCode access, Check check) try {
    check();
  } catch (const AccessError& error) {
    tell_(problem(name, error.what(), access));
  } catch (...) {
    tell_(failed(name));
  }

  [[nodiscard]] std::string file(const std::string& name) const { return run_ + "/" + name; }

  void lock() {
    FolderLock found;
    try {
      found = look_at_lock(run_);
    } catch (const CheckpointError& error) {  // a start is refused for the folder, not for a checkpoint
      return tell_(problem("lock", error.what(), ExitCode::kUsage));
    }
    live_ = found.state == LockState::kHeld;
    const std::string owner = found.owner.empty() ? "another process" : found.owner;
    if (live_) return tell_(fine("lock", "held by " + owner + ": the run goes on"));
    if (found.state == LockState::kFree) return tell_(fine("lock", "free"));
    tell_(fine("lock", "free; the file is left over from " + owner + ", and the next start takes it"));
  }

  void leftovers() {
    std::vector<std::string> found;
    std::string moved;
    for (const std::string& name : names_in(run_)) {
      if (is_leftover(name)) found.push_back(name);
    }
    for (const std::string& name : names_in(checkpoints_dir(run_))) {
      if (is_temporary_name(name)) found.push_back("checkpoints/" + name);
      if (name_before_move(name)) moved = *name_before_move(name);
    }
    if (live_) return tell_(fine("leftovers", found.empty() ? "none" : "none; a save is under way"));
    std::string text = found.empty() ? "none"
                                     : count_text(found.size(), "leftover") + " of a save that was killed (" +
                                           found.front() + "); the next start removes what is left";
    if (!moved.empty()) text += "; " + moved + " was moved aside, and the next start puts it back";
    tell_(fine("leftovers", text));
  }

  // Every one is read whole, oldest first; a line for each that is not, and one for the others.
  void checkpoints() {
    const std::string folder = checkpoints_dir(run_);
    std::error_code ignored;
    if (fs::is_symlink(folder, ignored) && !fs::exists(status_of(folder))) {
      return tell_(problem("checkpoints",
                           folder + ": is a link to " + fs::read_symlink(folder, ignored).string() +
                               ", which is not there; mount its disk",
                           ExitCode::kCheckpoint));
    }
    std::set<int64_t> seen;
    size_t num_whole = 0;
    uint64_t bytes = 0;
    for (std::vector<int64_t> updates = list_checkpoints(run_); !updates.empty();) {
      const int64_t update = updates.front();
      updates.erase(updates.begin());
      if (!seen.insert(update).second) continue;
      const std::string path = folder + "/" + checkpoint_name(update);
      if (read_one(path)) {
        ++num_whole;
        bytes += folder_bytes(path);
      } else if (!fs::exists(status_of(path))) {  // a run's retention took it away: list again
        updates = list_checkpoints(run_);
      }
    }
    if (num_whole > 0) return tell_(fine("checkpoints", text_of_whole(num_whole, bytes)));
    if (!seen.empty()) return;  // each was told
    if (live_) return tell_(fine("checkpoints", "none yet"));
    if (has_ended(run_)) {
      return tell_(problem("checkpoints",
                           folder + ": holds no checkpoint of a run that has ended; put its checkpoints "
                                    "back, or begin anew in another folder",
                           ExitCode::kCheckpoint));
    }
    tell_(warning("checkpoints", "none yet: the next start begins anew"));
  }

  // False: it is broken, which is told, or it vanished, which is not.
  bool read_one(const std::string& path) {
    try {
      TrainState state = read_checkpoint(path);
      std::optional<Finding> wrong;
      try {
        require_finite(state);
      } catch (const Error&) {
        wrong = failed("checkpoints");
        wrong->text = path + ": " + wrong->text;
      }
      if (!newest_ || newest_->engine.counters.updates <= state.engine.counters.updates)
        keep(std::move(state));
      if (wrong) tell_(*wrong);
      return !wrong;
    } catch (const std::exception&) {
      Finding wrong = failed("checkpoints");
      if (fs::exists(status_of(path))) tell_(std::move(wrong));
      return false;
    }
  }

  // As the newest so far, without its tensors.
  void keep(TrainState state) {
    buffers_.clear();
    const size_t num_buffers = std::min(static_cast<size_t>(state.num_buffers), state.model.size());
    for (size_t i = state.model.size() - num_buffers; i < state.model.size(); ++i)
      buffers_.insert(state.model[i].first);
    state.model = state.optimizer = state.ema = state.user.tensors = {};
    newest_ = std::move(state);
  }

  [[nodiscard]] std::string text_of_whole(size_t number, uint64_t bytes) const {
    const TrainState& state = *newest_;
    std::string text = count_text(number, "checkpoint") + (number == 1 ? " is" : " are") + " whole (" +
                       bytes_text(static_cast<int64_t>(bytes)) + "), the newest at update " +
                       std::to_string(state.engine.counters.updates);
    if (state.total_updates > 0) text += " of " + std::to_string(state.total_updates);
    return text;
  }

  void settings() {
    const std::string path = file("config.toml");
    const fs::file_status status = status_of(path);
    if (!fs::exists(status)) {
      if (live_ && !newest_) return tell_(fine("settings", "config.toml is not there yet"));
      return tell_(warning("settings", path + ": missing; give the flags of the run again when it goes on"));
    }
    if (!fs::is_regular_file(status))
      return tell_(problem("settings", path + ": is no plain file; remove it", ExitCode::kUsage));
    (void)ReadFile(path);  // tells rights from faults
    RunSettings read(program().catalog);
    for (const std::string& text : resolve_train_settings({{config_flag().key, path}}, {}, read))
      tell_(warning("settings", path + ": " + text));
    tell_(fine("settings", "config.toml can be read: " + read.config.model + " on " + read.config.dataset));
  }

  void rows() {
    std::vector<Finding> found;
    // A run that rolls back cuts its rows while we read them: look again.
    constexpr int kMaxTries = 3;
    for (int i = 0; i < kMaxTries; ++i) {
      found = examine_rows(run_, newest_ ? &*newest_ : nullptr, live_, &ended_for_good_);
      const bool well = std::ranges::find(found, Grade::kProblem, &Finding::grade) == found.end();
      if (well || !live_) break;
      reread_newest();
    }
    for (Finding& each : found) tell_(std::move(each));
  }

  // The summary of the newest checkpoint that can be read now.
  void reread_newest() try {
    const std::vector<int64_t> updates = list_checkpoints(run_);
    if (updates.empty()) return newest_.reset();
    newest_ = read_checkpoint_summary(checkpoints_dir(run_) + "/" + checkpoint_name(updates.back()));
  } catch (const CheckpointError&) {
    // It is being replaced, or was told before.
  }

  // What a start would run into.
  void rights() {
    for (const std::string& folder : {run_, run_ + "/checkpoints"}) {
      std::error_code gone;
      if (!fs::exists(folder, gone) || ::access(folder.c_str(), W_OK | X_OK) == 0) continue;
      return tell_(problem("rights",
                           folder + ": cannot be written: " + std::strerror(errno) +
                               "; a start would be refused: mend its rights, or mount its disk for writing",
                           ExitCode::kUsage));
    }
    tell_(fine("rights", "files can be written there"));
  }

  void model_file(const std::string& name) {
    const std::string path = file(name);
    const fs::file_status status = status_of(path);
    const bool is_best = name.starts_with("best");
    if (!fs::exists(status)) return missing_model(name, is_best);
    if (!fs::is_regular_file(status))
      return tell_(problem("model", path + ": is no plain file; move it away", ExitCode::kCheckpoint));
    const ModelFile content = read_model_file(path);
    for (const auto& [tensor_name, tensor] : content.tensors) {
      // A mask may have infinities on purpose, and only a checkpoint says what is a parameter.
      const bool may_be_buffer = !newest_ || buffers_.contains(tensor_name);
      if (may_be_buffer ? !has_nan(tensor) : all_finite(tensor)) continue;
      return tell_(problem("model",
                           path + ": tensor " + tensor_name +
                               " is not finite; write the weights of an earlier checkpoint with ckpt export",
                           ExitCode::kDiverged));
    }
    const int64_t update = content.info.update;
    const std::string text = name + " is whole and finite, of update " + std::to_string(update);
    if (!newest_ || live_) return tell_(fine("model", text));
    const int64_t newest = newest_->engine.counters.updates;
    if (update > newest)
      return tell_(
          fine("model", text + "; its checkpoint was not written any more, and the run makes it again"));
    if (is_best && newest_->best_eval && update != newest_->best_eval->update) {
      return tell_(warning("model", path + ": is of update " + std::to_string(update) +
                                        ", while the best evaluation is of update " +
                                        std::to_string(newest_->best_eval->update) +
                                        "; write it to another place with ckpt export of that checkpoint"));
    }
    if (!is_best && update < newest && ended_for_good_)
      return tell_(warning("model", path + ": is of update " + std::to_string(update) +
                                        ", and the run ended at " + std::to_string(newest) +
                                        "; train --config " + file("config.toml") +
                                        " --resume auto writes it anew"));
    if (!is_best && update < newest) return tell_(fine("model", text + "; the run went on since"));
    tell_(fine("model", text));
  }

  // Only what the newest checkpoint promises is missed.
  void missing_model(const std::string& name, bool is_best) {
    const bool wants_averages = name.find("-ema") != std::string::npos;
    if (!newest_ || live_ || (wants_averages && !has_averages())) return;
    if (!is_best && ended_for_good_)
      return tell_(warning("model", file(name) + ": missing, though the run has ended; train --config " +
                                        file("config.toml") + " --resume auto writes it anew"));
    if (!is_best || !newest_->best_eval) return;
    tell_(warning("model", file(name) + ": missing, though update " +
                               std::to_string(newest_->best_eval->update) +
                               " is the best so far; write its checkpoint to another place with ckpt export, "
                               "if it is there still"));
  }

  [[nodiscard]] bool has_averages() const {
    const auto found = newest_->settings.find("ema");
    return found != newest_->settings.end() && found->second != "0";
  }

  void data() {
    if (!newest_) return tell_(fine("data", "not checked: only a whole checkpoint says what it was"));
    const std::map<std::string, std::string>& recorded = newest_->info.settings;
    if (!recorded.contains("dataset") || !recorded.contains("model")) {
      return tell_(warning("data",
                           "not checked: the run records no data set by name, as a program of its own "
                           "does; use that program"));
    }
    const auto folder = recorded.find("data_dir");
    if (folder != recorded.end()) {
      if (folder->second.find(kReplacementCharacter) != std::string::npos)
        return tell_(
            warning("data", "not checked: the name of the folder " + folder->second + " is no text"));
      if (!fs::exists(status_of(folder->second))) {
        return tell_(problem("data",
                             "the folder of the data, " + folder->second + ", is not there; put it back, " +
                                 "or name the new one with --data-dir when the run goes on",
                             ExitCode::kData));
      }
    }
    const std::unique_ptr<RunSettings> restored =
        restore_settings(run_ + "/checkpoints", recorded, /*given=*/{});
    const DatasetPair now = load_data(*restored);
    const std::string place =
        restored->config.dataset + (folder == recorded.end() ? "" : " in " + folder->second);
    const std::string train_print = to_utf8(now.train->fingerprint());
    if (train_print != newest_->dataset_fingerprint) {
      return tell_(problem("data",
                           place + ": is not what the run was trained on (fingerprint " + train_print +
                               ", recorded " + newest_->dataset_fingerprint +
                               "); put the old data back, or begin a new run",
                           ExitCode::kData));
    }
    // A resume goes on with other evaluation data. Checkpoints of the first version do not know them.
    const std::string eval_print = now.eval ? to_utf8(now.eval->fingerprint()) : "";
    if (!newest_->eval_fingerprint.empty() && eval_print != newest_->eval_fingerprint) {
      return tell_(
          warning("data", place + ": the evaluation part is another than before, so evaluations cannot be "
                                  "compared; put the old data back"));
    }
    tell_(fine("data", place + ": " + count_text(static_cast<size_t>(now.train->size()), "training sample") +
                           ", as the run was trained on"));
  }

  // Of the files in the folder, against the clock.
  void times() {
    constexpr auto kTolerance = std::chrono::minutes(2);  // between two machines
    const fs::file_time_type now = fs::file_time_type::clock::now();
    for (const std::string& name : names_in(run_)) {
      std::error_code gone;
      const fs::file_time_type time = fs::last_write_time(file(name), gone);
      if (gone || time <= now + kTolerance) continue;
      return tell_(warning("times", file(name) +
                                        ": was written in the future; set the clock of this machine, or "
                                        "of the one that the run was on"));
    }
    tell_(fine("times", "no file is from the future"));
  }

  const std::string run_;
  const Tell& tell_;
  bool live_ = false;
  bool ended_for_good_ = false;         // as its last row says
  std::optional<TrainState> newest_{};  // the newest whole checkpoint, without tensors
  std::set<std::string> buffers_{};     // the names of its buffers
};

}  // namespace

void require_run(const std::string& run) {
  constexpr char kCure[] = "; give the output folder of a run";
  const fs::file_status status = status_of(run);
  if (!fs::exists(status)) throw CheckpointError(run + ": no such folder" + kCure);
  if (!fs::is_directory(status)) throw CheckpointError(run + ": is a file" + kCure);
  for (const std::string& name : names_in(run)) {
    if (is_name_of_run(name) || name == kLockName) return;
  }
  throw CheckpointError(run + ": no run in it" + kCure);
}

bool is_going_on(const std::string& run) try {
  return look_at_lock(run).state == LockState::kHeld;
} catch (const CheckpointError&) {
  return false;
}

void examine_run(const std::string& run, const Tell& tell) { RunChecks(run, tell).all(); }

}  // namespace gradstep

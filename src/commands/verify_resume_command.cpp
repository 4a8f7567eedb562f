// Three runs of the program, then two comparisons.
#include "commands/verify_resume_command.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "app/program.h"
#include "checkpoint/tensor_lists.h"
#include "commands/arguments.h"
#include "commands/child.h"
#include "commands/ckpt_path.h"
#include "commands/compare_rows.h"
#include "commands/terminal.h"
#include "gradstep/base/error.h"
#include "gradstep/io/file_system.h"

namespace gradstep {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

void check_train_flags(const Words& flags) {
  for (const auto& [key, text] : parse_arguments(command("train"), flags).flags) {
    for (const char* const set_here : {"output_dir", "resume", "stop_after", "dry_run"}) {
      if (key != set_here) continue;
      throw ConfigError("verify-resume sets " + flag_spelling(key) + " itself; remove it after --" +
                        (key == "output_dir" ? ", or give -o before --" : ""));
    }
  }
}

// The folder of the proof.
class ProofDir {
 public:
  explicit ProofDir(const std::string& asked) : temporary_(asked.empty()) {
    if (temporary_) {
      std::error_code error;
      const fs::path parent = fs::temp_directory_path(error);
      if (error) throw ConfigError("TMPDIR: " + error.message() + "; correct it, or give --output-dir");
      path_ = (parent / "gradstep-verify-resume-XXXXXX").string();
      if (mkdtemp(path_.data()) == nullptr) {
        throw std::system_error(errno, std::generic_category(), "cannot create the folder " + path_);
      }
      return;
    }
    path_ = asked;
    std::error_code ignored;
    if (fs::exists(path_, ignored) && !fs::is_empty(path_, ignored)) {
      throw ConfigError("--output-dir " + path_ + ": is not empty; give a new folder");
    }
    try {
      posix_file_system().make_dirs(path_);
    } catch (const std::system_error& error) {
      throw ConfigError("--output-dir " + path_ + ": cannot be created: " + error.code().message() +
                        "; choose another");
    }
  }
  [[nodiscard]] std::string file(const std::string& name) const { return (fs::path(path_) / name).string(); }
  // A temporary folder stays unless this is called; one that was asked for stays anyway.
  void remove_if_temporary() {
    std::error_code ignored;
    if (temporary_) fs::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  const bool temporary_;
  std::string path_;
};

// Stopped from outside, and not by a failure.
struct Stopped {};

class Proof {
 public:
  Proof(const VerifyResumeOptions& options, const StopToken& stop, ProofDir& dir)
      : options_(options), stop_(stop), dir_(dir) {}

  int run() {
    train("unbroken", "unbroken", {"--stop-after", std::to_string(options_.updates + options_.more)});
    const FoundCheckpoint a = newest("unbroken");
    if (a.state.eval_interval.unit == Interval::Unit::kSeconds && a.state.eval_interval.value > 0) {
      throw ConfigError(
          "--eval-interval " + to_string(a.state.eval_interval) +
          ": evaluations that follow the clock come at other updates in each run; give updates or epochs");
    }
    const int64_t reached = a.state.engine.counters.updates;
    if (reached <= options_.updates) {
      throw ConfigError("--updates " + std::to_string(options_.updates) + ": the run ends with update " +
                        std::to_string(reached) + "; give fewer, or train for longer");
    }
    if (reached < options_.updates + options_.more) {
      say("the run ends with update " + std::to_string(reached) + ", before the " +
          std::to_string(options_.updates + options_.more) + " asked for");
    }
    // "auto" may measure something else at another start, which would be a different run.
    settled_ = {"--precision", to_string(a.state.info.precision), "--matmul", to_string(a.state.info.matmul)};
    if (const auto threads = a.state.settings.find("threads"); threads != a.state.settings.end())
      settled_.insert(settled_.end(), {"--threads", threads->second});
    train_first_part();
    train("resumed", "resumed", {"--resume", "auto", "--stop-after", std::to_string(options_.more)});
    return compare(a, newest("resumed"));
  }

 private:
  void say(const std::string& line) const {
    if (!options_.quiet) write_stdout(line + "\n");
  }

  // Throws Stopped or Error unless the child did its work, or was killed as planned.
  bool train(const std::string& part, const std::string& run, const Words& more,
             std::function<bool()> kill_when = {}) const {
    Words words{"train"};
    words.insert(words.end(), options_.train_flags.begin(), options_.train_flags.end());
    words.insert(words.end(), {"--output-dir", dir_.file(run), "--dry-run=false"});
    words.insert(words.end(), settled_.begin(), settled_.end());
    words.insert(words.end(), more.begin(), more.end());
    std::string line = part + ": " + program().name;
    for (const std::string& word : words) line += " " + word;
    say(line);
    if (stop_.requested()) throw Stopped();
    const ChildEnd end = run_child({words, dir_.file(part + ".log"), std::move(kill_when)}, stop_);
    if (stop_.requested()) throw Stopped();
    if (end.killed || end.exit_code == 0) return end.killed;
    throw Error(static_cast<ExitCode>(end.exit_code),
                "the run '" + part + "' failed: " +
                    (end.error_line.empty() ? "exit code " + std::to_string(end.exit_code) : end.error_line) +
                    " (its output is in " + dir_.file(part + ".log") + ")");
  }

  void train_first_part() const {
    const Words more{"--stop-after", std::to_string(options_.updates)};
    if (!options_.kill) {
      train("first-part", "resumed", more);
      return;
    }
    // A checkpoint appears whole, by a rename.
    const std::string last =
        (fs::path(checkpoints_dir(dir_.file("resumed"))) / checkpoint_name(options_.updates)).string();
    const bool killed = train("first-part", "resumed", more, [&last] {
      std::error_code ignored;
      return fs::exists(last, ignored);
    });
    say(killed ? "killed once its last checkpoint was there"
               : "the first part ended before the kill came; going on");
  }

  [[nodiscard]] FoundCheckpoint newest(const std::string& run) const {
    FoundCheckpoint found = load_checkpoint_at(dir_.file(run));
    if (!found.broken.empty()) throw CheckpointError(found.broken.front());
    return found;
  }

  [[nodiscard]] std::string rows_of(const std::string& run) const {
    const std::string path = dir_.file(run + "/metrics.jsonl");
    std::ifstream in(path, std::ios::binary);
    if (!in) throw CheckpointError(path + ": cannot be read");
    return {std::istreambuf_iterator<char>(in), {}};
  }

  int compare(const FoundCheckpoint& a, const FoundCheckpoint& b) const {
    const std::vector<StateDifference> states = compare_states(a.state, b.state);
    const RowComparison rows = compare_rows(rows_of("unbroken"), rows_of("resumed"));
    if (states.empty() && rows.difference.empty()) {
      write_stdout(std::to_string(a.state.engine.counters.updates) +
                   " updates: " + std::to_string(num_tensors(a.state)) + " tensors and " +
                   std::to_string(rows.num_equal) + " rows equal, bit for bit\n");
      return 0;
    }
    for (const StateDifference& each : states) say(each.what + ": " + each.detail);
    // Rows show a difference earlier than the last checkpoint does.
    const std::string first =
        rows.difference.empty() ? states[0].what + ": " + states[0].detail : rows.difference;
    write_stdout("different (unbroken and resumed): " + first + "; both runs are in " + dir_.path() + "\n");
    return 1;
  }

  const VerifyResumeOptions& options_;
  const StopToken& stop_;
  ProofDir& dir_;
  Words settled_;  // flags of the runs after the first, before those of a part
};

}  // namespace

int run_verify_resume(const VerifyResumeOptions& options, const StopToken& stop) {
  check_train_flags(options.train_flags);
  ProofDir dir(options.output_dir);
  try {
    const int exit_code = Proof(options, stop, dir).run();
    if (exit_code == 0) dir.remove_if_temporary();
    return exit_code;
  } catch (const Stopped&) {
    dir.remove_if_temporary();
    return static_cast<int>(stop.reason());
  } catch (const ConfigError&) {  // nothing to be seen there
    dir.remove_if_temporary();
    throw;
  }
}

}  // namespace gradstep

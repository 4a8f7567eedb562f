// Finds checkpoints by their paths; what they contain is compared later.
#include "app/resume_flag.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "checkpoint/checkpoint_files.h"
#include "gradstep/base/error.h"
#include "io/read_file.h"
#include "report/row_json.h"
#include "run/of_run.h"

namespace gradstep {
namespace {

namespace fs = std::filesystem;

bool is_path(const std::string& resume) { return resume != "none" && resume != "auto"; }

std::optional<FoundCheckpoint> newest_or_none(const std::string& output_dir) {
  const fs::path checkpoints = checkpoints_dir(output_dir);
  std::error_code ignored;
  if (fs::is_symlink(checkpoints, ignored) && !fs::exists(checkpoints, ignored)) {
    throw CheckpointError("`resume` auto: " + checkpoints.string() + " is a link to " +
                          fs::read_symlink(checkpoints, ignored).string() +
                          ", which is not there; mount its disk, or remove the link to begin anew");
  }
  std::optional<FoundCheckpoint> found = newest_checkpoint(output_dir);
  if (found || !has_ended(output_dir)) return found;
  throw CheckpointError("`resume` auto: " + output_dir +
                        " holds a run that has ended, but no checkpoint of it; put its checkpoints back, or "
                        "give another `output_dir`");
}

}  // namespace

bool has_ended(const std::string& output_dir) {
  constexpr std::streamoff kMaxRowBytes = 64 * 1024;
  const std::string path = output_dir + "/metrics.jsonl";
  if (!fs::is_regular_file(status_of(path))) return false;  // a pipe would hold us
  std::ifstream rows(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = rows.tellg();
  if (!rows || size <= 0) return false;
  rows.seekg(std::max<std::streamoff>(0, size - kMaxRowBytes));
  std::string last;
  for (std::string line; std::getline(rows, line);) last.swap(line);
  return is_end_row(last);
}

std::string resume_folder(const std::string& resume, const std::string& output_dir) {
  if (!output_dir.empty() || !is_path(resume)) return output_dir;
  const fs::path path = normal_path(resume);
  // A checkpoint that was copied elsewhere belongs to no run; the start gets a folder of its own then.
  const bool in_run = is_named_checkpoint(path) && path.parent_path().filename() == "checkpoints";
  if (is_checkpoint(path) && !in_run) return {};
  return run_of(path).string();
}

OutputDir::Use output_dir_use(const std::string& resume, const std::string& output_dir) {
  if (resume == "auto") return OutputDir::Use::kGoOn;
  if (!is_path(resume)) return OutputDir::Use::kNew;
  return is_of_run(resume, output_dir) ? OutputDir::Use::kGoOn : OutputDir::Use::kNew;
}

std::optional<FoundCheckpoint> checkpoint_to_resume(const std::string& resume,
                                                    const std::string& output_dir) {
  if (resume == "none") return std::nullopt;
  if (resume == "auto") return newest_or_none(output_dir);
  const fs::path path = normal_path(resume);
  if (!is_checkpoint(path)) {
    std::optional<FoundCheckpoint> found = newest_checkpoint(run_of(path).string());
    if (found) return found;
    throw CheckpointError("`resume` " + resume +
                          ": no checkpoint there; give a checkpoint (step-...), the folder of a run, "
                          "or auto");
  }
  FoundCheckpoint found{.path = path.string(), .state = read_checkpoint(path.string()), .broken = {}};
  if (!is_of_run(resume, output_dir)) return found;
  const std::vector<int64_t> all = list_checkpoints(output_dir);
  if (!all.empty() && all.back() > found.state.engine.counters.updates) {
    throw ConfigError("`resume` " + resume + ": the run went on to " + checkpoint_name(all.back()) +
                      ", which would be lost; give another `output_dir`, or move the newer ones away");
  }
  return found;
}

}  // namespace gradstep

// Paths and nothing else: what the checkpoint says is compared later.
#include "run/resume.h"

#include <filesystem>

#include "gradstep/base/error.h"

namespace gradstep {
namespace {

namespace fs = std::filesystem;

bool is_path(const std::string& resume) { return resume != "none" && resume != "auto"; }

// <run>/checkpoints/step-00000120 -> true
bool is_checkpoint(const fs::path& path) {
  return parse_checkpoint_name(path.filename().string()).has_value();
}

fs::path normal(const fs::path& path) {
  std::error_code ignored;
  fs::path absolute = fs::weakly_canonical(path, ignored);
  if (!absolute.has_filename()) absolute = absolute.parent_path();
  return absolute;
}

// The run that a checkpoint, or the path of a run, belongs to.
fs::path run_of(const fs::path& path) {
  return is_checkpoint(path) ? path.parent_path().parent_path() : path;
}

}  // namespace

std::string resume_folder(const RunConfig& config) {
  if (!config.output_dir.empty() || !is_path(config.resume)) return config.output_dir;
  const fs::path path = normal(config.resume);
  const fs::path run = run_of(path);
  // A checkpoint that was copied elsewhere belongs to no run; the start gets a folder of its own then.
  if (is_checkpoint(path) && path.parent_path().filename() != "checkpoints") return {};
  return run.string();
}

OutputDir::Use output_dir_use(const RunConfig& config, const std::string& output_dir) {
  if (config.resume == "auto") return OutputDir::Use::kGoOn;
  if (!is_path(config.resume)) return OutputDir::Use::kNew;
  return normal(run_of(normal(config.resume))) == normal(output_dir) ? OutputDir::Use::kGoOn
                                                                     : OutputDir::Use::kNew;
}

std::optional<FoundCheckpoint> checkpoint_to_resume(const std::string& resume,
                                                    const std::string& output_dir) {
  if (resume == "none") return std::nullopt;
  if (resume == "auto") return newest_checkpoint(output_dir);
  const fs::path path = normal(resume);
  if (!is_checkpoint(path)) {
    std::optional<FoundCheckpoint> found = newest_checkpoint(path.string());
    if (found) return found;
    throw CheckpointError("--resume " + resume +
                          ": no checkpoint there; give a checkpoint (step-...), the folder of a run, "
                          "or auto");
  }
  FoundCheckpoint found{.path = path.string(), .state = read_checkpoint(path.string()), .broken = {}};
  if (run_of(path) != normal(output_dir)) return found;
  const std::vector<int64_t> all = list_checkpoints(output_dir);
  if (!all.empty() && all.back() > *parse_checkpoint_name(path.filename().string())) {
    throw ConfigError("--resume " + resume + ": the run went on to " + checkpoint_name(all.back()) +
                      ", which would be lost; give another --output-dir, or move the newer ones away");
  }
  return found;
}

}  // namespace gradstep

// Tells runs from checkpoints by what lies in the folder.
#include "commands/ckpt_path.h"

#include <cstdio>
#include <filesystem>

#include "checkpoint/checkpoint_files.h"
#include "commands/terminal.h"
#include "gradstep/base/error.h"
#include "io/read_file.h"

namespace gradstep {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& path) {
  if (!fs::exists(status_of(path))) {
    throw CheckpointError(path +
                          ": no such folder; give the output folder of a run, or one of its checkpoints");
  }
  if (!fs::is_directory(status_of(path))) {
    throw CheckpointError(path + ": is a file; give the output folder of a run, or one of its checkpoints");
  }
  throw CheckpointError(path +
                        ": no checkpoint in it; give the output folder of a run, or one of its checkpoints");
}

}  // namespace

std::vector<std::string> checkpoints_at(const std::string& path) {
  if (!fs::is_directory(status_of(path))) refuse(path);
  if (is_checkpoint(path)) return {path};
  std::vector<std::string> paths;
  const std::string run = run_of(path).string();
  for (const int64_t update : list_checkpoints(run)) {
    paths.push_back((fs::path(checkpoints_dir(run)) / checkpoint_name(update)).string());
  }
  if (paths.empty()) refuse(path);
  return paths;
}

FoundCheckpoint load_checkpoint_at(const std::string& path) {
  if (!fs::is_directory(status_of(path))) refuse(path);
  if (is_checkpoint(path)) return {path, read_checkpoint(path), {}};
  std::optional<FoundCheckpoint> found = newest_checkpoint(run_of(path).string());
  if (!found) refuse(path);
  return *std::move(found);
}

void warn_of_broken(const FoundCheckpoint& found) {
  for (const std::string& each : found.broken) write_warning(each);
}

std::string name_of(const std::string& path) { return normal_path(path).filename().string(); }

uint64_t folder_bytes(const std::string& path) {
  uint64_t bytes = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    const uint64_t size = entry.is_regular_file(error) ? entry.file_size(error) : 0;
    if (!error) bytes += size;
  }
  return bytes;
}

}  // namespace gradstep

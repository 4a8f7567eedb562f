// Compares folders, not the spelling of their paths.
// no torch
#include "run/of_run.h"

#include <filesystem>

#include "checkpoint/checkpoint_files.h"
#include "gradstep/checkpoint/checkpoint.h"

namespace gradstep {
namespace {

namespace fs = std::filesystem;

bool is_same_folder(const fs::path& a, const fs::path& b) {
  std::error_code ignored;
  return fs::weakly_canonical(normal_path(a), ignored) == fs::weakly_canonical(normal_path(b), ignored);
}

}  // namespace

bool is_of_run(const std::string& checkpoint, const std::string& output_dir) {
  const fs::path path = normal_path(checkpoint);
  return is_same_folder(path.parent_path(), checkpoints_dir(output_dir)) ||
         is_same_folder(run_of(path), output_dir);
}

}  // namespace gradstep

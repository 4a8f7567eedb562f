// ckpt export: the weights of a checkpoint, or of a model file, as safetensors or .pt.
#include <signal.h>

#include <cerrno>
#include <filesystem>
#include <map>
#include <optional>

#include "base/number_text.h"
#include "checkpoint/checkpoint_files.h"
#include "checkpoint/model_metadata.h"
#include "commands/ckpt_command.h"
#include "commands/ckpt_path.h"
#include "commands/terminal.h"
#include "gradstep/base/error.h"
#include "gradstep/io/safetensors.h"
#include "io/pt_file.h"
#include "report/format.h"

namespace gradstep {
namespace {

namespace fs = std::filesystem;

struct Weights {
  std::string path;  // that they come from
  NamedTensors tensors;
  std::map<std::string, std::string> metadata;
};

std::string format_of(const CkptExportOptions& options) {
  if (!options.format.empty()) return options.format;
  const std::string ending = fs::path(options.file).extension().string();
  if (ending == ".safetensors" || ending == ".pt") return ending.substr(1);
  throw ConfigError(options.file + ": its ending tells no format; end it in .safetensors or .pt, or give " +
                    "--format");
}

// What an export that was killed has left beside the file.
void remove_leftovers(const fs::path& file) {
  const std::string beginning = "." + file.filename().string() + ".tmp-";
  std::error_code ignored;
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(beginning)) continue;
    const std::optional<int64_t> process =
        parse_integer(name.substr(beginning.size(), name.rfind('-') - beginning.size()));
    const bool is_gone = process && kill(static_cast<pid_t>(*process), 0) != 0 && errno == ESRCH;
    if (is_gone) fs::remove(entry.path(), ignored);
  }
}

void check_place(const CkptExportOptions& options) {
  std::error_code ignored;
  const fs::path folder = fs::path(options.file).parent_path();
  if (!folder.empty() && !fs::is_directory(folder, ignored))
    throw CheckpointError(options.file + ": there is no folder " + folder.string() + "; make it first");
  const fs::file_status status = fs::symlink_status(options.file, ignored);
  if (is_file_of_run(options.file))
    throw ConfigError(options.file + ": is a file of a run; give another name");
  remove_leftovers(options.file);
  if (!fs::exists(status)) return;
  if (fs::is_directory(status)) throw ConfigError(options.file + ": is a folder; give the name of a file");
  if (options.force) return;
  throw ConfigError(options.file + ": is there already; give another name, or --force to replace it");
}

NamedTensors averaged(const FoundCheckpoint& found) {
  if (!found.state.ema.empty()) return with_averages(found.state);
  throw ConfigError(found.path + ": has no averages for --ema; the run was made without train --ema DECAY");
}

Weights load_weights(const CkptExportOptions& options) {
  std::error_code ignored;
  if (fs::is_regular_file(options.path, ignored)) {
    if (options.ema) {
      throw ConfigError(options.path +
                        ": a model file has no averages beside it for --ema; give the run or a " +
                        "checkpoint");
    }
    SafetensorsFile file = read_safetensors(options.path);
    return {options.path, std::move(file.tensors), std::move(file.metadata)};
  }
  const FoundCheckpoint found = load_checkpoint_at(options.path);
  warn_of_broken(found);
  return {found.path, options.ema ? averaged(found) : found.state.model, model_metadata(found.state.info)};
}

}  // namespace

int run_ckpt_export(const CkptExportOptions& options) {
  const std::string format = format_of(options);
  check_place(options);
  const Weights weights = load_weights(options);
  if (format == "pt") {
    write_pt(posix_file_system(), options.file, weights.tensors);
  } else {
    write_safetensors(posix_file_system(), options.file, weights.tensors, weights.metadata);
  }
  if (options.quiet) return static_cast<int>(ExitCode::kOk);
  std::error_code error;
  const uintmax_t bytes = fs::file_size(options.file, error);
  write_stdout(options.file + ": " + std::to_string(weights.tensors.size()) + " tensors of " + weights.path +
               (options.ema ? ", averaged" : "") +
               (error ? "" : ", " + bytes_text(static_cast<int64_t>(bytes))) + "\n");
  return static_cast<int>(ExitCode::kOk);
}

}  // namespace gradstep

// What lies in a checkpoint and beside it: names, which checkpoints stay, and what a killed run left.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "gradstep/io/file_system.h"

namespace gradstep {

struct TrainState;

inline constexpr char kModelFile[] = "model.safetensors";
inline constexpr char kOptimizerFile[] = "optimizer.safetensors";
inline constexpr char kEmaFile[] = "ema.safetensors";
inline constexpr char kUserFile[] = "user.safetensors";
inline constexpr char kStateFile[] = "state.json";

// Whether a file or folder of this name in an output folder is one that runs write. The lock is none.
[[nodiscard]] bool is_name_of_run(const std::string& name);
// Whether the path leads, over links too, to a file of a run or of a checkpoint.
[[nodiscard]] bool is_file_of_run(const std::filesystem::path& path);

// ".tmp-step-00000120-4711": being written by that process. ".old-step-00000120-4711": moved aside while
// another of the same name is put in its place.
[[nodiscard]] std::string temporary_name(const std::string& checkpoint_name);
[[nodiscard]] std::string moved_aside_name(const std::string& checkpoint_name);
[[nodiscard]] bool is_temporary_name(const std::string& name);
// The name it had before; nothing for any other name.
[[nodiscard]] std::optional<std::string> name_before_move(const std::string& name);

// Absolute, without a slash at the end. Links stay: checkpoints/ may be one, to a folder of another name.
[[nodiscard]] std::filesystem::path normal_path(const std::filesystem::path& path);
// <run>/checkpoints/step-00000120 -> true. By the name alone.
[[nodiscard]] bool is_named_checkpoint(const std::filesystem::path& path);
// Whether the path names a checkpoint: one that is damaged may have lost its manifest, a copy its name.
[[nodiscard]] bool is_checkpoint(const std::filesystem::path& path);
// The run that a checkpoint, the folder of checkpoints, or the path of a run belongs to.
[[nodiscard]] std::filesystem::path run_of(const std::filesystem::path& path);

// Says which of the existing checkpoints may be deleted: all but the newest `keep` (0: none may) and the
// best one.
[[nodiscard]] std::vector<int64_t> retention(const std::vector<int64_t>& existing, int64_t keep,
                                             std::optional<int64_t> best);

// Cleans up after a run that was killed: removes what it left half written, and renames a checkpoint back
// that was moved aside, unless another is in its place. REQUIRES: the caller holds the lock of the output
// folder (OutputDir). Throws CheckpointError.
void tidy_checkpoints(FileSystem& file_system, const std::string& output_dir);

// write_checkpoint(), unless the lock of the folder has another text than `owner` (see require_owner) before
// the checkpoint is put in place. A locked folder that is gone is not made anew.
uint64_t write_checkpoint_of(const std::string& owner, FileSystem& file_system, const std::string& output_dir,
                             const TrainState& state);

}  // namespace gradstep

// Names of what lies in a checkpoint and beside it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace gradstep {

inline constexpr char kModelFile[] = "model.safetensors";
inline constexpr char kOptimizerFile[] = "optimizer.safetensors";
inline constexpr char kEmaFile[] = "ema.safetensors";
inline constexpr char kUserFile[] = "user.safetensors";
inline constexpr char kStateFile[] = "state.json";

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

}  // namespace gradstep

// no torch
// Names of checkpoints, and which of them may go.
#include "checkpoint/checkpoint_files.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>

#include "checkpoint/manifest.h"
#include "gradstep/base/error.h"
#include "gradstep/checkpoint/checkpoint.h"

namespace gradstep {
namespace {

constexpr std::string_view kStep = "step-";
constexpr std::string_view kTemporary = ".tmp-";
constexpr std::string_view kMovedAside = ".old-";

std::string with_process(std::string_view prefix, const std::string& name) {
  return std::string(prefix) + name + "-" + std::to_string(::getpid());
}

}  // namespace

std::string temporary_name(const std::string& checkpoint_name) {
  return with_process(kTemporary, checkpoint_name);
}

std::string moved_aside_name(const std::string& checkpoint_name) {
  return with_process(kMovedAside, checkpoint_name);
}

bool is_temporary_name(const std::string& name) { return name.starts_with(kTemporary); }

std::optional<std::string> name_before_move(const std::string& name) {
  const size_t end = name.rfind('-');
  if (!name.starts_with(kMovedAside) || end < kMovedAside.size()) return std::nullopt;
  const std::string before = name.substr(kMovedAside.size(), end - kMovedAside.size());
  return parse_checkpoint_name(before) ? std::optional(before) : std::nullopt;
}

std::string checkpoints_dir(const std::string& output_dir) { return output_dir + "/checkpoints"; }

bool is_name_of_run(const std::string& name) {
  constexpr std::array<std::string_view, 8> kNames{
      "metrics.jsonl",     "config.toml",           "checkpoints",      "tensorboard",
      "model.safetensors", "model-ema.safetensors", "best.safetensors", "best-ema.safetensors"};
  const bool is_rows = name.starts_with("metrics-") && name.ends_with(".jsonl");
  const bool is_box = name.starts_with("blackbox-") && name.ends_with(".safetensors");
  return is_rows || is_box || std::ranges::find(kNames, name) != kNames.end();
}

bool is_file_of_run(const std::filesystem::path& path) {
  std::error_code ignored;
  const std::filesystem::path file = std::filesystem::weakly_canonical(path, ignored);
  const std::filesystem::path folder = file.parent_path();
  const auto is_there = [&](const char* name) { return std::filesystem::exists(folder / name, ignored); };
  if (is_there(kManifestName)) return true;
  return is_name_of_run(file.filename().string()) && (is_there("metrics.jsonl") || is_there("checkpoints"));
}

std::string checkpoint_name(int64_t update) {
  const std::string digits = std::to_string(update);
  return std::string(kStep) + std::string(digits.size() < 8 ? 8 - digits.size() : 0, '0') + digits;
}

std::optional<int64_t> parse_checkpoint_name(const std::string& name) {
  if (!name.starts_with(kStep)) return std::nullopt;
  int64_t update = -1;
  std::from_chars(name.data() + kStep.size(), name.data() + name.size(), update);
  // There is one name for each update, and nothing else is one.
  return update >= 0 && checkpoint_name(update) == name ? std::optional(update) : std::nullopt;
}

std::filesystem::path normal_path(const std::filesystem::path& path) {
  std::error_code ignored;
  std::filesystem::path absolute = std::filesystem::absolute(path, ignored).lexically_normal();
  if (!absolute.has_filename()) absolute = absolute.parent_path();
  return absolute;
}

bool is_named_checkpoint(const std::filesystem::path& path) {
  return parse_checkpoint_name(normal_path(path).filename().string()).has_value();
}

bool is_checkpoint(const std::filesystem::path& path) {
  std::error_code ignored;
  return is_named_checkpoint(path) || std::filesystem::exists(path / kManifestName, ignored);
}

std::filesystem::path run_of(const std::filesystem::path& path) {
  const std::filesystem::path normal = normal_path(path);
  if (is_named_checkpoint(normal)) return normal.parent_path().parent_path();
  std::error_code ignored;
  const bool is_run =
      normal.filename() != "checkpoints" || std::filesystem::exists(normal / "checkpoints", ignored);
  return is_run ? path : normal.parent_path();
}

std::vector<int64_t> list_checkpoints(const std::string& output_dir) {
  std::vector<int64_t> updates;
  try {
    for (const std::string& name : posix_file_system().list(checkpoints_dir(output_dir))) {
      if (const std::optional<int64_t> update = parse_checkpoint_name(name)) updates.push_back(*update);
    }
  } catch (const std::system_error& error) {
    throw CheckpointError(std::string(error.what()) + "; check the folder and its rights");
  }
  std::ranges::sort(updates);
  return updates;
}

std::vector<int64_t> retention(const std::vector<int64_t>& existing, int64_t keep,
                               std::optional<int64_t> best) {
  std::vector<int64_t> updates = existing;
  std::ranges::sort(updates);
  const auto num = static_cast<int64_t>(updates.size());
  if (keep <= 0 || num <= keep) return {};
  updates.resize(static_cast<size_t>(num - keep));
  std::erase_if(updates, [&](int64_t update) { return update == best; });
  return updates;
}

}  // namespace gradstep

// Reading checkpoints: nothing is believed before sizes and hashes of all files were compared with the
// manifest.
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <system_error>
#include <tuple>

#include "checkpoint/checkpoint_files.h"
#include "checkpoint/copy_by_name.h"
#include "checkpoint/manifest.h"
#include "checkpoint/model_metadata.h"
#include "checkpoint/state_json.h"
#include "gradstep/base/error.h"
#include "gradstep/checkpoint/checkpoint.h"
#include "gradstep/io/safetensors.h"
#include "io/hash.h"
#include "io/read_file.h"
#include "io/safetensors_header.h"
#include "io/safetensors_image.h"
#include "io/shape_text.h"

namespace gradstep {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCure = "; the checkpoint is damaged, use another one";

std::string in(const std::string& folder, const std::string& name) { return folder + "/" + name; }

// The manifest, once all files are there in their length.
std::vector<ManifestFile> check_sizes(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(status_of(path)))
    throw CheckpointError(path + ": no such checkpoint; give another path");
  if (!fs::exists(status_of(in(path, kManifestName)))) {
    throw CheckpointError(in(path, kManifestName) + ": missing" + kCure);
  }
  std::vector<ManifestFile> files = read_manifest(in(path, kManifestName));
  for (const char* name : {kModelFile, kOptimizerFile, kStateFile}) {
    if (std::ranges::find(files, name, &ManifestFile::name) == files.end()) {
      throw CheckpointError(in(path, kManifestName) + ": does not list " + name + kCure);
    }
  }
  for (const ManifestFile& file : files) {
    const std::string file_path = in(path, file.name);
    const fs::file_status status = status_of(file_path);
    if (!fs::exists(status)) throw CheckpointError(file_path + ": missing" + kCure);
    const uint64_t bytes = fs::is_regular_file(status) ? fs::file_size(file_path, error) : 0;
    if (error || bytes != file.bytes) {
      throw CheckpointError(file_path + ": expected " + std::to_string(file.bytes) + " bytes, found " +
                            std::to_string(error ? 0 : bytes) + kCure);
    }
  }
  return files;
}

void check_hash(const std::string& path, const ManifestFile& file) {
  std::string found;
  try {
    found = xxh3_file(in(path, file.name));
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::no_such_file_or_directory)
      throw CheckpointError(in(path, file.name) + ": missing" + kCure);
    throw AccessError(std::string(error.what()) + "; check the disk");
  }
  if (found == file.xxh3) return;
  throw CheckpointError(in(path, file.name) + ": expected the hash " + file.xxh3 + ", found " + found +
                        kCure);
}

StateFile read_state(const std::string& path) {
  const std::string file = in(path, kStateFile);
  return parse_state(file, read_text_file(file, kMaxStateBytes));
}

std::string text_of(const TensorSpec& spec) { return spec.dtype + " " + shape_text(spec.shape); }

// The tensors of a file in the order of the list, which must be all of them.
NamedTensors in_order(const std::string& file, const NamedTensors& tensors,
                      const std::vector<TensorSpec>& list) {
  std::map<std::string, at::Tensor> by_name(tensors.begin(), tensors.end());
  NamedTensors ordered;
  for (const TensorSpec& spec : list) {
    const auto found = by_name.find(spec.name);
    if (found == by_name.end()) {
      throw CheckpointError(file + ": no tensor " + spec.name + ", which " + kStateFile + " lists" + kCure);
    }
    const TensorSpec is = tensor_specs({*found}).front();
    if (is != spec) {
      throw CheckpointError(file + ": tensor " + spec.name + " is " + text_of(is) + ", but " + kStateFile +
                            " says " + text_of(spec) + kCure);
    }
    ordered.emplace_back(spec.name, std::move(found->second));
    by_name.erase(found);
  }
  if (by_name.empty()) return ordered;
  throw CheckpointError(file + ": tensor " + by_name.begin()->first + " is not listed in " + kStateFile +
                        kCure);
}

struct Candidate {
  int64_t update = 0;
  bool moved_aside = false;
  std::string path{};
};

// Newest first; one that was moved aside comes after the one that may have taken its place.
std::vector<Candidate> candidates(const std::string& output_dir) {
  const std::string parent = checkpoints_dir(output_dir);
  std::vector<Candidate> found;
  try {
    for (const std::string& name : posix_file_system().list(parent)) {
      const std::optional<std::string> before = name_before_move(name);
      const std::optional<int64_t> update = parse_checkpoint_name(before.value_or(name));
      if (update) found.push_back({*update, before.has_value(), in(parent, name)});
    }
  } catch (const std::system_error& error) {
    throw CheckpointError(std::string(error.what()) + "; check the folder and its rights");
  }
  std::ranges::sort(found, std::less<>(), [](const Candidate& each) {
    return std::tuple(-each.update, each.moved_aside, each.path);
  });
  return found;
}

// One that was copied under another number would stay the newest for ever.
void check_name(const std::string& path, const TrainState& state) {
  const auto update = parse_checkpoint_name(std::filesystem::path(path).filename().string());
  if (!update || *update == state.engine.counters.updates) return;
  throw CheckpointError(path + ": is the checkpoint of update " +
                        std::to_string(state.engine.counters.updates) +
                        " under another name; give it back its own");
}

}  // namespace

void verify_checkpoint(const std::string& path) {
  for (const ManifestFile& file : check_sizes(path)) check_hash(path, file);
}

TrainState read_checkpoint(const std::string& path) {
  const std::vector<ManifestFile> files = check_sizes(path);
  for (const ManifestFile& file : files) check_hash(path, file);
  StateFile stored = read_state(path);
  TrainState& state = stored.state;
  check_name(path, state);
  const SafetensorsFile model = read_safetensors(in(path, kModelFile));
  state.info = model_info_or_none(in(path, kModelFile), model.metadata);
  state.model = in_order(in(path, kModelFile), model.tensors, stored.model);
  state.optimizer = in_order(in(path, kOptimizerFile), read_safetensors(in(path, kOptimizerFile)).tensors,
                             stored.optimizer);
  const bool has_ema = std::ranges::find(files, kEmaFile, &ManifestFile::name) != files.end();
  if (has_ema || !stored.ema.empty()) {
    state.ema = in_order(in(path, kEmaFile), read_safetensors(in(path, kEmaFile)).tensors, stored.ema);
  }
  if (!stored.user.empty()) {
    state.user.tensors =
        in_order(in(path, kUserFile), read_safetensors(in(path, kUserFile)).tensors, stored.user);
  }
  return std::move(state);
}

TrainState read_checkpoint_summary(const std::string& path) {
  const std::vector<ManifestFile> files = check_sizes(path);
  check_hash(path, *std::ranges::find(files, kStateFile, &ManifestFile::name));
  TrainState state = read_state(path).state;
  const std::string model = in(path, kModelFile);
  state.info = model_info_or_none(model, read_safetensors_header(model).metadata);
  return state;
}

std::optional<FoundCheckpoint> newest_checkpoint(const std::string& output_dir) {
  // Where a run writes beside us, its retention may take away what we have listed.
  constexpr int kMaxTries = 100;
  std::vector<std::string> broken;
  for (int i = 1; i <= kMaxTries; ++i) {
    broken.clear();
    bool vanished = false;
    for (const Candidate& candidate : candidates(output_dir)) {
      try {
        return FoundCheckpoint{candidate.path, read_checkpoint(candidate.path), broken};
      } catch (const NewerFormat&) {
        throw;  // to pass it over would throw away what a newer gradstep did
      } catch (const AccessError&) {
        throw;  // likewise what cannot be looked at
      } catch (const CheckpointError& error) {
        // Its name is gone; a link that leads nowhere is broken.
        std::error_code ignored;
        vanished =
            i < kMaxTries && fs::symlink_status(candidate.path, ignored).type() == fs::file_type::not_found;
        if (vanished) break;
        broken.emplace_back(error.what());
      }
    }
    if (!vanished) break;
  }
  if (broken.empty()) return std::nullopt;
  std::string text = "no checkpoint in " + checkpoints_dir(output_dir) + " is whole";
  for (const std::string& each : broken) text += "; " + each;
  throw CheckpointError(text + "; start anew with another `output_dir`");
}

std::string check_parameters(const NamedTensors& stored, const NamedTensors& live) {
  const std::vector<TensorSpec> before = tensor_specs(stored);
  const std::vector<TensorSpec> now = tensor_specs(live);
  for (size_t i = 0; i < std::max(before.size(), now.size()); ++i) {
    const std::string place = "tensor " + std::to_string(i + 1) + " ";
    if (i >= before.size()) return place + now[i].name + " is not in the checkpoint";
    if (i >= now.size()) return place + before[i].name + " of the checkpoint is not in this run";
    if (before[i].name != now[i].name) {
      return place + "is " + before[i].name + " in the checkpoint and " + now[i].name + " in this run";
    }
    if (before[i] == now[i]) continue;
    return place + before[i].name + " is " + text_of(before[i]) + " in the checkpoint and " +
           text_of(now[i]) + " in this run";
  }
  return {};
}

}  // namespace gradstep

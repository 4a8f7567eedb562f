// Writing a checkpoint: all of it into a temporary folder, the manifest last, then one rename.
#include "gradstep/checkpoint/checkpoint.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <set>
#include <system_error>

#include "checkpoint/checkpoint_files.h"
#include "checkpoint/disk_room.h"
#include "checkpoint/finite.h"
#include "checkpoint/leftover.h"
#include "checkpoint/manifest.h"
#include "checkpoint/model_metadata.h"
#include "checkpoint/output_lock.h"
#include "checkpoint/state_json.h"
#include "checkpoint/tensor_lists.h"
#include "checkpoint/user_state.h"
#include "gradstep/base/error.h"
#include "io/safetensors_image.h"
#include "io/write_file.h"
#include "report/format.h"

namespace gradstep {
namespace {

// A checkpoint that our own reader refuses would be worth nothing, and cost older ones their place.
std::string readable(std::string state) {
  if (state.size() > kMaxStateBytes) {
    throw CheckpointError("the state without its tensors takes " +
                          bytes_text(static_cast<int64_t>(state.size())) + ", at most " +
                          bytes_text(kMaxStateBytes) + " can be read back; keep large values as tensors");
  }
  (void)parse_state(kStateFile, state);
  return state;
}

// A resume would begin the data again.
void require_position(const TrainState& state) {
  const bool is_first = state.next.epoch == 0 && state.next.index == 0 && state.next.number == 0;
  if (!is_first || state.engine.counters.windows == 0) return;
  throw CheckpointError(
      "the state is of window " + std::to_string(state.engine.counters.windows) +
      ", but its next window is the very first: set TrainState::next to Loader::position(), or "
      "count your own windows in it");
}

// What goes into the folder, manifest excepted, in memory.
class Contents {
 public:
  explicit Contents(const TrainState& state)
      : model_(state.model, model_metadata(state.info)),
        optimizer_(state.optimizer, {}),
        ema_(state.ema, model_metadata(state.info)),
        user_(state.user.tensors, {}),
        state_(readable(format_state(state))) {
    files_ = {{kModelFile, model_.pieces()}, {kOptimizerFile, optimizer_.pieces()}};
    if (!state.ema.empty()) files_.emplace_back(kEmaFile, ema_.pieces());
    if (!state.user.tensors.empty()) files_.emplace_back(kUserFile, user_.pieces());
    files_.emplace_back(kStateFile, std::vector<std::string_view>{state_});
  }
  Contents(const Contents&) = delete;
  Contents& operator=(const Contents&) = delete;

  [[nodiscard]] const auto& files() const { return files_; }
  // Of all files, with some for the manifest.
  [[nodiscard]] uint64_t bytes() const {
    return model_.bytes() + optimizer_.bytes() + ema_.bytes() + user_.bytes() + state_.size() + 1000;
  }

 private:
  const SafetensorsImage model_;
  const SafetensorsImage optimizer_;
  const SafetensorsImage ema_;
  const SafetensorsImage user_;
  const std::string state_;
  std::vector<std::pair<std::string, std::vector<std::string_view>>> files_;
};

// Runs a call whose own failure is ignored, since another error is being handled.
template <class Call>
void try_to(Call call) {
  try {
    call();
  } catch (const std::exception&) {
  }
}

bool is_whole(const std::string& checkpoint) {
  try {
    verify_checkpoint(checkpoint);
    return true;
  } catch (const CheckpointError&) {
    return false;
  }
}

// A folder under a temporary name; gone unless it was put in place.
class PendingFolder {
 public:
  // `makes_parents`: also the folders above `parent`.
  PendingFolder(FileSystem& file_system, std::string parent, std::string name, bool makes_parents)
      : file_system_(file_system),
        parent_(std::move(parent)),
        name_(std::move(name)),
        path_(parent_ + "/" + temporary_name(name_)) {
    file_system_.remove_all(path_);  // of a killed process with the same number
    makes_parents ? file_system_.make_dirs(parent_) : file_system_.make_dir(parent_);
    file_system_.make_dir(path_);
  }
  ~PendingFolder() {
    if (!in_place_) try_to([&] { file_system_.remove_all(path_); });
  }
  PendingFolder(const PendingFolder&) = delete;
  PendingFolder& operator=(const PendingFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }

  void put_in_place() {
    const std::string place = parent_ + "/" + name_;
    const std::string aside = parent_ + "/" + moved_aside_name(name_);
    const std::vector<std::string> names = file_system_.list(parent_);
    const bool replaces = std::ranges::binary_search(names, name_);
    file_system_.sync_dir(path_);
    if (replaces) {
      file_system_.remove_all(aside);
      file_system_.rename(place, aside);  // killed here, the old one is found under this name
    }
    try {
      file_system_.rename(path_, place);
    } catch (const std::exception&) {
      if (replaces) try_to([&] { file_system_.rename(aside, place); });
      throw;
    }
    in_place_ = true;
    file_system_.sync_dir(parent_);
    // The new one is durable: what is left over here is only garbage, for tidy_checkpoints.
    if (replaces) try_to([&] { file_system_.remove_all(aside); });
  }

 private:
  FileSystem& file_system_;
  const std::string parent_;
  const std::string name_;
  const std::string path_;
  bool in_place_ = false;
};

uint64_t write_all(const std::string& owner, FileSystem& file_system, const std::string& output_dir,
                   const std::string& name, const Contents& contents) {
  const std::string parent = checkpoints_dir(output_dir);
  const bool is_first = file_system.list(parent).empty();
  PendingFolder folder(file_system, parent, name, /*makes_parents=*/owner.empty());
  if (is_first) file_system.sync_dir(output_dir);  // the parent is new there
  std::vector<ManifestFile> listed;
  uint64_t bytes = 0;
  for (const auto& [file, pieces] : contents.files()) {
    const FileDigest digest = write_file(file_system, folder.path() + "/" + file, pieces);
    listed.push_back({file, digest.bytes, digest.xxh3});
    bytes += digest.bytes;
  }
  const std::string manifest = format_manifest(listed);
  bytes += write_file(file_system, folder.path() + "/" + kManifestName, {manifest}).bytes;
  require_owner(output_dir, owner);
  folder.put_in_place();
  return bytes;
}

// What the user can do about a failed save, with the sizes if the disk is full.
std::string advice(FileSystem& file_system, const std::string& output_dir, const std::system_error& error,
                   uint64_t needed) {
  if (error.code() != std::errc::no_space_on_device && error.code().value() != EDQUOT) {
    return "; check the disk and the rights of the folder";
  }
  std::string text = " (needs " + bytes_text(static_cast<int64_t>(needed));
  try_to([&] {
    const uint64_t free = file_system.free_bytes(place_of_checkpoints(output_dir));
    text += ", " + bytes_text(static_cast<int64_t>(free)) + " free";
  });
  return text + "); make room, or lower `keep_checkpoints`";
}

}  // namespace

uint64_t checkpoint_bytes(const TrainState& state) {
  uint64_t bytes = 10'000;  // state.json and manifest.json without their lists
  for (const NamedTensors* tensors : tensor_lists(state)) {
    for (const auto& [name, tensor] : *tensors) bytes += tensor.nbytes() + 2 * name.size() + 200;
  }
  for (const auto& [key, text] : state.user.values) bytes += key.size() + text.size() + 10;
  return bytes;
}

uint64_t write_checkpoint(FileSystem& file_system, const std::string& output_dir, const TrainState& state) {
  return write_checkpoint_of(lock_text(output_dir), file_system, output_dir, state);
}

uint64_t write_checkpoint_of(const std::string& owner, FileSystem& file_system, const std::string& output_dir,
                             const TrainState& state) {
  const int64_t update = state.engine.counters.updates;
  require_finite(state);
  require_position(state);
  check_user_state(state.user);
  const Contents contents(state);
  try {
    return write_all(owner, file_system, output_dir, checkpoint_name(update), contents);
  } catch (const std::system_error& error) {
    throw CheckpointError(error.what() + advice(file_system, output_dir, error, contents.bytes()));
  }
}

void tidy_checkpoints(FileSystem& file_system, const std::string& output_dir) {
  const std::string parent = checkpoints_dir(output_dir);
  try {
    const std::vector<std::string> names = file_system.list(parent);
    std::set<std::string> present(names.begin(), names.end());
    for (const std::string& name : names) {
      const std::optional<std::string> before = name_before_move(name);
      if (before && present.insert(*before).second) {
        file_system.rename(parent + "/" + name, parent + "/" + *before);
        file_system.sync_dir(parent);
      } else if (before ? is_whole(parent + "/" + *before) : is_temporary_name(name) || is_leftover(name)) {
        file_system.remove_all(parent + "/" + name);
      }
    }
  } catch (const std::system_error& error) {
    throw CheckpointError(std::string(error.what()) + "; check the disk and the rights of the folder");
  }
}

}  // namespace gradstep

// Sums with a ceiling, and the few calls that ask the disk.
#include "checkpoint/disk_room.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <filesystem>
#include <limits>
#include <optional>
#include <system_error>
#include <vector>

#include "gradstep/base/error.h"
#include "gradstep/checkpoint/checkpoint.h"
#include "io/read_file.h"
#include "report/format.h"

namespace gradstep {
namespace {

constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
constexpr uint64_t kMaxProbeBytes = 8'000'000;

uint64_t times(uint64_t count, uint64_t bytes) {
  uint64_t product = 0;
  return __builtin_mul_overflow(count, bytes, &product) ? kMost : product;
}

uint64_t plus(uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? kMost : sum;
}

// Bytes that a folder must have room for.
struct Need {
  std::string folder;
  uint64_t bytes = 0;
};

std::optional<dev_t> disk_of(const std::string& folder) {
  struct stat status{};
  return ::stat(folder.c_str(), &status) == 0 ? std::optional(status.st_dev) : std::nullopt;
}

// One entry for each disk: two if the checkpoints have their own.
std::vector<Need> needs(const std::string& output_dir, uint64_t checkpoint_bytes, uint64_t model_bytes) {
  const std::string place = place_of_checkpoints(output_dir);
  if (place == output_dir) return {{output_dir, plus(checkpoint_bytes, model_bytes)}};
  return {{place, checkpoint_bytes}, {output_dir, model_bytes}};
}

// Bytes still needed for `all` of the files, each of size `one`, if some exist. A new file is written before
// an old one is removed.
uint64_t still_needed(uint64_t all, uint64_t one, uint64_t num_present) {
  return std::max(one, all - std::min(all, times(num_present, one)));
}

uint64_t model_bytes_of_save(const SaveBytes& bytes, const SaveRequest& request) {
  return times(uint64_t{request.best} + uint64_t{request.export_model}, bytes.model);
}

uint64_t free_in(FileSystem& file_system, const std::string& folder) {
  try {
    return file_system.free_bytes(folder);
  } catch (const std::system_error& error) {
    throw CheckpointError(std::string(error.what()) + "; check the disk and the rights of the folder");
  }
}

// "DIR: <what> 2.1 MB, 1.0 MB are free" of the first folder with less room than it needs; empty: there is
// room.
std::string shortage(FileSystem& file_system, const std::vector<Need>& needs, const char* what) {
  for (const Need& need : needs) {
    const uint64_t free = free_in(file_system, need.folder);
    if (need.bytes > free)
      return need.folder + ": " + what + " " + room_text(need.bytes) + ", " + room_text(free) + " are free";
  }
  return {};
}

// A file that is gone when this is.
class ProbeFile {
 public:
  ProbeFile(FileSystem& file_system, const std::string& dir)
      : file_system_(file_system),
        path_(dir + "/.rate.tmp-" + std::to_string(::getpid())),
        fd_(file_system_.create(path_)) {}
  ~ProbeFile() {
    try {
      if (fd_ >= 0) file_system_.close_file(fd_, path_);
    } catch (const std::exception&) {
      // The error that counts is on its way.
    }
    try {
      file_system_.remove_all(path_);
    } catch (const std::exception&) {
      // The next run removes it.
    }
  }
  ProbeFile(const ProbeFile&) = delete;
  ProbeFile& operator=(const ProbeFile&) = delete;

  void fill(const std::string& content) {
    file_system_.write_all(fd_, content, path_);
    file_system_.sync(fd_, path_);
  }

 private:
  FileSystem& file_system_;
  const std::string path_;
  const int fd_;
};

}  // namespace

SaveBytes save_bytes(const TrainState& state) {
  TrainState model;
  model.model = state.model;
  const uint64_t one = checkpoint_bytes(model);
  return {.checkpoint = checkpoint_bytes(state), .model = state.ema.empty() ? one : 2 * one};
}

std::string place_of_checkpoints(const std::string& output_dir) {
  const std::string checkpoints = checkpoints_dir(output_dir);
  const std::optional<dev_t> disk = disk_of(checkpoints);
  return disk && disk != disk_of(output_dir) ? checkpoints : output_dir;
}

uint64_t bytes_of_save(const SaveBytes& bytes, const SaveRequest& request) {
  return plus(bytes.checkpoint, model_bytes_of_save(bytes, request));
}

SaveBytes bytes_of_run(const SaveBytes& bytes, int64_t keep, int64_t num_saves) {
  constexpr uint64_t kModels = 3;
  uint64_t num_checkpoints = static_cast<uint64_t>(std::max<int64_t>(num_saves, 1));
  if (keep > 0) num_checkpoints = plus(static_cast<uint64_t>(keep), 2);
  return {.checkpoint = times(num_checkpoints, bytes.checkpoint), .model = times(kModels, bytes.model)};
}

std::string check_room(FileSystem& file_system, const std::string& output_dir, const SaveBytes& bytes,
                       int64_t keep, int64_t num_saves) {
  const SaveRequest first{.best = true};
  require_room(file_system, output_dir, bytes, first);
  const SaveBytes all = bytes_of_run(bytes, keep, num_saves);
  const uint64_t num_models =
      static_cast<uint64_t>(std::filesystem::exists(status_of(output_dir + "/best.safetensors"))) +
      static_cast<uint64_t>(std::filesystem::exists(status_of(output_dir + "/model.safetensors")));
  const uint64_t checkpoints =
      still_needed(all.checkpoint, bytes.checkpoint, list_checkpoints(output_dir).size());
  const std::string problem =
      shortage(file_system, needs(output_dir, checkpoints, still_needed(all.model, bytes.model, num_models)),
               "the checkpoints of this run will need");
  return problem.empty() ? problem : problem + "; make room, or lower `keep_checkpoints`";
}

void require_room(FileSystem& file_system, const std::string& output_dir, const SaveBytes& bytes,
                  const SaveRequest& request) {
  const std::string problem =
      shortage(file_system, needs(output_dir, bytes.checkpoint, model_bytes_of_save(bytes, request)),
               "a checkpoint needs");
  if (!problem.empty()) throw CheckpointError(problem + "; make room, or give another `output_dir`");
}

void require_writable(FileSystem& file_system, const std::string& output_dir) {
  const std::string checkpoints = checkpoints_dir(output_dir);
  if (disk_of(checkpoints)) (void)measure_write_rate(file_system, checkpoints, 1);
}

double measure_write_rate(FileSystem& file_system, const std::string& dir, uint64_t bytes) {
  // Not zeros: some disks store those in no time.
  std::string content(static_cast<size_t>(std::clamp<uint64_t>(bytes, 1, kMaxProbeBytes)), '\0');
  uint32_t random = 1;
  for (char& each : content) {
    random = random * 1664525U + 1013904223U;
    each = static_cast<char>(random >> 24);
  }
  try {
    ProbeFile file(file_system, dir);
    const auto start = std::chrono::steady_clock::now();
    file.fill(content);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return static_cast<double>(content.size()) / std::max(seconds, 1e-9);
  } catch (const std::system_error& error) {
    throw CheckpointError(std::string(error.what()) + "; check the disk and the rights of the folder");
  }
}

std::string room_text(uint64_t bytes) {
  constexpr auto kGreatest = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  return bytes_text(static_cast<int64_t>(std::min(bytes, kGreatest)));
}

}  // namespace gradstep

// Room on the disk: what a run's checkpoints and model files will take, whether there is that much, and how
// fast the disk takes it.
#pragma once

#include <cstdint>
#include <string>

#include "gradstep/checkpoint/checkpointer.h"
#include "gradstep/io/file_system.h"

namespace gradstep {

// Of one save, or of all that a run keeps.
struct SaveBytes {
  uint64_t checkpoint = 0;
  uint64_t model = 0;  // of model files, their -ema twins included
};

// About the bytes that write_checkpoint() will write, without asking the device. Too few by the length of
// the lists in the state at most.
[[nodiscard]] uint64_t checkpoint_bytes(const TrainState& state);

// What the tensors of the state take; asks no device.
[[nodiscard]] SaveBytes save_bytes(const TrainState& state);

// <output_dir>/checkpoints if that is on a disk of its own, by a link or a mount; else output_dir.
[[nodiscard]] std::string place_of_checkpoints(const std::string& output_dir);

// For one save, which removes nothing before it is durable.
[[nodiscard]] uint64_t bytes_of_save(const SaveBytes& bytes, const SaveRequest& request);
// For all that exists at the same time: the newest `keep` checkpoints (0: all `num_saves` of the run), the
// best one, one that is being written, and three model files, one of them about to replace another.
[[nodiscard]] SaveBytes bytes_of_run(const SaveBytes& bytes, int64_t keep, int64_t num_saves);

// Before update 1: throws CheckpointError with both numbers if not even one save fits. Returns a warning if
// one fits but not all, else nothing. Checkpoints that exist already count.
[[nodiscard]] std::string check_room(FileSystem& file_system, const std::string& output_dir,
                                     const SaveBytes& bytes, int64_t keep, int64_t num_saves);

// Throws CheckpointError with both numbers if a save needs more room than there is, on the disk of the
// checkpoints or on that of the model files.
void require_room(FileSystem& file_system, const std::string& output_dir, const SaveBytes& bytes,
                  const SaveRequest& request);

// Throws CheckpointError if checkpoints/ exists but cannot be written to.
void require_writable(FileSystem& file_system, const std::string& output_dir);

// Bytes/s the disk takes durably: a temporary file of `bytes`, 8 MB at most, is written, synced and removed.
// Throws CheckpointError.
[[nodiscard]] double measure_write_rate(FileSystem& file_system, const std::string& dir, uint64_t bytes);

// The bytes as people read them: "1.6 MB".
[[nodiscard]] std::string room_text(uint64_t bytes);

}  // namespace gradstep

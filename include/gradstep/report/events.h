// Events: what happens in a run besides windows and evaluations. Each kind is a struct; EventRow holds any of
// them.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

namespace gradstep {

/// The run goes on from a checkpoint.
struct Resumed {
  std::string from{};         ///< path of the checkpoint
  int64_t window = 0;         ///< windows consumed before it was written
  bool nothing_left = false;  ///< the run that it belongs to is finished
  bool operator==(const Resumed&) const = default;
};

/// A setting differs from the checkpoint's.
struct SettingChanged {
  std::string key{};
  std::string before{};
  std::string now{};
  bool operator==(const SettingChanged&) const = default;
};

/// A checkpoint failed its checks, and an older one was used.
struct BrokenCheckpoint {
  std::string what{};
  bool operator==(const BrokenCheckpoint&) const = default;
};

/// A checkpoint could not be written.
struct SaveFailed {
  std::string error{};
  bool operator==(const SaveFailed&) const = default;
};

/// Memory ran out in a window; it was run again with a smaller micro-batch.
struct OutOfMemory {
  int64_t window = 0;
  int64_t micro_batch = 0;  ///< samples, from now on
  bool operator==(const OutOfMemory&) const = default;
};

/// The loss or the gradient norm leapt up, and the window was skipped.
struct Spike {
  int64_t window = 0;
  std::string what{};
  bool operator==(const Spike&) const = default;
};

/// The run went back to a checkpoint. EventRow::update is the update it went back to; rows of later updates
/// come again.
struct RolledBack {
  int64_t window = 0;   ///< that went wrong and is stepped over
  std::string cause{};  ///< what was wrong with it
  std::string to{};     ///< path of the checkpoint
  bool operator==(const RolledBack&) const = default;
};

/// A window that was skipped can be examined with `gradstep replay`.
struct BlackBoxWritten {
  int64_t window = 0;
  std::string file{};
  bool operator==(const BlackBoxWritten&) const = default;
};

/// A black box could not be written.
struct BlackBoxFailed {
  int64_t window = 0;
  std::string error{};
  bool operator==(const BlackBoxFailed&) const = default;
};

/// Something that the user should know.
struct Warning {
  std::string text{};
  bool operator==(const Warning&) const = default;
};

using Event = std::variant<Resumed, SettingChanged, BrokenCheckpoint, SaveFailed, OutOfMemory, Spike,
                           RolledBack, BlackBoxWritten, BlackBoxFailed, Warning>;

/// One event, and where the run stood.
struct EventRow {
  int64_t update = 0;  ///< updates applied so far
  Event event = Warning{};
  bool operator==(const EventRow&) const = default;
};

}  // namespace gradstep

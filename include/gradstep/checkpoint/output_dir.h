// OutputDir: the folder of one run, created, locked against a second writer, and never taken over in silence.
#pragma once

#include <string>

namespace gradstep {

/// The folder of one run, locked while this lives.
class OutputDir {
 public:
  /// What the folder is for.
  enum class Use {
    kNew,   ///< a new run: a folder that has a run is refused
    kGoOn,  ///< to go on with the run that it has, or a new run if it has none
  };

  /// Creates the folder and locks it with flock(). Throws ConfigError if another process has locked it
  /// (naming pid and host), if it has a run already (kNew), or if it cannot be created. Other files that are
  /// there do not matter.
  explicit OutputDir(std::string path, Use use = Use::kNew);
  /// Unlocks the folder. Removes a folder that it created if nothing was written into it.
  ~OutputDir();
  OutputDir(const OutputDir&) = delete;
  OutputDir& operator=(const OutputDir&) = delete;

  /// The path as given.
  [[nodiscard]] const std::string& path() const { return path_; }
  /// What a user should know: that the disk cannot lock files. Empty: nothing.
  [[nodiscard]] const std::string& warning() const { return warning_; }
  /// The path of a file in the folder.
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
  std::string warning_{};
  int lock_fd_ = -1;
  bool created_ = false;  // by us, so it is ours to remove while empty
};

/// The folder of a run that gets no other: runs/DATASET-MODEL-YYYYMMDD-HHMMSS, local time; one name if both
/// are the same.
[[nodiscard]] std::string default_output_dir(const std::string& dataset, const std::string& model);

}  // namespace gradstep

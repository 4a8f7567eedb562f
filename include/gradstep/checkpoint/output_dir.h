// OutputDir: the folder of one run, created, locked against a second writer, and never taken over in silence.
#pragma once

#include <string>

namespace gradstep {

class OutputDir {
 public:
  enum class Use {
    kNew,   // for a new run: a folder that holds one is refused
    kGoOn,  // to go on with the run that it holds, if it holds one
  };

  // Creates the folder and locks it. Throws ConfigError when another process has it (naming pid and host),
  // when it holds a run already (kNew), when it holds files that are not a run's, or when it cannot be
  // created.
  explicit OutputDir(std::string path, Use use = Use::kNew);
  // Unlocks; removes a folder that it created when nothing was written into it.
  ~OutputDir();
  OutputDir(const OutputDir&) = delete;
  OutputDir& operator=(const OutputDir&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
  int lock_fd_ = -1;
  bool created_ = false;  // by us, so it is ours to remove while empty
};

// runs/<dataset>-<model>-<yyyymmdd-hhmmss>, local time.
[[nodiscard]] std::string default_output_dir(const std::string& dataset, const std::string& model);

}  // namespace gradstep

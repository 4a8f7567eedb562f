// no torch
// The lock is flock on a file that names its owner; the kernel drops it when the owner dies, however it dies.
#include "gradstep/checkpoint/output_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/machine.h"
#include "checkpoint/leftover.h"
#include "gradstep/base/error.h"
#include "gradstep/io/file_system.h"

namespace gradstep {
namespace {

namespace fs = std::filesystem;

// A name of our own: the file is removed in the end, and a ".lock" may be somebody else's.
constexpr const char* kLockName = ".gradstep.lock";

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line.empty() ? "another process" : line;
}

// Whether the locked file is still the one at `path`: its last owner may have removed it in between.
bool is_current(int fd, const std::string& path) {
  struct stat ours{};
  struct stat current{};
  return fstat(fd, &ours) == 0 && stat(path.c_str(), &current) == 0 && ours.st_ino == current.st_ino &&
         ours.st_dev == current.st_dev;
}

int lock(const std::string& dir) {
  const std::string path = dir + "/" + kLockName;
  for (;;) {
    // The file is written into, so a link to another one is not followed.
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0) {
      throw ConfigError("`output_dir` " + dir + ": cannot write there: " + std::strerror(errno) +
                        "; choose another");
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
      const int error = errno;
      if (error != EWOULDBLOCK) {
        close(fd);
        throw ConfigError("`output_dir` " + dir + ": cannot be locked: " + std::strerror(error) +
                          "; choose another disk");
      }
      const std::string owner = first_line(path);
      close(fd);
      throw ConfigError("`output_dir` " + dir + ": in use by " + owner +
                        "; wait for it or choose another folder");
    }
    if (is_current(fd, path)) return fd;
    close(fd);
  }
}

void check_content(const std::string& dir, OutputDir::Use use) {
  bool foreign = false;
  bool run = false;
  std::error_code error;
  const fs::directory_iterator entries(dir, error);
  if (error)
    throw ConfigError("`output_dir` " + dir + ": cannot be read: " + error.message() + "; choose another");
  for (const auto& entry : entries) {
    const std::string name = entry.path().filename().string();
    run = run || name == "metrics.jsonl" || name == "config.toml" || name == "model.safetensors" ||
          name == "checkpoints";
    foreign = foreign || (name != kLockName && !is_leftover(name));
  }
  if (run && use == OutputDir::Use::kNew) {
    throw ConfigError("`output_dir` " + dir +
                      ": holds a run already; go on with it by `resume` auto, or choose another folder");
  }
  if (foreign && !run)
    throw ConfigError("`output_dir` " + dir +
                      ": holds files that are not of a run; choose an empty or new folder");
}

// Makes new folders durable, so that a power cut does not take the run with its checkpoints. `existing` is
// the nearest folder that was there before. Best effort: a folder that may not be read cannot be synced.
void sync_entries(const fs::path& path, const fs::path& existing) {
  fs::path folder = path;
  do {
    folder = folder.parent_path();
    try {
      posix_file_system().sync_dir(folder.string());
    } catch (const std::system_error&) {
    }
  } while (folder != existing && folder.has_relative_path());
}

fs::path nearest_existing(fs::path path) {
  std::error_code ignored;
  while (path.has_relative_path() && !fs::exists(path, ignored)) path = path.parent_path();
  return path;
}

void write_owner(int fd) {
  const std::string text = "pid " + std::to_string(getpid()) + " on " + host_name() + "\n";
  // Only a courtesy to the reader of an error message: a full disk shows up at the first file that matters.
  if (ftruncate(fd, 0) != 0 || pwrite(fd, text.data(), text.size(), 0) < 0) return;
}

}  // namespace

OutputDir::OutputDir(std::string path, Use use) : path_(std::move(path)) {
  std::error_code error;
  const fs::path absolute = fs::weakly_canonical(fs::absolute(path_, error), error);
  const fs::path existing = nearest_existing(absolute);
  created_ = fs::create_directories(path_, error);
  if (std::error_code ignored; error || !fs::is_directory(path_, ignored)) {
    const bool is_file = fs::exists(path_, ignored) && !fs::is_directory(path_, ignored);
    throw ConfigError("`output_dir` " + path_ + ": cannot be created: " +
                      (is_file ? std::string("a file is in the way") : error.message()) + "; choose another");
  }
  if (created_) sync_entries(absolute, existing);
  lock_fd_ = lock(path_);
  try {
    check_content(path_, use);
  } catch (...) {
    unlink(file(kLockName).c_str());
    close(lock_fd_);
    throw;
  }
  write_owner(lock_fd_);
}

OutputDir::~OutputDir() {
  unlink(file(kLockName).c_str());
  if (created_) rmdir(path_.c_str());  // fails, as it should, unless the folder is empty
  close(lock_fd_);
}

std::string default_output_dir(const std::string& dataset, const std::string& model) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y%m%d-%H%M%S", &local);
  const std::string name = dataset == model ? model : dataset + "-" + model;
  return "runs/" + name + "-" + text.data();
}

}  // namespace gradstep

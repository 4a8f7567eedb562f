// no torch
// The lock is flock on a file that names its owner; the kernel drops it when the owner dies, however it dies.
#include "gradstep/checkpoint/output_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <random>
#include <system_error>
#include <thread>

#include "base/machine.h"
#include "checkpoint/checkpoint_files.h"
#include "checkpoint/output_lock.h"
#include "gradstep/base/error.h"
#include "gradstep/io/file_system.h"
#include "io/read_file.h"

namespace gradstep {
namespace {

namespace fs = std::filesystem;

// lock_text() where what cannot be read tells as little as nothing.
std::string lock_text_if_readable(const std::string& dir) try {
  return lock_text(dir);
} catch (const AccessError&) {
  return {};
}

std::string owner_of(const std::string& dir) {
  const std::string text = lock_text_if_readable(dir);
  return text.empty() ? "another process" : text.substr(0, text.find('\n'));
}

std::string text_of(int fd) {
  std::array<char, 512> text{};
  const ssize_t size = pread(fd, text.data(), text.size(), 0);
  return {text.data(), static_cast<size_t>(std::max<ssize_t>(size, 0))};
}

// Whether the locked file is still the one at `path`: its last owner may have removed it in between.
bool is_current(int fd, const std::string& path) {
  struct stat ours{};
  struct stat current{};
  return fstat(fd, &ours) == 0 && stat(path.c_str(), &current) == 0 && ours.st_ino == current.st_ino &&
         ours.st_dev == current.st_dev;
}

// `gradstep doctor` holds the lock for microseconds, to see whether somebody has it.
bool lock_within_patience(int fd) {
  constexpr int kMaxTries = 20;
  for (int i = 1; flock(fd, LOCK_EX | LOCK_NB) != 0; ++i) {
    if (errno != EWOULDBLOCK || i == kMaxTries) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

// Returns the descriptor of the locked file. Sets `warning` if the disk knows no locks.
int lock(const std::string& dir, std::string& warning) {
  const std::string path = dir + "/" + kLockName;
  constexpr int kMaxTries = 100;
  for (int i = 0; i < kMaxTries; ++i) {
    // The file is written into, so a link to another one is not followed.
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0) {
      throw ConfigError("`output_dir` " + dir + ": cannot write there: " + std::strerror(errno) +
                        "; choose another");
    }
    if (!lock_within_patience(fd)) {
      const int error = errno;
      if (error != EWOULDBLOCK) {  // a network disk without locks
        warning = "`output_dir` " + dir + ": its disk cannot lock files (" + std::strerror(error) +
                  "); see to it that no other process writes there";
        return fd;
      }
      close(fd);
      throw ConfigError("`output_dir` " + dir + ": in use by " + owner_of(dir) +
                        "; wait for it or choose another folder");
    }
    if (is_current(fd, path)) return fd;
    close(fd);
  }
  throw ConfigError("`output_dir` " + dir + ": its lock " + path +
                    " is another file each time it is looked at; choose another disk");
}

// Only what a run would overwrite, or mix with, is in its way.
void check_content(const std::string& dir, OutputDir::Use use) {
  bool run = false;
  std::error_code error;
  const fs::directory_iterator entries(dir, error);
  if (error)
    throw ConfigError("`output_dir` " + dir + ": cannot be read: " + error.message() + "; choose another");
  for (const auto& entry : entries) {
    const std::string name = entry.path().filename().string();
    run = run || is_name_of_run(name);
  }
  if (run && use == OutputDir::Use::kNew) {
    throw ConfigError("`output_dir` " + dir +
                      ": holds a run already; go on with it by `resume` auto, or choose another folder");
  }
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
  // The second line tells this start from a later one with the same number.
  const std::string text = "pid " + std::to_string(getpid()) + " on " + host_name() + "\n" +
                           std::to_string(std::random_device()()) + "-" + std::to_string(std::time(nullptr)) +
                           "\n";
  // A full disk shows up at the first file that matters; until then the lock has no text, which is a text,
  // too.
  if (ftruncate(fd, 0) != 0 || pwrite(fd, text.data(), text.size(), 0) < 0) return;
}

}  // namespace

std::string lock_text(const std::string& output_dir) try {
  constexpr uint64_t kMostBytes = 512;
  return read_text_file(output_dir + "/" + kLockName, kMostBytes);
} catch (const AccessError&) {
  throw;
} catch (const CheckpointError&) {
  return {};
}

void require_owner(const std::string& output_dir, const std::string& text) {
  if (lock_text(output_dir) == text) return;
  throw CheckpointError(
      output_dir +
      ": is not the folder any more that this run began in: it was moved or removed while the "
      "run went on; move it back, or go on from it with `resume`");
}

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
  lock_fd_ = lock(path_, warning_);
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
  // Unless the folder was moved away, and the lock there is another's now.
  if (lock_text_if_readable(path_) == text_of(lock_fd_)) unlink(file(kLockName).c_str());
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

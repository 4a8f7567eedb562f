// no torch
// Looks first, and touches the lock only if looking does not tell.
#include "checkpoint/lock_state.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <system_error>

#include "checkpoint/output_lock.h"
#include "gradstep/base/error.h"
#include "io/read_file.h"

namespace gradstep {
namespace {

namespace fs = std::filesystem;

// Whether a line of /proc/locks is a flock of this file:
// "1: FLOCK  ADVISORY  WRITE 4711 fe:00:131073 0 EOF".
bool is_listed(const struct stat& file) {
  char id[64];
  std::snprintf(id, sizeof id, "%02x:%02x:%llu", major(file.st_dev), minor(file.st_dev),
                static_cast<unsigned long long>(file.st_ino));
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    std::istringstream words(line);
    std::string number, kind, mode, access, pid, place;
    words >> number >> kind >> mode >> access >> pid >> place;
    if (kind == "FLOCK" && access == "WRITE" && place == id) return true;
  }
  return false;
}

// Nothing is changed: a lock that is held refuses the shared one, and one that is not is given back at once.
bool refuses_shared_lock(int fd) {
  if (::flock(fd, LOCK_SH | LOCK_NB) != 0) return errno == EWOULDBLOCK;
  ::flock(fd, LOCK_UN);
  return false;
}

}  // namespace

FolderLock look_at_lock(const std::string& output_dir) {
  const std::string path = output_dir + "/" + kLockName;
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (status.type() == fs::file_type::not_found) return {};
  if (status.type() == fs::file_type::none)
    throw AccessError("cannot look at " + path + ": " + error.message() + "; check its rights and its disk");
  if (status.type() != fs::file_type::regular)
    throw CheckpointError(path + ": is no plain file, so no run can lock it; remove it");
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0 && errno == ENOENT) return {};  // its run has just ended
  if (fd < 0) throw AccessError("cannot open " + path + ": " + std::strerror(errno) + "; check its rights");
  const std::string text = lock_text(output_dir);
  const std::string owner = text.substr(0, text.find('\n'));
  struct stat file{};
  // A start that has the file but not yet the lock has not written its name: it is left alone. A pid that is
  // not there tells nothing: it may be of another container, whose locks are not listed here either.
  const bool may_try = !owner.empty();
  const bool is_held = (::fstat(fd, &file) == 0 && is_listed(file)) || (may_try && refuses_shared_lock(fd));
  ::close(fd);
  return {is_held ? LockState::kHeld : LockState::kLeftOver, owner};
}

}  // namespace gradstep

// http_download: the rounds of trying, resuming and checking, around one transfer.
// no torch
#include "gradstep/download/http.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>

#include "download/digest.h"
#include "download/transfer.h"
#include "gradstep/base/error.h"
#include "gradstep/io/file_system.h"
#include "io/io_error.h"

namespace gradstep {
namespace {

// The bytes on their way, in a file that one process at a time may hold.
class PartFile {
 public:
  explicit PartFile(const std::string& path) : path_(path) {
    fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd_ < 0) throw_io_error(errno, "create", path_);
    // A disk that knows no locks is used without one.
    if (::flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      ::close(fd_);
      throw DataError(path + ": another process is downloading this file; wait for it");
    }
  }
  ~PartFile() { ::close(fd_); }
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] uint64_t size() const {
    struct stat status{};
    if (::fstat(fd_, &status) != 0) throw_io_error(errno, "look at", path_);
    return static_cast<uint64_t>(status.st_size);
  }
  void clear() const {
    if (::ftruncate(fd_, 0) != 0) throw_io_error(errno, "empty", path_);
  }
  // Durable under its final name.
  void rename_to(const std::string& path) const {
    FileSystem& file_system = posix_file_system();
    file_system.sync(fd_, path_);
    file_system.rename(path_, path);
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    file_system.sync_dir(folder.empty() ? "." : folder.string());
  }

 private:
  const std::string path_;
  int fd_ = -1;
};

// What is wrong with a file: "expected ..., found ..."; empty when nothing is.
std::string defect(const std::string& path, const Download& wanted) {
  const uint64_t size = std::filesystem::file_size(path);
  if (wanted.size != 0 && size != wanted.size) {
    return "expected " + std::to_string(wanted.size) + " bytes, found " + std::to_string(size);
  }
  if (!wanted.md5.empty()) {
    if (const std::string md5 = md5_file(path); md5 != wanted.md5)
      return "expected md5 " + wanted.md5 + ", found " + md5;
  }
  if (!wanted.sha256.empty()) {
    if (const std::string sha256 = sha256_file(path); sha256 != wanted.sha256) {
      return "expected sha256 " + wanted.sha256 + ", found " + sha256;
    }
  }
  return "";
}

[[noreturn]] void fail(const Download& download, const std::string& reason) {
  throw DataError("cannot download " + download.url + ": " + reason +
                  "; check the network, or use another server (gradstep fetch --base-url)");
}

class Downloader {
 public:
  Downloader(const Download& download, const DownloadOptions& options)
      : download_(download),
        options_(options),
        part_path_(download.path + ".part"),
        part_(part_path_),
        can_check_(!download.md5.empty() || !download.sha256.empty()) {}

  void run() {
    if (!can_check_) part_.clear();
    double pause_seconds = options_.pause_seconds;
    for (int left = std::max(options_.num_tries, 1); left > 0; --left) {
      const std::string reason = attempt();
      if (reason.empty()) return part_.rename_to(download_.path);
      if (left == 1) fail(download_, reason);
      if (options_.on_retry) options_.on_retry(reason, pause_seconds);
      std::this_thread::sleep_for(std::chrono::duration<double>(pause_seconds));
      pause_seconds *= 2;
    }
  }

 private:
  // One try. Empty: the part is the whole file, and right. A reason: worth another try. Throws what no other
  // try mends.
  std::string attempt() {
    const uint64_t begin = part_.size();
    if (download_.size != 0 && begin > download_.size) part_.clear();
    // A whole part (a kill between its last byte and its new name) needs no request.
    if (begin == 0 || begin != download_.size) {
      const TransferResult result = transfer({.url = download_.url,
                                              .fd = part_.fd(),
                                              .begin = part_.size(),
                                              .size = download_.size,
                                              .stall_seconds = options_.stall_seconds,
                                              .on_progress = options_.on_progress});
      if (result.outcome == TransferResult::Outcome::kUseless) {
        part_.clear();
        if (!result.resumed) give_up(result.reason);
        return result.reason;
      }
      if (result.outcome == TransferResult::Outcome::kFatal) fail(download_, result.reason);
      if (result.outcome == TransferResult::Outcome::kRetry) return result.reason;
      was_resumed_ = result.resumed;
    } else {
      was_resumed_ = true;
    }
    return check();
  }

  // A file that was put together from parts may be right when fetched in one piece; one that came in one
  // piece is what the server has.
  std::string check() {
    const std::string what = defect(part_path_, download_);
    if (what.empty()) return "";
    if (download_.size != 0 && part_.size() < download_.size)
      return what + ": the connection was closed early";
    part_.clear();
    if (!was_resumed_) give_up(what);
    was_resumed_ = false;
    return what;
  }

  [[noreturn]] void give_up(const std::string& reason) const {
    posix_file_system().remove_all(part_path_);
    fail(download_, reason);
  }

  const Download& download_;
  const DownloadOptions& options_;
  const std::string part_path_;
  const PartFile part_;
  const bool can_check_;
  bool was_resumed_ = false;
};

}  // namespace

bool http_download(const Download& download, const DownloadOptions& options) {
  const bool has_scheme = download.url.starts_with("http://") || download.url.starts_with("https://");
  if (!has_scheme || download.url.find_first_of(" \t\r\n") != std::string::npos)
    throw ConfigError("cannot download '" + download.url +
                      "': an address begins with http:// or https:// and has no "
                      "spaces; correct it (gradstep fetch --base-url)");
  try {
    FileSystem& file_system = posix_file_system();
    std::error_code error;
    const std::filesystem::file_status status = std::filesystem::status(download.path, error);
    if (!std::filesystem::status_known(status)) throw std::system_error(error, download.path);
    if (std::filesystem::exists(status)) {
      if (std::filesystem::is_directory(status))
        throw DataError(download.path + ": a folder is in the place of this file; move it away");
      // One that is not what is wanted stays until another is there and verified.
      if (defect(download.path, download).empty()) return false;
    }
    const std::filesystem::path folder = std::filesystem::path(download.path).parent_path();
    if (!folder.empty()) file_system.make_dirs(folder.string());
    Downloader(download, options).run();
    return true;
  } catch (const std::system_error& error) {
    throw DataError("cannot store " + download.url + ": " + error.what() +
                    "; make room or rights, or choose another folder");
  }
}

}  // namespace gradstep

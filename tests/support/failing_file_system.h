// FailingFileSystem: another file system, of which one call fails, or all from one call on, as after a kill.
#pragma once

#include <cerrno>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "gradstep/io/file_system.h"

namespace gradstep::testing {

class FailingFileSystem final : public FileSystem {
 public:
  // The inner one must outlive it. syncs: whether what is to be synced really is; a process that is killed
  // leaves the same without, and the tests take a tenth of the time.
  explicit FailingFileSystem(FileSystem& inner, bool syncs = true) : inner_(inner), syncs_(syncs) {}

  // The n-th call from now on (from 0) throws `error` and does nothing; those after it work. A write that
  // fails has written half.
  void fail_call(int64_t n, int error = ENOSPC) {
    first_ = num_calls_ + n;
    last_ = first_;
    error_ = error;
  }
  // So do all after it: what a process that was killed there leaves on the disk.
  void cut_at_call(int64_t n) {
    fail_call(n, EIO);
    last_ = std::numeric_limits<int64_t>::max();
  }
  // Counts and names of the calls so far.
  [[nodiscard]] int64_t num_calls() const { return num_calls_; }
  [[nodiscard]] const std::vector<std::string>& calls() const { return calls_; }

  int create(const std::string& path) override {
    call("create", path);
    return inner_.create(path);
  }
  void write_all(int fd, std::string_view bytes, const std::string& path) override {
    if (fails()) inner_.write_all(fd, bytes.substr(0, bytes.size() / 2), path);
    call("write", path);
    inner_.write_all(fd, bytes, path);
  }
  void sync(int fd, const std::string& path) override {
    call("sync", path);
    if (syncs_) inner_.sync(fd, path);
  }
  // The descriptor is given back even where the call fails, as on Linux.
  void close_file(int fd, const std::string& path) override {
    inner_.close_file(fd, path);
    call("close", path);
  }
  void rename(const std::string& from, const std::string& to) override {
    call("rename", to);
    inner_.rename(from, to);
  }
  void sync_dir(const std::string& path) override {
    call("sync folder", path);
    if (syncs_) inner_.sync_dir(path);
  }
  void sync_file(const std::string& path) override {
    call("sync file", path);
    if (syncs_) inner_.sync_file(path);
  }
  void make_dirs(const std::string& path) override {
    call("make folder", path);
    inner_.make_dirs(path);
  }
  void make_dir(const std::string& path) override {
    call("make folder", path);
    inner_.make_dir(path);
  }
  void remove_all(const std::string& path) override {
    call("remove", path);
    inner_.remove_all(path);
  }
  std::vector<std::string> list(const std::string& path) override {
    call("list", path);
    return inner_.list(path);
  }
  uint64_t free_bytes(const std::string& path) override {
    call("ask for the free space of", path);
    return inner_.free_bytes(path);
  }

 private:
  [[nodiscard]] bool fails() const { return num_calls_ >= first_ && num_calls_ <= last_; }
  void call(const std::string& what, const std::string& path) {
    const bool failing = fails();
    ++num_calls_;
    calls_.push_back(what + " " + path);
    if (failing) throw std::system_error(error_, std::generic_category(), "cannot " + what + " " + path);
  }

  FileSystem& inner_;
  const bool syncs_;
  std::vector<std::string> calls_;
  int64_t num_calls_ = 0;
  int64_t first_ = -1;
  int64_t last_ = -1;
  int error_ = ENOSPC;
};

}  // namespace gradstep::testing

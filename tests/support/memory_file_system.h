// MemoryFileSystem: a disk in memory that keeps apart what is visible and what would survive a power cut, and
// can fail any call.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "gradstep/io/file_system.h"

namespace gradstep::testing {

class MemoryFileSystem final : public FileSystem {
 public:
  // The n-th call from now on (from 0) throws and does nothing; those after it work. A write that fails has
  // written half.
  void fail_call(int64_t n) { fail_at_ = num_calls_ + n; }
  [[nodiscard]] int64_t num_calls() const { return num_calls_; }
  [[nodiscard]] bool has(const std::string& path) const { return visible_.contains(path); }
  [[nodiscard]] std::string content(const std::string& path) const { return visible_.at(path); }
  [[nodiscard]] size_t num_files() const { return visible_.size(); }
  [[nodiscard]] bool all_closed() const { return open_.empty(); }
  // Only what was synced, file and folder both, is left.
  void cut_power() {
    visible_ = durable_;
    synced_.clear();
    open_.clear();
  }
  void put(const std::string& path, const std::string& content) { visible_[path] = durable_[path] = content; }

  int create(const std::string& path) override {
    call("create");
    visible_[path].clear();
    synced_.erase(path);
    open_[next_fd_] = path;
    return next_fd_++;
  }
  void write_all(int fd, std::string_view bytes, const std::string& path) override {
    const bool fails = num_calls_ == fail_at_;
    std::string& content = visible_.at(open_.at(fd));
    content += fails ? bytes.substr(0, bytes.size() / 2) : bytes;
    synced_.erase(path);
    call("write");
  }
  void sync(int fd, const std::string& path) override {
    call("sync");
    synced_[path] = visible_.at(open_.at(fd));
  }
  void close_file(int fd, const std::string& /*path*/) override {
    const bool known = open_.erase(fd) == 1;
    call("close");
    if (!known) throw std::logic_error("closed twice");
  }
  void rename(const std::string& from, const std::string& to) override {
    call("rename");
    visible_[to] = visible_.at(from);
    visible_.erase(from);
    // Content that was not synced may be lost under its new name.
    const auto synced = synced_.find(from);
    renamed_[to] = synced == synced_.end() ? std::string() : synced->second;
    synced_.erase(from);
  }
  void sync_dir(const std::string& /*path*/) override {
    call("sync folder");
    for (const auto& [path, content] : renamed_) durable_[path] = content;
    renamed_.clear();
  }
  void make_dirs(const std::string& /*path*/) override { call("make folder"); }
  void remove_all(const std::string& path) override {
    call("remove");
    visible_.erase(path);
    durable_.erase(path);
  }
  std::vector<std::string> list(const std::string& path) override {
    call("list");
    std::set<std::string> names;
    for (const auto& [file, content] : visible_) {
      if (file.starts_with(path + "/"))
        names.insert(file.substr(path.size() + 1, file.find('/', path.size() + 1) - path.size() - 1));
    }
    return {names.begin(), names.end()};
  }
  uint64_t free_bytes(const std::string& /*path*/) override {
    call("ask");
    return uint64_t{1} << 30;
  }

 private:
  void call(const std::string& what) {
    if (num_calls_++ == fail_at_) throw std::system_error(ENOSPC, std::generic_category(), "cannot " + what);
  }

  std::map<std::string, std::string> visible_;
  std::map<std::string, std::string> durable_;
  std::map<std::string, std::string> synced_;   // content as of the last sync
  std::map<std::string, std::string> renamed_;  // waiting for their folder's sync
  std::map<int, std::string> open_;
  int next_fd_ = 3;
  int64_t num_calls_ = 0;
  int64_t fail_at_ = -1;
};

}  // namespace gradstep::testing

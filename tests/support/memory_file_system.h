// MemoryFileSystem: a disk in memory that keeps apart what is visible and what would survive a power cut, and
// can fail any call.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
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
  // Every file that is visible, by its path.
  [[nodiscard]] const std::map<std::string, std::string>& files() const { return visible_; }
  [[nodiscard]] bool all_closed() const { return open_.empty(); }
  // Only what was synced, file and folder both, is left.
  void cut_power() {
    visible_ = synced_ = durable_;
    renamed_folders_.clear();
    open_.clear();
  }
  void put(const std::string& path, const std::string& content) {
    visible_[path] = durable_[path] = synced_[path] = content;
  }

  int create(const std::string& path) override {
    call("create");
    visible_[path].clear();
    synced_.erase(path);
    open_[next_fd_] = path;
    return next_fd_++;
  }
  void write_all(int fd, std::string_view bytes, const std::string& /*path*/) override {
    const bool fails = num_calls_ == fail_at_;
    std::string& content = visible_.at(open_.at(fd));
    content += fails ? bytes.substr(0, bytes.size() / 2) : bytes;
    call("write");
  }
  void sync(int fd, const std::string& /*path*/) override {
    call("sync");
    synced_[open_.at(fd)] = visible_.at(open_.at(fd));
  }
  void close_file(int fd, const std::string& /*path*/) override {
    const bool known = open_.erase(fd) == 1;
    call("close");
    if (!known) throw std::logic_error("closed twice");
  }
  void rename(const std::string& from, const std::string& to) override {
    call("rename");
    if (visible_.contains(from)) {
      synced_.erase(to);
      move_all(visible_, from, to);
      move_all(synced_, from, to);
      return;
    }
    if (inside(visible_, from).empty()) throw_error(ENOENT, "rename");
    if (!inside(visible_, to).empty()) throw_error(ENOTEMPTY, "rename");
    move_all(visible_, from, to);
    move_all(synced_, from, to);
    renamed_folders_.emplace_back(from, to);
  }
  // Makes the names in the folder durable. A file's content is that of its last sync; of its own names a
  // folder keeps those that were made durable by a sync of that folder.
  void sync_dir(const std::string& path) override {
    call("sync folder");
    std::erase_if(renamed_folders_, [&](const auto& renamed) {
      if (folder_of(renamed.second) != path) return false;
      move_all(durable_, renamed.first, renamed.second);
      return true;
    });
    std::erase_if(durable_, [&](const auto& file) {
      return folder_of(file.first) == path && !visible_.contains(file.first);
    });
    for (const auto& [file, content] : visible_) {
      if (folder_of(file) != path) continue;
      const auto synced = synced_.find(file);
      durable_[file] = synced == synced_.end() ? std::string() : synced->second;
    }
  }
  void sync_file(const std::string& path) override {
    call("sync file");
    if (!visible_.contains(path)) throw_error(ENOENT, "open");
    synced_[path] = visible_.at(path);
    if (durable_.contains(path)) durable_[path] = synced_[path];
  }
  void make_dirs(const std::string& /*path*/) override { call("make folder"); }
  void make_dir(const std::string& /*path*/) override { call("make folder"); }
  void remove_all(const std::string& path) override {
    call("remove");
    for (auto* files : {&visible_, &durable_, &synced_}) {
      files->erase(path);
      for (const std::string& file : inside(*files, path)) files->erase(file);
    }
  }
  std::vector<std::string> list(const std::string& path) override {
    call("list");
    std::set<std::string> names;
    for (const std::string& file : inside(visible_, path)) {
      names.insert(file.substr(path.size() + 1, file.find('/', path.size() + 1) - path.size() - 1));
    }
    return {names.begin(), names.end()};
  }
  uint64_t free_bytes(const std::string& /*path*/) override {
    call("ask");
    return uint64_t{1} << 30;
  }

 private:
  using Files = std::map<std::string, std::string>;

  static std::string folder_of(const std::string& path) {
    const std::string folder = std::filesystem::path(path).parent_path().string();
    return folder.empty() ? "." : folder;
  }
  static std::vector<std::string> inside(const Files& files, const std::string& folder) {
    std::vector<std::string> found;
    for (const auto& [file, content] : files) {
      if (file.starts_with(folder + "/")) found.push_back(file);
    }
    return found;
  }
  // A file, or a folder with what is in it.
  static void move_all(Files& files, const std::string& from, const std::string& to) {
    std::vector<std::string> paths = inside(files, from);
    if (files.contains(from)) paths.push_back(from);
    for (const std::string& path : paths) {
      files[to + path.substr(from.size())] = std::move(files.at(path));
      files.erase(path);
    }
  }
  [[noreturn]] static void throw_error(int error, const std::string& what) {
    throw std::system_error(error, std::generic_category(), "cannot " + what);
  }
  void call(const std::string& what) {
    if (num_calls_++ == fail_at_) throw_error(ENOSPC, what);
  }

  Files visible_;
  Files durable_;
  Files synced_;                                                      // content as of the last sync
  std::vector<std::pair<std::string, std::string>> renamed_folders_;  // waiting for their parent's sync
  std::map<int, std::string> open_;
  int next_fd_ = 3;
  int64_t num_calls_ = 0;
  int64_t fail_at_ = -1;
};

}  // namespace gradstep::testing

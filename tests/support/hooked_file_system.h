// HookedFileSystem: another file system; a function of the test's is told of each call before it is made, and
// may wait.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gradstep/io/file_system.h"

namespace gradstep::testing {

class HookedFileSystem final : public FileSystem {
 public:
  // What is called ("create", "remove"), and for which path; of a rename the new one. Comes from whichever
  // thread calls.
  using Hook = std::function<void(const std::string& what, const std::string& path)>;
  // The inner one must outlive it.
  HookedFileSystem(FileSystem& inner, Hook hook) : inner_(inner), hook_(std::move(hook)) {}

  int create(const std::string& path) override {
    hook_("create", path);
    return inner_.create(path);
  }
  void write_all(int fd, std::string_view bytes, const std::string& path) override {
    hook_("write", path);
    inner_.write_all(fd, bytes, path);
  }
  void sync(int fd, const std::string& path) override {
    hook_("sync", path);
    inner_.sync(fd, path);
  }
  void close_file(int fd, const std::string& path) override {
    hook_("close", path);
    inner_.close_file(fd, path);
  }
  void rename(const std::string& from, const std::string& to) override {
    hook_("rename", to);
    inner_.rename(from, to);
  }
  void sync_dir(const std::string& path) override {
    hook_("sync folder", path);
    inner_.sync_dir(path);
  }
  void sync_file(const std::string& path) override {
    hook_("sync file", path);
    inner_.sync_file(path);
  }
  void make_dirs(const std::string& path) override {
    hook_("make folder", path);
    inner_.make_dirs(path);
  }
  void make_dir(const std::string& path) override {
    hook_("make folder", path);
    inner_.make_dir(path);
  }
  void remove_all(const std::string& path) override {
    hook_("remove", path);
    inner_.remove_all(path);
  }
  std::vector<std::string> list(const std::string& path) override {
    hook_("list", path);
    return inner_.list(path);
  }
  uint64_t free_bytes(const std::string& path) override {
    hook_("ask", path);
    return num_free_bytes ? *num_free_bytes : inner_.free_bytes(path);
  }

  std::optional<uint64_t> num_free_bytes;  // what there is said to be free; nothing: the truth

 private:
  FileSystem& inner_;
  const Hook hook_;
};

}  // namespace gradstep::testing

// AppendFile: a file to which only whole lines are ever added.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace gradstep {

// Not for several writers at once.
class AppendFile {
 public:
  // Opens or creates `path`, which may not be a pipe. A last line without its end, left by a process that was
  // killed, is cut off. Throws std::system_error with the path, as do the others.
  explicit AppendFile(std::string path);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;
  // Bytes in the file; 0 for what cannot be cut, such as /dev/null.
  [[nodiscard]] int64_t size() const;
  // Throws if the file was removed, or has fewer than `bytes` bytes: what is appended would be lost unseen.
  void require_whole(int64_t bytes) const;
  // Looks whether the path still leads to this file, and the file has the `expected` bytes. If another
  // process removed, renamed or replaced it, writes all of it anew to the path; what stands there is moved
  // aside first. If it was cut short, goes on with the whole lines that are left. Returns one line that says
  // so; empty: all is as it was. Throws if the folder was moved.
  [[nodiscard]] std::string mend(int64_t expected);
  // The bytes from `begin` on; empty if the file is not longer than that.
  [[nodiscard]] std::string text_from(int64_t begin) const;
  // Drops the bytes from `end` on, and the line that this breaks. A shorter file stays as it is.
  void cut(int64_t end);
  // Begins anew; what was there goes to the first free one of "metrics-1.jsonl", "metrics-2.jsonl" ..., whose
  // path is returned.
  std::string move_aside();
  // `lines` ends with a line's end. When the disk takes only a part, the file is cut back to what was there
  // before.
  void append(std::string_view lines);

 private:
  void cut_partial_line();
  // Renames what is at the path to the first free one of the names, and returns that.
  [[nodiscard]] std::string rename_aside() const;

  std::string path_;
  int fd_ = -1;
  std::pair<uint64_t, uint64_t> folder_{};  // device and number
};

}  // namespace gradstep

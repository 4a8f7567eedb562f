// AtomicFile: a file written in pieces under a temporary name, which becomes visible whole or not at all.
#pragma once

#include <string>
#include <string_view>

#include "gradstep/io/file_system.h"

namespace gradstep {

// Removes its temporary file unless commit() renamed it into place. Errors: std::system_error.
class AtomicFile {
 public:
  // Beside `path`: hidden, and of no other process or object.
  AtomicFile(FileSystem& file_system, const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view bytes);
  // Sync, close, rename, sync of the folder. The last call of all.
  void commit();

 private:
  FileSystem& file_system_;
  const std::string path_;
  const std::string temporary_path_;
  int fd_;
  bool in_place_ = false;
};

}  // namespace gradstep

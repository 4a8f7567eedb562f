// write_file: a durable file in a folder that nobody reads yet, hashed while it is written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gradstep/io/file_system.h"

namespace gradstep {

struct FileDigest {
  uint64_t bytes = 0;
  std::string xxh3{};
};

// Creates `path`, writes the pieces one after the other, syncs and closes. There is no temporary name: for
// files whose folder is renamed into place later. Throws std::system_error; what was written stays then.
FileDigest write_file(FileSystem& file_system, const std::string& path,
                      const std::vector<std::string_view>& pieces);

}  // namespace gradstep

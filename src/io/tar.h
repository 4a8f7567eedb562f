// unpack_tar: takes chosen files out of a tar archive, packed by gzip or not, and nothing else.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gradstep {

struct TarMember {
  std::string name;         // in the archive: "folder/file.bin"
  std::string destination;  // path to write
  uint64_t size = 0;        // expected bytes
};

// Writes each member, atomically, to its destination, whose folder must exist. Nothing appears there unless
// the whole archive is right. Names in the archive never become paths: an entry that is not among `members`
// is passed over, whatever its name or kind. Throws DataError (archive, offset, expected, found) for a broken
// archive, a member that is no plain file, has another size, is there twice or is missing, and when a file
// cannot be written.
void unpack_tar(const std::string& archive, const std::vector<TarMember>& members);

}  // namespace gradstep

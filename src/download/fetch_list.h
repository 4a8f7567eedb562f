// What fetch downloads: addresses, sizes and hashes of the known data sets, and the work on one such list.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "download/fetch.h"
#include "gradstep/download/http.h"

namespace gradstep {

struct FetchFile {
  std::string name;
  uint64_t size = 0;
  std::string md5;
};

// A file inside an archive; it lands in the folder under the last part of its name.
struct FetchMember {
  std::string name_in_archive;
  std::string name;
  uint64_t size = 0;
};

struct FetchList {
  std::string dataset;
  std::string base_url;  // ends with /
  std::vector<FetchFile> files;
  // Not empty: files[0] is a tar archive that is unpacked into these and then removed.
  std::vector<FetchMember> members;
};

[[nodiscard]] const std::vector<FetchList>& known_fetch_lists();

// run_fetch for a list that is found already. `download` gives tries and pauses; its callbacks are replaced.
int fetch_files(const FetchList& list, const FetchOptions& options, DownloadOptions download, std::FILE* out,
                bool is_terminal);

}  // namespace gradstep

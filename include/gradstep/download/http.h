// http_download: fetches one file, goes on where an earlier try stopped, and checks what it got.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace gradstep {

/// How patient http_download() is, and what it tells.
struct DownloadOptions {
  int num_tries = 5;          ///< tries in all
  double pause_seconds = 1;   ///< pause before the second try; doubles each time
  double stall_seconds = 30;  ///< a connection that brings no byte for so long is given up
  /// Called with the bytes of the whole file, earlier parts included; `total` is 0 while it is not known. May
  /// throw to give up; the part stays then.
  std::function<void(uint64_t done, uint64_t total)> on_progress{};
  /// Called before each pause: what went wrong, in one line.
  std::function<void(const std::string& reason, double pause_seconds)> on_retry{};
};

/// One file to download.
struct Download {
  std::string url{};     ///< http or https
  std::string path{};    ///< final path; until the file is whole its bytes are in path + ".part"
  uint64_t size = 0;     ///< expected bytes; 0: not checked
  std::string md5{};     ///< expected, lower-case hexadecimal; empty: not checked
  std::string sha256{};  ///< likewise
};

/// Downloads one file, unless it is there already and right. Returns false in that case. A file without an
/// expected size or hash counts as right; a wrong one is removed first. Makes missing folders.
///
/// Goes on with a .part file by a range request. Starts over if the server ignores the range, if the part
/// proves wrong, or if there is no hash to check an old part by. Tries again after lost connections, stalls,
/// and answers 408, 429 and 5xx. Follows five redirects at most, and uses the proxies that libcurl finds in
/// the environment.
///
/// Throws DataError with url, expected, found and cure if the file cannot be downloaded, or its size or hash
/// is wrong; nothing is at `path` then.
bool http_download(const Download& download, const DownloadOptions& options = {});

}  // namespace gradstep

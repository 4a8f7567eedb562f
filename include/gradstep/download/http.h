// http_download: fetches one file, goes on where an earlier try stopped, and checks what it got.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace gradstep {

struct DownloadOptions {
  int num_tries = 5;          // over all, with a growing pause
  double pause_seconds = 1;   // before the second try; doubles each time
  double stall_seconds = 30;  // a connection without a byte for so long is given up
  // Bytes of the whole file, resumed ones included; total 0 while unknown. May throw to give up; the part
  // stays then.
  std::function<void(uint64_t done, uint64_t total)> on_progress{};
  // Before each pause: what went wrong, one line.
  std::function<void(const std::string& reason, double pause_seconds)> on_retry{};
};

struct Download {
  std::string url{};
  std::string path{};    // final path; the bytes on their way lie in path + ".part"
  uint64_t size = 0;     // expected bytes; 0: not checked
  std::string md5{};     // expected, lower-case hexadecimal; empty: not checked
  std::string sha256{};  // likewise
};

// Returns false when the file was there already and is right (a file with nothing to check it by counts as
// right; a wrong one is removed first). Missing folders are made. A .part file is continued by a range
// request; a server that ignores the range, or a part that proves wrong, starts over; without a hash to check
// by, an old part is not trusted. Lost connections, stalls and answers 408, 429 and 5xx are tried again. Only
// http and https, five redirects at most; proxies as libcurl's environment says. Throws DataError (url,
// expected, found, cure) when it cannot be had or its size or hash is wrong; then nothing lies at `path`.
bool http_download(const Download& download, const DownloadOptions& options = {});

}  // namespace gradstep

// A program that links the downloader: it asks for a file that no server has.
#include <cstdio>

#include "gradstep/base/error.h"
#include "gradstep/download/http.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    gradstep::http_download({.url = "http://127.0.0.1:1/none", .path = argv[1]}, {.num_tries = 1});
  } catch (const gradstep::DataError& error) {
    std::printf("%s\n", error.what());
    return 0;
  }
  return 1;
}

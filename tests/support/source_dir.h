// Where the sources lie that the running test was built from: golden files and docs are read from there.
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

namespace gradstep {

// Found through the cache file of the build folder that the test program lies in.
inline std::filesystem::path source_dir() {
  const std::string key = "gradstep_SOURCE_DIR:STATIC=";
  std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  for (; folder.has_relative_path(); folder = folder.parent_path()) {
    std::ifstream cache(folder / "CMakeCache.txt");
    for (std::string line; std::getline(cache, line);) {
      if (line.rfind(key, 0) == 0) return line.substr(key.size());
    }
  }
  throw std::runtime_error("the test program does not lie in a build folder");
}

// Throws when the file is not there.
inline std::string read_source_file(const std::string& path) {
  std::ifstream file(source_dir() / path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + (source_dir() / path).string());
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace gradstep

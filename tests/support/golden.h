// Golden files of tests/golden, line by line.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace gradstep::testing {

// Lines of a golden file without comments (#) and empty ones. Fails the test when the file cannot be read.
inline std::vector<std::string> golden_lines(const std::string& name) {
  // ctest says where the sources are; by hand a test is run from the repository's root.
  const char* root = std::getenv("GRADSTEP_SOURCE_DIR");
  const std::string path = std::string(root == nullptr ? "." : root) + "/tests/golden/" + name;
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line[0] != '#') lines.push_back(line);
  }
  return lines;
}

}  // namespace gradstep::testing

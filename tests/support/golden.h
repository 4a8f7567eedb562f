// Golden files of tests/golden, line by line.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

namespace gradstep::testing {

// Lines of a golden file without comments (#) and empty ones. Fails the test when the file cannot be read.
inline std::vector<std::string> golden_lines(const std::string& name) {
  // This header lies in tests/support, the files in tests/golden.
  const std::string here = __FILE__;
  const std::string path = here.substr(0, here.rfind("/support/")) + "/golden/" + name;
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line[0] != '#') lines.push_back(line);
  }
  return lines;
}

}  // namespace gradstep::testing

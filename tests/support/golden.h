// Golden files of tests/golden, line by line.
#pragma once

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "support/source_dir.h"

namespace gradstep::testing {

// Lines of a golden file without comments (#) and empty ones. Throws when the file cannot be read, and fails
// the test when nothing is in it.
inline std::vector<std::string> golden_lines(const std::string& name) {
  std::istringstream file(read_source_file("tests/golden/" + name));
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line[0] != '#') lines.push_back(line);
  }
  EXPECT_FALSE(lines.empty()) << name;
  return lines;
}

}  // namespace gradstep::testing

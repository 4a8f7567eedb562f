// What a user's file may look like at its smallest: the public headers, a symbol of the library and one of
// LibTorch.
#include <cstdio>
#include <string>

#include "gradstep/gradstep.h"

int main() {
  const std::string version(gradstep::version());
  const gradstep::Range range = gradstep::array_split(10, 3, 1);
  std::printf("gradstep %s [%d, %d)\n", version.c_str(), static_cast<int>(range.begin),
              static_cast<int>(range.end));
  return version.empty() || range.begin != 4 || range.end != 7;
}

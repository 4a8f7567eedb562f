// What a user's file may look like at its smallest: the public headers, a symbol of the library and one of
// LibTorch. Its assert() works, and so does the observer of ops, whatever NDEBUG was for the library.
#include <ATen/ops/ones.h>

#include <cassert>
#include <cstdio>
#include <string>

#include "gradstep/gradstep.h"

int main() {
  const std::string version(gradstep::version());
  const gradstep::Range range = gradstep::array_split(10, 3, 1);
  bool asserts = false;
  assert((asserts = true));
  const at::Tensor weight = at::ones({2});
  const gradstep::NonFiniteFinder finder({{"layer.weight", weight}});
  const at::Tensor quotient = weight.div(0);
  std::printf("gradstep %s [%d, %d) %s, asserts %s\n", version.c_str(), static_cast<int>(range.begin),
              static_cast<int>(range.end), finder.first().c_str(), asserts ? "on" : "off");
  return version.empty() || range.begin != 4 || range.end != 7;
}

// What a user's file may look like at its smallest: the public headers, a symbol of the library and one of
// LibTorch. Its assert() works, and so does the observer of ops, whatever NDEBUG was for the library.
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <torch/nn/modules/linear.h>

#include <cassert>
#include <cmath>
#include <cstdio>
#include <string>

#include "gradstep/gradstep.h"

int main() {
  const std::string version(gradstep::version());
  const gradstep::Range range = gradstep::array_split(10, 3, 1);
  bool asserts = false;
  assert((asserts = true));
  gradstep::SoloWorld world;
  gradstep::Engine engine(gradstep::regression_task(torch::nn::Linear(1, 1)),
                          {.schedule = {.shape = gradstep::LrShape::kConstant}}, world);
  const gradstep::StepReport report = engine.step(at::full({2, 1}, NAN), at::ones({2, 1}));
  std::printf("gradstep %s [%d, %d) %s, asserts %s\n", version.c_str(), static_cast<int>(range.begin),
              static_cast<int>(range.end), report.first_non_finite.c_str(), asserts ? "on" : "off");
  return version.empty() || range.begin != 4 || range.end != 7;
}

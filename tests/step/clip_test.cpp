// The gradient norm and clipping by it.
#include "step/clip.h"

#include <gtest/gtest.h>

#include "support/toys.h"

namespace gradstep::testing {
namespace {

struct Norm {
  at::Tensor norm = at::zeros({});
  at::Tensor found_inf = at::zeros({});
};

Norm norm_of(const std::vector<at::Tensor>& grads) {
  Norm result;
  global_norm(grads, result.norm, result.found_inf);
  return result;
}

TEST(Clip, NormEqualsPyTorchs) {
  const std::vector<at::Tensor> grads{at::randn({257, 300}), at::randn({5}), at::randn({}),
                                      at::randn({64, 63}).t()};
  std::vector<at::Tensor> flat;
  for (const at::Tensor& grad : grads) flat.push_back(grad.flatten().to(at::kDouble));
  EXPECT_NEAR(norm_of(grads).norm.item<double>(), at::cat(flat).norm().item<double>(), 1e-4);
  EXPECT_EQ(norm_of({torch::tensor({3.0F}), torch::tensor({4.0F})}).norm.item<float>(), 5.0F);
  EXPECT_EQ(norm_of({}).norm.item<float>(), 0.0F);
}

TEST(Clip, NormHasTheSameBitsForAnyNumberOfThreads) {
  const std::vector<at::Tensor> grads{at::randn({1000, 1001}), at::randn({77})};
  const int before = at::get_num_threads();
  std::vector<at::Tensor> norms;
  for (const int threads : {1, 2, 3, 8}) {
    at::set_num_threads(threads);
    norms.push_back(norm_of(grads).norm);
  }
  at::set_num_threads(before);
  for (const at::Tensor& norm : norms) EXPECT_TRUE(same_bytes(norm, norms[0]));
}

TEST(Clip, AnyElementThatIsNotFiniteIsFound) {
  for (const float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()}) {
    for (const int64_t position : {0, 4095, 4096, 9999}) {
      at::Tensor grad = at::zeros({10000});
      EXPECT_EQ(norm_of({grad}).found_inf.item<float>(), 0);
      grad[position] = bad;
      EXPECT_EQ(norm_of({at::ones({3}), grad}).found_inf.item<float>(), 1) << bad << " at " << position;
    }
  }
}

TEST(Clip, AFindingIsKept) {
  Norm result;
  result.found_inf.fill_(1);  // the scaler's, from before
  global_norm({at::ones({3})}, result.norm, result.found_inf);
  EXPECT_EQ(result.found_inf.item<float>(), 1);
}

TEST(Clip, GradientsShrinkToTheNormOrStay) {
  std::vector<at::Tensor> grads{torch::tensor({3.0F, 0.0F}), torch::tensor({4.0F})};
  clip_by_norm_(grads, at::full({}, 5.0F), 10);
  EXPECT_TRUE(same_bytes(grads[0], torch::tensor({3.0F, 0.0F})));
  clip_by_norm_(grads, at::full({}, 5.0F), 0);
  EXPECT_TRUE(same_bytes(grads[1], torch::tensor({4.0F})));
  clip_by_norm_(grads, at::full({}, 5.0F), 2);
  EXPECT_NEAR(norm_of(grads).norm.item<double>(), 2, 1e-5);
}

}  // namespace
}  // namespace gradstep::testing

// Case I1, and AdamW and SGD against their formulas in fp64.
#include "gradstep/step/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gradstep/base/error.h"
#include "step/param_groups.h"
#include "support/message_of.h"
#include "support/toys.h"

namespace gradstep::testing {
namespace {

at::Tensor parameter(const at::Tensor& values) { return values.clone().requires_grad_(); }

void set_grad(at::Tensor parameter, const at::Tensor& grad) { parameter.mutable_grad() = grad.clone(); }

const at::Tensor& not_found() {
  static const at::Tensor zero = at::zeros({});
  return zero;
}

// As the engine makes it.
std::unique_ptr<Optimizer> make(const NamedTensors& parameters, const OptimizerOptions& options) {
  return make_optimizer(apply_groups(parameters, options).trained, options);
}

TEST(Optimizer, I1_DecaySkipsVectorsAndScalars) {
  const at::Tensor matrix = parameter(at::ones({2, 3}));
  const at::Tensor bias = parameter(at::ones({3}));
  const at::Tensor scale = parameter(at::ones({}));
  for (const bool decay_all : {false, true}) {
    for (const at::Tensor& p : {matrix, bias, scale}) {
      p.detach().fill_(1);
      set_grad(p, at::zeros_like(p));
    }
    const auto optimizer = make({{"matrix", matrix}, {"bias", bias}, {"scale", scale}},
                                {.weight_decay = 0.1, .decay_all = decay_all});
    optimizer->step(1.0, not_found());
    EXPECT_TRUE(at::allclose(matrix, at::full({2, 3}, 0.9F)));
    const float rest = decay_all ? 0.9F : 1.0F;
    EXPECT_TRUE(at::allclose(bias, at::full({3}, rest), 0, decay_all ? 1e-6 : 0));
    EXPECT_FLOAT_EQ(scale.item<float>(), rest);
    EXPECT_EQ(optimizer->trained()[0].decays, true);
    EXPECT_EQ(optimizer->trained()[1].decays, decay_all);
  }
}

TEST(Optimizer, AdamWFollowsItsFormula) {
  const double lr = 0.1, wd = 0.01, b1 = 0.9, b2 = 0.99, eps = 1e-8;
  const at::Tensor w = parameter(at::full({1, 1}, 2.0F));
  const auto optimizer = make({{"w", w}}, {.weight_decay = wd, .beta1 = b1, .beta2 = b2, .eps = eps});
  double value = 2, m = 0, v = 0;
  for (int t = 1; t <= 20; ++t) {
    const double g = std::sin(t);
    set_grad(w, at::full({1, 1}, g));
    optimizer->step(lr, not_found());
    value *= 1 - lr * wd;
    m = b1 * m + (1 - b1) * g;
    v = b2 * v + (1 - b2) * g * g;
    value -= lr * (m / (1 - std::pow(b1, t))) / (std::sqrt(v / (1 - std::pow(b2, t))) + eps);
    EXPECT_NEAR(w.item<double>(), value, 1e-5) << t;
  }
}

TEST(Optimizer, SgdFollowsItsFormula) {
  for (const bool nesterov : {false, true}) {
    const at::Tensor w = parameter(at::full({1, 1}, 2.0F));
    const auto optimizer =
        make({{"w", w}},
             {.kind = OptimizerKind::kSgd, .weight_decay = 0.1, .momentum = 0.9, .nesterov = nesterov});
    double value = 2, buffer = 0;
    for (int t = 1; t <= 20; ++t) {
      const double raw = std::cos(t);
      set_grad(w, at::full({1, 1}, raw));
      optimizer->step(0.05, not_found());
      const double g = raw + 0.1 * value;
      buffer = t == 1 ? g : 0.9 * buffer + g;
      value -= 0.05 * (nesterov ? g + 0.9 * buffer : buffer);
      EXPECT_NEAR(w.item<double>(), value, 1e-5) << t;
    }
  }
}

TEST(Optimizer, ParametersWithoutGradientAreLeftAlone) {
  const at::Tensor used = parameter(at::ones({2, 2}));
  const at::Tensor unused = parameter(at::ones({2, 2}));
  const auto optimizer = make({{"used", used}, {"unused", unused}}, {.weight_decay = 0.5});
  set_grad(used, at::ones({2, 2}));
  optimizer->step(0.1, not_found());
  EXPECT_TRUE(at::equal(unused, at::ones({2, 2})));
  EXPECT_EQ(tensor_named(optimizer->state(), "used.step").item<float>(), 1);
  EXPECT_EQ(tensor_named(optimizer->state(), "unused.step").item<float>(), 0);
}

TEST(Optimizer, StateIsNamedAsPyTorchNamesIt) {
  const at::Tensor w = parameter(at::ones({2, 2}));
  std::vector<std::string> names;
  for (const auto& [name, tensor] : make({{"fc.w", w}}, {})->state()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"fc.w.exp_avg", "fc.w.exp_avg_sq", "fc.w.step"}));
  const NamedTensors sgd = make({{"fc.w", w}}, {.kind = OptimizerKind::kSgd})->state();
  ASSERT_EQ(sgd.size(), 1U);
  EXPECT_EQ(sgd[0].first, "fc.w.momentum_buffer");
  EXPECT_TRUE(make({{"fc.w", w}}, {.kind = OptimizerKind::kSgd, .momentum = 0})->state().empty());
}

TEST(Optimizer, FoundInfUndoesTheStep) {
  const at::Tensor w = parameter(at::ones({2, 2}));
  const auto optimizer = make({{"w", w}}, {});
  set_grad(w, at::full({2, 2}, std::numeric_limits<float>::quiet_NaN()));
  optimizer->step(0.1, at::ones({}));
  EXPECT_TRUE(at::equal(w, at::ones({2, 2})));
  for (const auto& [name, tensor] : optimizer->state())
    EXPECT_EQ(tensor.abs().sum().item<float>(), 0) << name;
}

TEST(Optimizer, OptionsThatMakeNoSenseAreRefused) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto refusal = [](const OptimizerOptions& options) {
    return message_of<ConfigError>([&] { validate(options); });
  };
  validate(OptimizerOptions{});
  for (const double eps : {0.0, 1e-60, -1.0, nan})
    EXPECT_THAT(refusal({.eps = eps}), ::testing::HasSubstr("eps"));
  for (const double bad : {1.0, 1.5, -0.1, nan}) {
    EXPECT_THAT(refusal({.beta1 = bad}), ::testing::HasSubstr("beta1"));
    EXPECT_THAT(refusal({.beta2 = bad}), ::testing::HasSubstr("beta2"));
    EXPECT_THAT(refusal({.kind = OptimizerKind::kSgd, .momentum = bad}), ::testing::HasSubstr("momentum"));
  }
  for (const double bad : {-1e-9, nan, std::numeric_limits<double>::infinity()}) {
    EXPECT_THAT(refusal({.weight_decay = bad}), ::testing::HasSubstr("weight decay"));
    EXPECT_THAT(refusal({.groups = {{.pattern = "a.*", .lr_factor = bad}}}),
                ::testing::HasSubstr("group a.*"));
    EXPECT_THAT(refusal({.groups = {{.pattern = "a.*", .weight_decay = bad}}}),
                ::testing::HasSubstr("group a.*"));
  }
  EXPECT_THAT(refusal({.kind = OptimizerKind::kSgd, .momentum = 0, .nesterov = true}),
              ::testing::HasSubstr("`nesterov` needs a `momentum` above 0"));
  EXPECT_THAT(refusal({.nesterov = true}), ::testing::HasSubstr("`nesterov` belongs to `opt` sgd"));
}

TEST(OptimizerOptions, KindsAreReadAsTheyAreWritten) {
  for (const OptimizerKind kind : {OptimizerKind::kAdamW, OptimizerKind::kSgd})
    EXPECT_EQ(parse_optimizer_kind(to_string(kind)), kind);
  EXPECT_THAT(message_of<ConfigError>([] { (void)parse_optimizer_kind("lion"); }),
              ::testing::HasSubstr("\"lion\""));
}

TEST(OptimizerOptions, TheNumberOfMomentsIsThatOfTheState) {
  const at::Tensor parameter = at::zeros({3, 5});
  for (const OptimizerOptions& options : {OptimizerOptions{}, OptimizerOptions{.kind = OptimizerKind::kSgd},
                                          OptimizerOptions{.kind = OptimizerKind::kSgd, .momentum = 0}}) {
    int64_t moments = 0;
    for (const auto& [name, tensor] : make_optimizer({{.name = "w", .tensor = parameter}}, options)->state())
      moments += tensor.sizes() == parameter.sizes() ? 1 : 0;
    EXPECT_EQ(num_moments(options), moments) << to_string(options.kind);
  }
}

TEST(EngineOptions, ThatMakeNoSenseAreRefused) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto refusal = [](auto change) {
    EngineOptions options{.schedule = {.shape = LrShape::kConstant}};
    change(options);
    return message_of<ConfigError>([&] { validate(options); });
  };
  using Options = EngineOptions;
  for (const double bad : {-1.0, nan})
    EXPECT_THAT(refusal([&](Options& o) { o.clip_grad = bad; }), ::testing::HasSubstr("clip_grad"));
  for (const double bad : {-0.1, 1.0, 2.0, nan})
    EXPECT_THAT(refusal([&](Options& o) { o.ema_decay = bad; }), ::testing::HasSubstr("ema_decay"));
  EXPECT_THAT(refusal([](Options& o) { o.spikes.window = 1; }), ::testing::HasSubstr("spikes.window"));
  EXPECT_THAT(refusal([&](Options& o) { o.spikes.z_score = nan; }), ::testing::HasSubstr("spikes.z_score"));
  EXPECT_THAT(refusal([](Options& o) { o.micro_batch = 0; }), ::testing::HasSubstr("micro-batch"));
  EXPECT_THAT(refusal([](Options& o) { o.max_skips_in_a_row = 0; }),
              ::testing::HasSubstr("max_skips_in_a_row"));
  EXPECT_THAT(refusal([](Options& o) { o.scaler.init_scale = 0; }), ::testing::HasSubstr("init_scale"));
  for (const double bad : {1e300, 1e-300, nan}) {
    EXPECT_THAT(refusal([&](Options& o) { o.scaler.init_scale = bad; }), ::testing::HasSubstr("init_scale"));
    EXPECT_THAT(refusal([&](Options& o) { o.scaler.growth_factor = bad; }),
                ::testing::HasSubstr("growth_factor"));
    EXPECT_THAT(refusal([&](Options& o) { o.scaler.backoff_factor = bad; }),
                ::testing::HasSubstr("backoff_factor"));
  }
  for (const int64_t bad : {int64_t{0}, int64_t{1} << 31}) {
    EXPECT_THAT(refusal([&](Options& o) { o.scaler.growth_interval = bad; }),
                ::testing::HasSubstr("growth_interval"));
  }
  EXPECT_THAT(refusal([](Options& o) { o.optimizer.beta1 = 1; }), ::testing::HasSubstr("beta1"));
  for (const int bad : {-1, 9}) {
    EXPECT_THAT(refusal([&](Options& o) { o.precision = static_cast<Precision>(bad); }),
                ::testing::HasSubstr("precision must be"));
    EXPECT_THAT(refusal([&](Options& o) { o.schedule.shape = static_cast<LrShape>(bad); }),
                ::testing::HasSubstr("shape must be"));
    EXPECT_THAT(refusal([&](Options& o) { o.optimizer.kind = static_cast<OptimizerKind>(bad); }),
                ::testing::HasSubstr("kind must be"));
    EXPECT_THROW(use_matmul(static_cast<Matmul>(bad)), ConfigError);
  }
}

}  // namespace
}  // namespace gradstep::testing

// load_weights: by name in any order, and one clear error for all that does not fit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <limits>

#include "gradstep/base/error.h"
#include "gradstep/checkpoint/model_file.h"
#include "gradstep/io/safetensors.h"
#include "support/message_of.h"
#include "support/scratch_dir.h"

namespace gradstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Named = std::vector<std::pair<std::string, at::Tensor>>;

// A tied weight, and a buffer that counts.
struct NetImpl : torch::nn::Module {
  NetImpl() {
    body = register_module("body", torch::nn::Sequential(torch::nn::Linear(3, 4), torch::nn::BatchNorm1d(4)));
    head = register_parameter("head", torch::zeros({2, 4}));
    register_parameter("tied", head);
  }
  torch::nn::Sequential body{nullptr};
  at::Tensor head;
};
TORCH_MODULE(Net);

Named tensors_of(const torch::nn::Module& module) {
  Named tensors;
  for (const auto& item : module.named_parameters()) tensors.emplace_back(item.key(), item.value().detach());
  for (const auto& item : module.named_buffers()) tensors.emplace_back(item.key(), item.value());
  return tensors;
}

std::vector<at::Tensor> copies(const torch::nn::Module& module) {
  std::vector<at::Tensor> result;
  for (const auto& [name, tensor] : tensors_of(module)) result.push_back(tensor.clone());
  return result;
}

bool equal(const torch::nn::Module& a, const torch::nn::Module& b) {
  const std::vector<at::Tensor> x = copies(a), y = copies(b);
  return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                    [](const at::Tensor& p, const at::Tensor& q) { return at::equal(p, q); });
}

class LoadWeights : public ::testing::Test {
 protected:
  LoadWeights() {
    torch::manual_seed(4);
    trained = Net();
    const at::NoGradGuard no_grad;
    for (auto& [name, tensor] : tensors_of(*trained)) {
      if (tensor.is_floating_point()) tensor.normal_();
    }
    trained->named_buffers()["body.1.num_batches_tracked"].fill_(77);
  }
  std::string write(const Named& tensors) {
    const std::string path = folder.path() + "/weights.safetensors";
    write_safetensors(posix_file_system(), path, tensors, {});
    return path;
  }
  // The refusal; the module is unchanged.
  std::string refusal(const Named& tensors, const LoadWeightsOptions& options = {}) {
    Net net;
    const std::vector<at::Tensor> before = copies(*net);
    const std::string path = write(tensors);
    const std::string message = message_of<CheckpointError>([&] { load_weights(*net, path, options); });
    const std::vector<at::Tensor> after = copies(*net);
    for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(at::equal(after[i], before[i]));
    EXPECT_THAT(message, HasSubstr(path));
    return message;
  }

  ScratchDir folder;
  Net trained{nullptr};
};

TEST_F(LoadWeights, R52_EverythingByNameInAnyOrder) {
  Named tensors = tensors_of(*trained);
  for (int i = 0; i < 2; ++i) {
    Net net;
    EXPECT_FALSE(equal(*net, *trained));
    const LoadedWeights loaded = load_weights(*net, write(tensors));
    EXPECT_TRUE(equal(*net, *trained));
    EXPECT_EQ(loaded.loaded.size(), tensors.size());
    EXPECT_TRUE(net->head.requires_grad());
    std::reverse(tensors.begin(), tensors.end());
  }
}

TEST_F(LoadWeights, ATiedTensorNeedsOneOfItsNames) {
  Named tensors = tensors_of(*trained);
  std::erase_if(tensors, [](const auto& named) { return named.first == "head"; });
  Net net;
  load_weights(*net, write(tensors));
  EXPECT_TRUE(at::equal(net->head, trained->head));
}

TEST_F(LoadWeights, ATiedTensorHasTheSameValuesUnderEachName) {
  Named tensors = tensors_of(*trained);
  for (auto& [name, tensor] : tensors) {
    if (name == "head") tensor = tensor + 1;
  }
  EXPECT_THAT(refusal(tensors), HasSubstr("head and tied are one tensor in the module, but differ"));
}

TEST_F(LoadWeights, ACastMustNotMakeValuesInfinite) {
  Named tensors = tensors_of(*trained);
  for (auto& [name, tensor] : tensors) {
    if (name == "body.0.bias") tensor = at::full({4}, 1e300, at::kDouble);
    if (name == "body.1.bias") tensor = at::full({4}, std::numeric_limits<double>::infinity(), at::kDouble);
  }
  EXPECT_THAT(refusal(tensors, {.cast = true}),
              AllOf(HasSubstr("body.0.bias is Double, in the module Float, which cannot hold all its values"),
                    ::testing::Not(HasSubstr("body.1.bias"))));
}

TEST_F(LoadWeights, ABufferWhoseElementsShareMemoryIsRefusedBeforeAnythingIsCopied) {
  struct Expanded : torch::nn::Module {
    Expanded() {
      weight = register_parameter("weight", torch::zeros({2}));
      register_buffer("scale", torch::ones({1}).expand({3}));
    }
    at::Tensor weight;
  };
  Expanded net;
  const std::string path = write({{"weight", at::ones({2})}, {"scale", at::ones({3})}});
  EXPECT_THAT(message_of<CheckpointError>([&] { load_weights(net, path); }),
              HasSubstr("scale has elements that share memory in the module; register a clone() of it"));
  EXPECT_TRUE(at::equal(net.weight, at::zeros({2})));
}

TEST_F(LoadWeights, SaysAllThatDoesNotFitAtOnce) {
  Named tensors = tensors_of(*trained);
  for (auto& [name, tensor] : tensors) {
    if (name == "body.0.bias") name = "body.0.bais";
    if (name == "body.1.weight") tensor = at::zeros({5});
    if (name == "body.1.bias") tensor = tensor.to(at::kBFloat16);
    if (name == "body.1.num_batches_tracked") tensor = tensor.to(at::kFloat);
  }
  const std::string message = refusal(tensors);
  EXPECT_THAT(message, AllOf(HasSubstr("missing: body.0.bias;"),
                             HasSubstr("unexpected: body.0.bais; did you mean body.0.bias?"),
                             HasSubstr("body.1.weight has shape (5), the module (4)"),
                             HasSubstr("body.1.bias is BFloat16, in the module Float"),
                             HasSubstr("body.1.num_batches_tracked is Float, in the module Long")));
  EXPECT_EQ(std::ranges::count(message, '\n'), 0);
  // Shapes are not a matter of strictness.
  EXPECT_THAT(refusal(tensors, {.strict = false}), HasSubstr("(5)"));
  // Nothing would be loaded, and nobody would notice.
  EXPECT_THAT(refusal({{"net.head", at::zeros({1})}}, {.strict = false}),
              HasSubstr("no tensor has a name of the module; it has: net.head; map the names with `rename`"));
}

TEST_F(LoadWeights, WithoutStrictnessItTakesWhatBothHave) {
  Net net;
  const at::Tensor bias = net->named_parameters()["body.0.bias"].detach().clone();
  const LoadedWeights loaded = load_weights(
      *net, write({{"head", trained->head.detach()}, {"other", at::zeros({1})}}), {.strict = false});
  EXPECT_THAT(loaded.loaded, ElementsAre("head"));
  EXPECT_THAT(loaded.unexpected, ElementsAre("other"));
  EXPECT_THAT(loaded.missing, ::testing::Contains("body.0.bias"));
  EXPECT_THAT(loaded.missing, ::testing::Not(::testing::Contains("tied")));
  EXPECT_TRUE(at::equal(net->head, trained->head));
  EXPECT_TRUE(at::equal(net->named_parameters()["body.0.bias"], bias));
}

TEST_F(LoadWeights, RenamesAndCasts) {
  Named tensors{{"optimizer.step", at::zeros({1})}};
  for (const auto& [name, tensor] : tensors_of(*trained))
    tensors.emplace_back("model." + name, tensor.is_floating_point() ? tensor.to(at::kDouble) : tensor);
  Net net;
  load_weights(*net, write(tensors), {.rename = without_prefix("model."), .cast = true});
  EXPECT_TRUE(equal(*net, *trained));
  EXPECT_THAT(refusal(tensors, {.rename = without_prefix("model.")}), HasSubstr("Double"));
  EXPECT_THAT(refusal(tensors, {.rename = [](const std::string&) { return "head"; }}),
              HasSubstr("both renamed to head"));
}

}  // namespace
}  // namespace gradstep::testing

// What no safetensors file can hold is named before anything is written.
#include "io/storable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

namespace gradstep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Storable, WhatNoFileCanHoldIsNamedWithItsCure) {
  const at::Tensor one = at::ones({1});
  EXPECT_EQ(why_not_storable({}), "");
  EXPECT_EQ(why_not_storable({{"a", one}, {"b", one}}), "");
  EXPECT_EQ(why_not_storable({{"a", one.to(at::kComplexFloat)}, {"b", one.to(at::kFloat8_e5m2)}}), "");
  EXPECT_THAT(why_not_storable({{"ok", one}, {"a", one.to(at::kComplexDouble)}}),
              AllOf(StartsWith("a is ComplexDouble"), HasSubstr("convert it")));
  EXPECT_THAT(why_not_storable({{"a", at::quantize_per_tensor(one, 0.1, 0, at::kQInt8)}}),
              StartsWith("a is QInt8"));
  EXPECT_THAT(why_not_storable({{"a\xff", one}}), HasSubstr("has a name that is not UTF-8; rename it"));
  EXPECT_THAT(why_not_storable({{"__metadata__", one}}), HasSubstr("reserved in safetensors files"));
  EXPECT_THAT(why_not_storable({{"a", one}, {"a", one}}), HasSubstr("a has the name of another one"));
  EXPECT_THAT(why_not_storable({{"a", at::Tensor()}}), HasSubstr("a is undefined"));
  EXPECT_THAT(why_not_storable({{"a", one.to_sparse()}}), HasSubstr("a is not dense"));
}

TEST(Storable, ElementsThatShareMemoryCannotBeRestored) {
  const NamedTensors expanded{{"a", at::ones({1}).expand({3})}};
  EXPECT_EQ(why_not_storable(expanded), "");
  EXPECT_THAT(why_not_restorable(expanded),
              AllOf(HasSubstr("a has elements that share memory"), HasSubstr("clone()")));
  EXPECT_EQ(why_not_restorable({{"a", at::ones({3}).slice(0, 0, 3, 2)}}), "");
}

}  // namespace
}  // namespace gradstep

// shortest: what it writes reads back to the same bits, and is as short as people write it.
// no torch
#include "base/number_text.h"

#include <gtest/gtest.h>

#include <bit>
#include <charconv>
#include <limits>
#include <random>

namespace gradstep {
namespace {

TEST(Shortest, IsWhatPeopleWrite) {
  EXPECT_EQ(shortest(0), "0");
  EXPECT_EQ(shortest(-0.0), "-0");
  EXPECT_EQ(shortest(64), "64");
  EXPECT_EQ(shortest(0.001), "0.001");
  EXPECT_EQ(shortest(1e-4), "1e-04");
  EXPECT_EQ(shortest(0.1 + 0.2), "0.30000000000000004");
}

TEST(Shortest, ReadsBackToTheSameBits) {
  const auto read = [](const std::string& text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size()
               ? value
               : std::numeric_limits<double>::quiet_NaN();
  };
  const auto expect_same = [&](double value) {
    EXPECT_EQ(std::bit_cast<uint64_t>(read(shortest(value))), std::bit_cast<uint64_t>(value))
        << shortest(value);
  };
  using Limits = std::numeric_limits<double>;
  for (const double value : {Limits::min(), -Limits::max(), Limits::denorm_min(), -Limits::infinity()})
    expect_same(value);
  std::mt19937_64 bits(3);
  for (int i = 0; i < 1000; ++i) {
    const double value = std::bit_cast<double>(bits());
    if (value == value) expect_same(value);
  }
}

TEST(NumberText, WhatIsNotFiniteHasNames) {
  using Limits = std::numeric_limits<double>;
  EXPECT_EQ(not_finite_text(Limits::quiet_NaN()), "NaN");
  EXPECT_EQ(not_finite_text(-Limits::quiet_NaN()), "NaN");
  EXPECT_EQ(not_finite_text(Limits::infinity()), "Infinity");
  EXPECT_EQ(not_finite_text(-Limits::infinity()), "-Infinity");
  for (const double finite : {0.0, -1.0, Limits::max(), Limits::denorm_min()})
    EXPECT_EQ(not_finite_text(finite), "");
}

}  // namespace
}  // namespace gradstep

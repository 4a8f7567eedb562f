// Small IDX data sets written by a test, so that a whole run takes milliseconds.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <random>
#include <string>

#include "support/scratch_dir.h"

namespace gradstep::testing {

inline std::string idx_header(uint32_t magic, std::initializer_list<int64_t> sizes) {
  std::string bytes;
  const auto add = [&bytes](uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  };
  add(magic);
  for (const int64_t size : sizes) add(static_cast<uint32_t>(size));
  return bytes;
}

// n pictures of 4 x 4 with labels 0..9 that can be learnt: a bright pixel at the label's place, on noise.
inline void write_idx_part(const ScratchDir& dir, const std::string& part, int64_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::string pictures = idx_header(0x803, {n, 4, 4});
  std::string labels = idx_header(0x801, {n});
  for (int64_t i = 0; i < n; ++i) {
    const auto label = static_cast<size_t>(random() % 10);
    std::string picture(16, '\0');
    for (char& pixel : picture) pixel = static_cast<char>(random() % 128);
    picture[label] = static_cast<char>(255);
    pictures += picture;
    labels += static_cast<char>(label);
  }
  dir.write(part + "-images-idx3-ubyte", pictures);
  dir.write(part + "-labels-idx1-ubyte", labels);
}

// What --dataset mnist --data-dir <dir> reads.
inline void write_idx_dataset(const ScratchDir& dir, int64_t num_train, int64_t num_test) {
  write_idx_part(dir, "train", num_train, 1);
  write_idx_part(dir, "t10k", num_test, 2);
}

}  // namespace gradstep::testing

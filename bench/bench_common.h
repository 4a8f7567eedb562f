// What the C++ bench programs share: their flags, an IDX reader, the clock that leaves warm-up out, and the
// JSON line they print.
#pragma once

#include <torch/torch.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>

namespace bench {

// "--name value" pairs only; the runner is the caller, so a wrong flag is an exception.
class Flags {
 public:
  Flags(int argc, char** argv) {
    for (int i = 1; i + 1 < argc; i += 2) values_[argv[i]] = argv[i + 1];
    if (argc % 2 == 0) throw std::invalid_argument(std::string("flag without a value: ") + argv[argc - 1]);
  }
  [[nodiscard]] std::string text(const std::string& name, const std::string& otherwise) const {
    const auto found = values_.find("--" + name);
    return found == values_.end() ? otherwise : found->second;
  }
  [[nodiscard]] int64_t count(const std::string& name, int64_t otherwise) const {
    return std::stoll(text(name, std::to_string(otherwise)));
  }
  [[nodiscard]] double number(const std::string& name, double otherwise) const {
    return std::stod(text(name, std::to_string(otherwise)));
  }

 private:
  std::map<std::string, std::string> values_;
};

// The flags that every program has.
struct Job {
  std::string data_dir;
  int64_t batch_size;
  int64_t grad_accum_steps;
  std::string precision;
  int64_t threads;
  int64_t workers;
  int64_t warmup_windows;
  double seconds;

  explicit Job(const Flags& flags)
      : data_dir(flags.text("data-dir", ".")),
        batch_size(flags.count("batch-size", 32)),
        grad_accum_steps(flags.count("grad-accum-steps", 4)),
        precision(flags.text("precision", "fp32")),
        threads(flags.count("threads", 1)),
        workers(flags.count("workers", 0)),
        warmup_windows(flags.count("warmup-windows", 30)),
        seconds(flags.number("seconds", 3)) {
    at::set_num_threads(static_cast<int>(threads));
  }
  [[nodiscard]] int64_t window() const { return batch_size * grad_accum_steps; }
};

// Counts samples from the end of the warm-up on. Call tick() after each window until it returns false.
class SteadyClock {
 public:
  SteadyClock(int64_t warmup_windows, double seconds) : warmup_windows_(warmup_windows), seconds_(seconds) {}

  // One more window of so many samples is done. Returns whether to go on.
  [[nodiscard]] bool tick(int64_t samples) {
    ++windows_seen_;
    const auto now = std::chrono::steady_clock::now();
    if (windows_seen_ <= warmup_windows_) {
      start_ = now;
      return true;
    }
    ++windows_;
    samples_ += samples;
    elapsed_seconds_ = std::chrono::duration<double>(now - start_).count();
    return elapsed_seconds_ < seconds_;
  }
  [[nodiscard]] int64_t windows() const { return windows_; }
  [[nodiscard]] double samples_per_s() const { return static_cast<double>(samples_) / elapsed_seconds_; }
  [[nodiscard]] double elapsed_seconds() const { return elapsed_seconds_; }

 private:
  int64_t warmup_windows_;
  double seconds_;
  int64_t windows_seen_ = 0;
  int64_t windows_ = 0;
  int64_t samples_ = 0;
  double elapsed_seconds_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

inline void print_result(const std::string& name, const Job& job, const SteadyClock& clock, double loss) {
  std::printf(
      "{\"name\": \"%s\", \"samples_per_s\": %.1f, \"windows\": %lld, \"warmup_windows\": %lld, \"threads\": "
      "%lld, "
      "\"seconds\": %.3f, \"loss\": %.4f}\n",
      name.c_str(), clock.samples_per_s(), static_cast<long long>(clock.windows()),
      static_cast<long long>(job.warmup_windows), static_cast<long long>(job.threads),
      clock.elapsed_seconds(), loss);
}

// The values behind the header of an uncompressed IDX file of bytes, (num_items, rest).
inline at::Tensor read_idx(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string raw((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (raw.size() < 8 || raw[2] != 8) throw std::runtime_error(path + ": not an IDX file of bytes");
  const auto byte = [&raw](size_t at) { return static_cast<int64_t>(static_cast<unsigned char>(raw[at])); };
  const auto header = 4 + 4 * static_cast<size_t>(byte(3));
  const int64_t num_items = byte(4) << 24 | byte(5) << 16 | byte(6) << 8 | byte(7);
  const auto num_values = static_cast<int64_t>(raw.size() - header);
  const at::Tensor values = at::empty({num_values}, at::kByte);
  std::copy(raw.begin() + static_cast<std::ptrdiff_t>(header), raw.end(), values.data_ptr<uint8_t>());
  return values.view({num_items, num_values / num_items});
}

// The training set as bytes, (num_pictures, 784), and labels (num_pictures) int64.
struct Pictures {
  at::Tensor bytes, labels;
  explicit Pictures(const std::string& folder)
      : bytes(read_idx(folder + "/train-images-idx3-ubyte")),
        labels(read_idx(folder + "/train-labels-idx1-ubyte").view({-1}).to(at::kLong)) {}
  [[nodiscard]] int64_t size() const { return labels.size(0); }
};

// Of the bare loop and the Engine.
constexpr double kClipGrad = 1.0;

// 784-256-10, what every peer trains.
struct Mlp : torch::nn::Module {
  torch::nn::Linear fc1 = register_module("fc1", torch::nn::Linear(784, 256));
  torch::nn::Linear fc2 = register_module("fc2", torch::nn::Linear(256, 10));
  at::Tensor forward(const at::Tensor& pixels) { return fc2(torch::relu(fc1(pixels))); }
};

// Warm-up of 100 updates, then half a cosine over three epochs; what every peer's learning rate follows.
inline double learning_rate(int64_t k) {
  constexpr double kPeak = 1e-3;
  constexpr int64_t kWarmup = 100;
  constexpr int64_t kTotal = 1407;
  if (k <= kWarmup) return kPeak * static_cast<double>(k) / kWarmup;
  if (k >= kTotal)
    return kPeak * 1e-3;  // a run that lasts longer than three epochs goes on learning a little
  return kPeak * (1 + std::cos(M_PI * static_cast<double>(k - kWarmup) / (kTotal - kWarmup))) / 2;
}

}  // namespace bench

// The bound: samples/s that the matrix products of one window alone would allow, each by the best kernel at
// hand. Flags as in bench_common.h (no data is read); a product is timed in chunks within --seconds and its
// median counts.
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/torch.h>

#include <algorithm>

#include "bench_common.h"

namespace {

constexpr int64_t kIn = 784, kHidden = 256, kOut = 10;

// x w^T + bias by oneDNN, whatever PyTorch itself would choose.
at::Tensor onednn_linear(const at::Tensor& x, const at::Tensor& w, const std::optional<at::Tensor>& bias) {
  using Signature =
      at::Tensor(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&, std::string_view,
                 c10::List<std::optional<at::Scalar>>, std::optional<std::string_view>);
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("mkldnn::_linear_pointwise", "").typed<Signature>();
  return op.call(x, w, bias, "none", c10::List<std::optional<at::Scalar>>(), "");
}

// Median seconds of one call: chunks of about a millisecond until the time is up.
double median_seconds(const std::function<void()>& call, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto timed = [&call](int64_t repeats) {
    const auto start = Clock::now();
    for (int64_t i = 0; i < repeats; ++i) call();
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  timed(10);
  const auto repeats = std::clamp<int64_t>(static_cast<int64_t>(10 * 1e-3 / timed(10)), 1, 1000);
  std::vector<double> chunks;
  for (double total = 0; total < seconds || chunks.size() < 5;) {
    const double chunk = timed(repeats);
    total += chunk;
    chunks.push_back(chunk / static_cast<double>(repeats));
  }
  std::nth_element(chunks.begin(), chunks.begin() + static_cast<std::ptrdiff_t>(chunks.size() / 2),
                   chunks.end());
  return chunks[chunks.size() / 2];
}

// One product of the window in two ways, with its operands.
struct Product {
  std::string name;
  std::function<void()> by_torch, by_onednn;
};

// Outputs are reused where the call allows it, so that next to nothing but the product is timed.
std::vector<Product> products(int64_t micro, at::ScalarType dtype) {
  const auto make = [dtype](int64_t rows, int64_t columns) { return at::rand({rows, columns}).to(dtype); };
  const auto x = make(micro, kIn), h = make(micro, kHidden), dh = make(micro, kHidden),
             dz = make(micro, kOut);
  const auto w1 = make(kHidden, kIn), w2 = make(kOut, kHidden);
  const auto b1 = make(1, kHidden).view(-1), b2 = make(1, kOut).view(-1);
  const auto forward = [](const at::Tensor& in, const at::Tensor& w, const at::Tensor& b) {
    auto out = at::empty({in.size(0), w.size(0)}, in.options());
    return std::pair{std::function<void()>([=]() mutable { at::addmm_out(out, b, in, w.t()); }),
                     std::function<void()>([=] { onednn_linear(in, w, b); })};
  };
  const auto product = [](const at::Tensor& a, const at::Tensor& b) {
    auto out = at::empty({a.size(0), b.size(1)}, a.options());
    return std::pair{std::function<void()>([=]() mutable { at::mm_out(out, a, b); }),
                     std::function<void()>([=] { onednn_linear(a, b.t(), std::nullopt); })};
  };
  std::vector<Product> all;
  const auto add = [&all](const char* name, auto ways) { all.push_back({name, ways.first, ways.second}); };
  add("fc1", forward(x, w1, b1));
  add("fc2", forward(h, w2, b2));
  add("dw2", product(dz.t(), h));
  add("dx2", product(dz, w2));
  add("dw1", product(dh.t(), x));
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Job job(bench::Flags(argc, argv));
  const at::NoGradGuard no_grad;
  const auto all = products(job.batch_size, job.precision == "bf16" ? at::kBFloat16 : at::kFloat);
  double torch_seconds = 0, onednn_seconds = 0, best_seconds = 0;
  std::string detail;
  for (const auto& product : all) {
    const double share = job.seconds / static_cast<double>(2 * all.size());
    const double by_torch = median_seconds(product.by_torch, share);
    const double by_onednn = median_seconds(product.by_onednn, share);
    torch_seconds += by_torch;
    onednn_seconds += by_onednn;
    best_seconds += std::min(by_torch, by_onednn);
    char line[128];
    std::snprintf(line, sizeof line, "%s\"%s\": {\"torch_us\": %.2f, \"onednn_us\": %.2f}",
                  detail.empty() ? "" : ", ", product.name.c_str(), by_torch * 1e6, by_onednn * 1e6);
    detail += line;
  }
  const auto rate = [&job](double seconds) { return static_cast<double>(job.batch_size) / seconds; };
  std::printf(
      "{\"name\": \"matmul_bound\", \"samples_per_s\": %.1f, \"windows\": 0, \"threads\": %lld, "
      "\"torch_samples_per_s\": "
      "%.1f, \"onednn_samples_per_s\": %.1f, \"products\": {%s}}\n",
      rate(best_seconds), static_cast<long long>(job.threads), rate(torch_seconds), rate(onednn_seconds),
      detail.c_str());
}

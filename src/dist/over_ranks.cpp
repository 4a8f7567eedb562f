// Worlds can sum only, so a maximum is taken from a list with a place for each rank.
#include "dist/over_ranks.h"

#include <ATen/ATen.h>

#include <cstring>

namespace gradstep {

std::vector<double> gather(double own, c10::Device device, World& world) {
  if (world.size() == 1) return {own};
  at::Tensor all = at::zeros({world.size()}, at::kDouble);
  all[world.rank()] = own;
  all = all.to(device);
  world.all_reduce_sum(all);
  all = all.cpu();
  const double* const begin = all.const_data_ptr<double>();
  return {begin, begin + all.numel()};
}

double sum_over_ranks(double value, c10::Device device, World& world) {
  if (world.size() == 1) return value;
  at::Tensor total = at::full({}, value, at::TensorOptions(at::kDouble).device(device));
  world.all_reduce_sum(total);
  return total.item<double>();
}

std::optional<double> sum_unless_failed(double value, bool failed, c10::Device device, World& world) {
  if (world.size() == 1) return failed ? std::nullopt : std::optional(value);
  at::Tensor both = at::tensor({value, failed ? 1.0 : 0.0}, at::kDouble).to(device);
  world.all_reduce_sum(both);
  both = both.cpu();
  const double* numbers = both.const_data_ptr<double>();
  return numbers[1] > 0 ? std::nullopt : std::optional(numbers[0]);
}

int64_t max_over_ranks(int64_t value, c10::Device device, World& world) {
  if (world.size() == 1) return value;
  at::Tensor of_ranks = at::zeros({world.size()}, at::TensorOptions(at::kLong).device(device));
  of_ranks[world.rank()] = value;
  world.all_reduce_sum(of_ranks);
  return of_ranks.max().item<int64_t>();
}

std::string broadcast_bytes(std::string own, int64_t root, c10::Device device, World& world) {
  if (world.size() == 1) return own;
  at::Tensor length =
      at::full({}, static_cast<int64_t>(own.size()), at::TensorOptions(at::kLong).device(device));
  world.broadcast(length, root);
  const auto num_bytes = length.item<int64_t>();
  if (num_bytes == 0) return {};
  at::Tensor bytes = at::empty({num_bytes}, at::kByte);
  if (world.rank() == root) std::memcpy(bytes.data_ptr(), own.data(), own.size());
  bytes = bytes.to(device);
  world.broadcast(bytes, root);
  bytes = bytes.cpu();
  return {static_cast<const char*>(bytes.const_data_ptr()), static_cast<size_t>(num_bytes)};
}

}  // namespace gradstep

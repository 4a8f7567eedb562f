// Batch: its rows and its device, tensor by tensor.
#include <ATen/ATen.h>

#include "gradstep/base/error.h"
#include "gradstep/data/dataset.h"

namespace gradstep {
namespace {

template <class Change>
Batch each_tensor(const Batch& batch, Change change) {
  Batch result;
  if (batch.inputs.defined()) result.inputs = change(batch.inputs);
  if (batch.targets.defined()) result.targets = change(batch.targets);
  for (const auto& [name, tensor] : batch.extras) result.extras.emplace(name, change(tensor));
  return result;
}

void check_tensor(const std::string& name, const at::Tensor& tensor, int64_t expected) {
  const int64_t rows = tensor.defined() && tensor.dim() > 0 ? tensor.size(0) : 0;
  if (rows == expected) return;
  throw DataError("a batch of " + std::to_string(expected) + " samples has " + std::to_string(rows) +
                  " rows of " + name + "; every tensor of a batch needs one row a sample");
}

}  // namespace

Batch Batch::narrow(int64_t first, int64_t count) const {
  return each_tensor(*this, [&](const at::Tensor& tensor) { return tensor.narrow(0, first, count); });
}

Batch Batch::to(at::Device device) const {
  return each_tensor(*this,
                     [&](const at::Tensor& tensor) { return tensor.to(device, /*non_blocking=*/true); });
}

void check_rows(const Batch& batch, int64_t expected) {
  check_tensor("inputs", batch.inputs, expected);
  if (batch.targets.defined()) check_tensor("targets", batch.targets, expected);
  for (const auto& [name, tensor] : batch.extras) check_tensor(name, tensor, expected);
}

}  // namespace gradstep

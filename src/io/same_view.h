// same_view: do two tensors name the same elements? Such are stored once in a file.
#pragma once

#include <ATen/core/Tensor.h>

namespace gradstep {

// The same elements of the same memory, seen the same way.
[[nodiscard]] inline bool same_view(const at::Tensor& a, const at::Tensor& b) {
  if (a.is_same(b)) return true;
  return a.numel() > 0 && a.const_data_ptr() == b.const_data_ptr() && a.device() == b.device() &&
         a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() && a.strides() == b.strides() &&
         a.is_conj() == b.is_conj() && a.is_neg() == b.is_neg();
}

}  // namespace gradstep

// The global gradient norm, which is also the finite check, and clipping by it.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace gradstep {

// Global 2-norm over all gradients (fp32, strided), written to `norm`; sets `found_inf` to 1 when it is not
// finite, which it is not when any element is not. Both 0-dim fp32 on the gradients' device. On the CPU one
// pass, with the same bits for any number of threads. Never waits for the device. Symbol in PyTorch:
// torch.nn.utils.get_total_norm.
void global_norm(const std::vector<at::Tensor>& grads, at::Tensor& norm, at::Tensor& found_inf);

// Multiplies the gradients by min(1, max_norm / (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_ does.
// max_norm 0: off.
void clip_by_norm_(std::vector<at::Tensor>& grads, const at::Tensor& norm, double max_norm);

}  // namespace gradstep

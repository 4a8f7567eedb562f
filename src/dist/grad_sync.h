// GradSync: sums the gradients over all ranks, once for each window, and tells every rank how the passes of
// all ranks ended.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "gradstep/dist/world.h"

namespace gradstep {

// How the forward and backward passes of a window ended on one rank, from good to bad.
enum class SyncStatus { kComplete, kGivenUp, kOutOfMemory, kFailed };

// One exchange of gradients: begin(), passes, arm() within the last pass, finish(). An implementation may
// send gradients while the last backward pass still runs, or do everything in finish(). All ranks make the
// same calls, except that a rank whose passes fail leaves out arm(). After finish() the next call is
// begin(), for the same window again or for another one.
class GradSync {
 public:
  virtual ~GradSync() = default;
  // Before the first forward pass of window number `window` (from 1).
  virtual void begin(int64_t window) = 0;
  // Between the last forward pass and its backward pass: that backward pass completes this rank's gradients.
  // `loss` is what it starts from; undefined if this rank has no samples, and so no pass at all.
  virtual void arm(const at::Tensor& loss) = 0;
  // Ends the exchange. `own`: how this rank's passes ended; unless kComplete, its gradients are dropped
  // already. Returns the worst status of all ranks, the same on each of them. If it is kComplete, each
  // parameter's .grad is the sum over ranks, where a rank without a gradient adds zeros, and a parameter
  // that has a gradient on no rank keeps none. Otherwise the gradients mean nothing, and the caller drops
  // them.
  [[nodiscard]] virtual SyncStatus finish(SyncStatus own) = 0;
};

// A plain sum in one collective, after the last backward pass; a world of one talks to nobody. `parameters`
// come in the same order on all ranks. The world must outlive the result.
[[nodiscard]] std::unique_ptr<GradSync> make_grad_sync(std::vector<at::Tensor> parameters, World& world);

}  // namespace gradstep

// StepReport: what one call of Engine::step did. Plain data, equal on all ranks but for num_micro_batches and
// first_non_finite.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gradstep {

// One module of a window that went wrong, in the order of the parameters.
struct ModuleNorms {
  std::string module{};  // "fc1"; "" is the root
  double forward = 0;    // 2-norm of what its ops gave, over the window's micro-batches
  double backward = 0;   // 2-norm of its parameters' gradients, unscaled
  int64_t num_bad = 0;   // values of either that are not finite
  bool operator==(const ModuleNorms&) const = default;
};

struct StepReport {
  int64_t window = 0;             // windows consumed so far, this one included: unique, from 1
  int64_t update = 0;             // updates applied so far, this one included unless skipped
  int64_t epoch = 0;              // from 0
  double loss = 0;                // mean over the window and all ranks, unscaled
  double lr = 0;                  // as used (on a skip: as it would have been used)
  double grad_norm = 0;           // global 2-norm, unscaled, before the clip
  double loss_scale = 1;          // as used
  bool skipped = false;           // not finite, a spike, or stepped over: nothing was changed
  std::string spike{};            // what was odd (SpikeDetector); empty: no spike
  bool diverged = false;          // this was one skip too many in a row: the run should end
  int64_t skipped_total = 0;      // skips so far, this one included
  int64_t samples = 0;            // of this window, over all ranks
  double divisor = 0;             // total weight of this window: samples, or target tokens that count
  int64_t num_micro_batches = 0;  // on this rank
  int64_t micro_batch = 0;        // samples, as used on this rank
  int64_t num_out_of_memory = 0;  // times the window was begun again with half the micro-batch
  // At the first skip of a row, and where diverged: op and parameter where it began, as far as this rank saw.
  std::string first_non_finite{};
  std::vector<ModuleNorms> modules{};  // at the first skip of a row that was not finite, as this rank saw it
};

}  // namespace gradstep

// Small sums over ranks.
#include "run/agreement.h"

#include <torch/torch.h>

#include "gradstep/base/error.h"

namespace gradstep {
Facts agree(Facts own, c10::Device device, World& world) {
  if (world.size() == 1) return own;
  // Rank 0's clock, limit and lost best (from 1, or 0), the number of failures, then each rank's reason to
  // stop, or 0.
  constexpr int64_t kReasons = 4;
  at::Tensor all = at::zeros({kReasons + world.size()}, at::kDouble);
  if (world.rank() == 0) {
    all[0] = own.seconds;
    all[1] = own.time_is_over ? 1.0 : 0.0;
    if (own.lost_best) all[2] = static_cast<double>(*own.lost_best + 1);
  }
  all[3] = own.failed ? 1.0 : 0.0;
  if (own.stop) all[kReasons + world.rank()] = static_cast<double>(*own.stop);
  all = all.to(device);
  world.all_reduce_sum(all);
  all = all.cpu();
  own.seconds = all[0].item<double>();
  own.time_is_over = all[1].item<double>() != 0;
  const auto lost = static_cast<int64_t>(all[2].item<double>());
  own.lost_best = lost > 0 ? std::optional(lost - 1) : std::nullopt;
  own.failed = all[3].item<double>() != 0;
  for (int64_t rank = 0; rank < world.size() && !own.stop; ++rank) {
    const double reason = all[kReasons + rank].item<double>();
    if (reason != 0) own.stop = static_cast<ExitCode>(static_cast<int>(reason));
  }
  return own;
}

}  // namespace gradstep

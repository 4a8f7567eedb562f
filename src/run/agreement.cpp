// One small sum over ranks.
#include "run/agreement.h"

#include <torch/torch.h>

namespace gradstep {

Facts agree(Facts own, c10::Device device, World& world) {
  if (world.size() == 1) return own;
  // Rank 0's clock and limit, then each rank's reason to stop, or 0.
  constexpr int64_t kReasons = 2;
  at::Tensor all = at::zeros({kReasons + world.size()}, at::kDouble);
  if (world.rank() == 0) {
    all[0] = own.seconds;
    all[1] = own.time_is_over ? 1.0 : 0.0;
  }
  if (own.stop) all[kReasons + world.rank()] = static_cast<double>(*own.stop);
  all = all.to(device);
  world.all_reduce_sum(all);
  all = all.cpu();
  own.seconds = all[0].item<double>();
  own.time_is_over = all[1].item<double>() != 0;
  for (int64_t rank = 0; rank < world.size() && !own.stop; ++rank) {
    const double reason = all[kReasons + rank].item<double>();
    if (reason != 0) own.stop = static_cast<ExitCode>(static_cast<int>(reason));
  }
  return own;
}

}  // namespace gradstep

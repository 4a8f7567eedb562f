// Small sums over ranks.
#include "run/agreement.h"

#include <torch/torch.h>

#include "gradstep/base/error.h"

namespace gradstep {
namespace {

// Gathers one number from each rank; every rank gets all of them.
std::vector<double> gather(double own, c10::Device device, World& world) {
  at::Tensor all = at::zeros({world.size()}, at::kDouble);
  all[world.rank()] = own;
  all = all.to(device);
  world.all_reduce_sum(all);
  all = all.cpu();
  const double* const begin = all.const_data_ptr<double>();
  return {begin, begin + all.numel()};
}

ExitCode code_of(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const Error& error) {
    return error.exit_code();
  } catch (...) {
    return ExitCode::kUnexpected;
  }
}

}  // namespace

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

void throw_together(const std::exception_ptr& own, c10::Device device, World& world) {
  if (world.size() > 1) {
    const std::vector<double> codes =
        gather(own ? static_cast<double>(static_cast<int>(code_of(own))) : 0, device, world);
    for (size_t rank = 0; rank < codes.size() && !own; ++rank) {
      if (codes[rank] == 0) continue;
      const auto code = static_cast<ExitCode>(static_cast<int>(codes[rank]));
      const std::string text =
          "rank " + std::to_string(rank) + " failed, and all ranks end with it; its own line says why";
      if (code == ExitCode::kDiverged) throw Diverged(text);
      throw Error(code, text);
    }
  }
  if (own) std::rethrow_exception(own);
}

}  // namespace gradstep

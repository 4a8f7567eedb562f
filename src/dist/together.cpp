// The exit codes of all ranks travel in one sum.
#include "dist/together.h"

#include "base/exit_code_of.h"
#include "dist/over_ranks.h"
#include "gradstep/base/error.h"

namespace gradstep {

void throw_together(const std::exception_ptr& own, c10::Device device, World& world) {
  if (world.size() > 1) {
    const double own_code = own ? static_cast<double>(static_cast<int>(exit_code_of(own))) : 0;
    const std::vector<double> codes = gather(own_code, device, world);
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

// Versions as the build system knew them.
#include "cli/version.h"

#include <torch/version.h>

namespace gradstep {

std::string gradstep_version() { return GRADSTEP_VERSION; }

std::string git_commit() {
#ifdef GRADSTEP_GIT_COMMIT
  return GRADSTEP_GIT_COMMIT;
#else
  return "";
#endif
}

std::string torch_version() { return TORCH_VERSION; }

}  // namespace gradstep

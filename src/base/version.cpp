// The version and commit that the build passes to this one file.
// no torch
#include "gradstep/base/version.h"

namespace gradstep {

std::string_view version() { return GRADSTEP_VERSION; }

std::string_view git_commit() { return GRADSTEP_GIT_COMMIT; }

}  // namespace gradstep

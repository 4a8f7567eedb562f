// The version as text, and the commit that the build passes to this one file.
// no torch
#include "gradstep/base/version.h"

#define GRADSTEP_TEXT_OF(value) #value
#define GRADSTEP_DOTTED(major, minor, patch) \
  GRADSTEP_TEXT_OF(major) "." GRADSTEP_TEXT_OF(minor) "." GRADSTEP_TEXT_OF(patch)

namespace gradstep {

std::string_view version() {
  return GRADSTEP_DOTTED(GRADSTEP_VERSION_MAJOR, GRADSTEP_VERSION_MINOR, GRADSTEP_VERSION_PATCH);
}

std::string_view git_commit() { return GRADSTEP_GIT_COMMIT; }

}  // namespace gradstep

// Setting: one setting of a run as text, and what a change of it means to a run that goes on.
#pragma once

#include <string>
#include <vector>

namespace gradstep {

/// What a changed value means for a run that goes on from a checkpoint.
enum class OnResume {
  kRefused,      ///< another run: only if drift is accepted
  kWarned,       ///< the run goes another way from here on
  kFree,         ///< the numbers stay as they are
  kNotCompared,  ///< judged by what follows from it (samples of an update, updates of the run), or of one
                 ///< start only
};

/// One setting of a run as text: checkpoints keep it, and a resume compares it.
struct Setting {
  std::string key;
  std::string text;
  OnResume on_resume = OnResume::kRefused;
  std::string default_text{};  ///< what a checkpoint that lacks the key was made with
};
using Settings = std::vector<Setting>;

}  // namespace gradstep

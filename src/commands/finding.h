// Finding: what one check of gradstep doctor has to say.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gradstep/base/error.h"

namespace gradstep {

enum class Grade {
  kOk,
  kWarning,  // runs work, but slower or less safely than they could
  kProblem,  // something is broken, or a run would be refused
};

struct Finding {
  Grade grade = Grade::kOk;
  std::string name{};  // of the check: "memory"
  std::string text{};  // one line: what is found and, unless all is well, what to do
  // Of a problem: as of a run that fails for this reason.
  ExitCode exit_code = ExitCode::kOk;
  bool operator==(const Finding&) const = default;
};

// Where checks put their findings, in order.
using Tell = std::function<void(Finding)>;

[[nodiscard]] Finding fine(const std::string& name, const std::string& text);
[[nodiscard]] Finding warning(const std::string& name, const std::string& text);
[[nodiscard]] Finding problem(const std::string& name, const std::string& text, ExitCode code);
// The exception that is being handled, as a problem.
[[nodiscard]] Finding failed(const std::string& name);

// "ok", "warning", "problem"
[[nodiscard]] std::string to_string(Grade grade);
// "problem  lock         <text>\n": aligned, one line whatever is in the text.
[[nodiscard]] std::string line_of(const Finding& finding);
// "all is well", or "2 problems, 1 warning".
[[nodiscard]] std::string verdict(const std::vector<Finding>& findings);
// 0: all is well. 1: there are warnings alone. Else the code of the first problem.
[[nodiscard]] int exit_code_of(const std::vector<Finding>& findings);

}  // namespace gradstep

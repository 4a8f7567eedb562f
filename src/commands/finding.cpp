// no torch
// Findings as lines, and what they come to.
#include "commands/finding.h"

#include <algorithm>
#include <stdexcept>

#include "commands/failure.h"
#include "commands/spell_flags.h"

namespace gradstep {
namespace {

std::string padded(std::string text, size_t width) {
  text.resize(std::max(width, text.size() + 1), ' ');
  return text;
}

std::string count(int64_t number, const std::string& what) {
  return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
}

}  // namespace

Finding fine(const std::string& name, const std::string& text) { return {Grade::kOk, name, text}; }
Finding warning(const std::string& name, const std::string& text) { return {Grade::kWarning, name, text}; }
Finding problem(const std::string& name, const std::string& text, ExitCode code) {
  return {Grade::kProblem, name, text, code};
}

Finding failed(const std::string& name) {
  const Failure failure = describe_failure(std::current_exception());
  return problem(name, failure.line, static_cast<ExitCode>(failure.exit_code));
}

std::string to_string(Grade grade) {
  switch (grade) {
    case Grade::kOk:
      return "ok";
    case Grade::kWarning:
      return "warning";
    case Grade::kProblem:
      return "problem";
  }
  throw std::logic_error("no such grade");
}

std::string line_of(const Finding& finding) {
  return padded(to_string(finding.grade), 9) + padded(finding.name, 13) +
         printable(spell_flags(finding.text)) + "\n";
}

std::string verdict(const std::vector<Finding>& findings) {
  const auto problems = std::ranges::count(findings, Grade::kProblem, &Finding::grade);
  const auto warnings = std::ranges::count(findings, Grade::kWarning, &Finding::grade);
  if (problems + warnings == 0) return "all is well";
  return count(problems, "problem") + ", " + count(warnings, "warning");
}

int exit_code_of(const std::vector<Finding>& findings) {
  const auto first = std::ranges::find(findings, Grade::kProblem, &Finding::grade);
  if (first != findings.end()) return static_cast<int>(first->exit_code);
  const bool warned = std::ranges::find(findings, Grade::kWarning, &Finding::grade) != findings.end();
  return static_cast<int>(warned ? ExitCode::kUnexpected : ExitCode::kOk);
}

}  // namespace gradstep

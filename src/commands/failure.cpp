// Words exceptions, those of LibTorch included; base/exit_code_of.h has their codes.
#include "commands/failure.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/error_text.h"
#include "base/exit_code_of.h"
#include "base/utf8.h"
#include "gradstep/base/error.h"

namespace gradstep {
namespace {

constexpr const char* kOutOfMemoryText =
    "out of memory; free some, raise --memory-limit, lower --batch-size (and raise --grad-accum-steps to "
    "keep the update as it is), or take smaller data or a smaller model";

std::string cure(const std::error_code& code) {
  switch (code.value()) {
    case ENOSPC:
    case EDQUOT:
      return "; free some space there or give a folder on another disk";
    case EACCES:
    case EPERM:
    case EROFS:
      return "; give a folder that you may write to";
    default:
      return "";
  }
}

std::string line_of(const std::exception_ptr& exception, ExitCode code) {
  try {
    std::rethrow_exception(exception);
  } catch (const Error& error) {
    return printable(error.what());
  } catch (const std::exception& error) {
    if (code == ExitCode::kOutOfMemory) return kOutOfMemoryText;
    if (const auto* system_error = dynamic_cast<const std::system_error*>(&error)) {
      return code == ExitCode::kCheckpoint ? printable(error.what()) + cure(system_error->code())
                                           : printable(one_line(error));
    }
    const bool of_torch = dynamic_cast<const c10::Error*>(&error) != nullptr;
    return (of_torch ? "unexpected error in LibTorch: " : "unexpected error: ") + printable(one_line(error));
  } catch (...) {
    return "unexpected error of an unknown kind";
  }
}

}  // namespace

// Texts of the user, such as paths, may hold anything. Control characters would cut our own line or colour
// it.
std::string printable(const std::string& raw) {
  std::string text = to_utf8(raw);
  std::ranges::replace_if(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  constexpr size_t kMostBytes = 8192;  // two of the longest paths
  return shortened(text, kMostBytes);
}

Failure describe_failure(const std::exception_ptr& exception) {
  const ExitCode code = exit_code_of(exception);
  return {line_of(exception, code), static_cast<int>(code)};
}

}  // namespace gradstep

// Sorts exceptions, those of LibTorch included, into lines and exit codes.
#include "app/failure.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>

#include "base/error_text.h"
#include "base/exit_code_of.h"
#include "base/out_of_memory.h"
#include "base/utf8.h"
#include "gradstep/base/error.h"

namespace gradstep {
namespace {

// Texts of the user, such as paths, may hold control characters, which would cut our own line or colour it,
// and bytes that are not UTF-8.
std::string printable(const std::string& raw) {
  std::string text = to_utf8(raw);
  std::ranges::replace_if(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return text;
}

// An error of the user's own may carry any code. None leaves with 0, or with a code outside the table.
int failing_code(ExitCode code) {
  switch (code) {
    case ExitCode::kUsage:
    case ExitCode::kDiverged:
    case ExitCode::kCheckpoint:
    case ExitCode::kData:
    case ExitCode::kOutOfMemory:
    case ExitCode::kSigint:
    case ExitCode::kSigusr1:
    case ExitCode::kSigterm:
      return static_cast<int>(code);
    case ExitCode::kOk:
    case ExitCode::kUnexpected:
      break;
  }
  return static_cast<int>(ExitCode::kUnexpected);
}

Failure out_of_memory() {
  return {
      "out of memory; free some, raise --memory-limit, lower --batch-size (and raise --grad-accum-steps to "
      "keep the update as it is), or take smaller data or a smaller model",
      static_cast<int>(ExitCode::kOutOfMemory)};
}

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

Failure describe_system_error(const std::system_error& error) {
  if (error.code() == std::errc::not_enough_memory) return out_of_memory();
  if (!is_about_files(error.code()))
    return {printable(one_line(error)), static_cast<int>(ExitCode::kUnexpected)};
  return {printable(error.what()) + cure(error.code()), static_cast<int>(ExitCode::kCheckpoint)};
}

Failure describe_torch_error(const c10::Error& error) {
  if (is_out_of_memory(error)) return out_of_memory();
  return {"unexpected error in LibTorch: " + printable(one_line(error)),
          static_cast<int>(ExitCode::kUnexpected)};
}

}  // namespace

Failure describe_failure(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const Error& error) {
    return {printable(error.what()), failing_code(error.exit_code())};
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const c10::Error& error) {
    return describe_torch_error(error);
  } catch (const std::system_error& error) {
    return describe_system_error(error);
  } catch (const std::exception& error) {
    return {"unexpected error: " + printable(one_line(error)), static_cast<int>(ExitCode::kUnexpected)};
  } catch (...) {
    return {"unexpected error of an unknown kind", static_cast<int>(ExitCode::kUnexpected)};
  }
}

}  // namespace gradstep

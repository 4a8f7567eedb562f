// What each kind of exception means to the user: one line and the exit code of the table.
#include "commands/failure.h"

#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <system_error>

#include "gradstep/base/error.h"

namespace gradstep {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

template <class Exception>
Failure failure_of(const Exception& exception) {
  Failure failure = describe_failure(std::make_exception_ptr(exception));
  EXPECT_EQ(failure.line.find('\n'), std::string::npos) << failure.line;
  return failure;
}

std::system_error system_error(int code) {
  return {code, std::generic_category(), "cannot write runs/a/metrics.jsonl"};
}

TEST(Failure, OurErrorsSpeakForThemselves) {
  EXPECT_EQ(failure_of(ConfigError("a")).exit_code, 2);
  EXPECT_EQ(failure_of(Diverged("a")).exit_code, 3);
  EXPECT_EQ(failure_of(CheckpointError("a")).exit_code, 4);
  EXPECT_EQ(failure_of(DataError("file x: broken")).exit_code, 5);
  EXPECT_EQ(failure_of(DataError("file x: broken")).line, "file x: broken");
}

TEST(Failure, NoErrorLeavesWithZeroOrACodeOutsideTheTable) {
  EXPECT_EQ(failure_of(Error(ExitCode::kOk, "a")).exit_code, 1);
  EXPECT_EQ(failure_of(Error(static_cast<ExitCode>(300), "a")).exit_code, 1);
  EXPECT_EQ(failure_of(Error(ExitCode::kSigterm, "a")).exit_code, 143);
}

TEST(Failure, ControlCharactersOfAPathDoNotCutTheLine) {
  EXPECT_EQ(failure_of(ConfigError("folder a\nb\r\x1b[31m: in use; choose another")).line,
            "folder a?b??[31m: in use; choose another");
  EXPECT_EQ(failure_of(std::runtime_error("a\x1b[31m \xff")).line, "unexpected error: a?[31m \xEF\xBF\xBD");
}

TEST(Failure, OutOfMemoryOfEachKindIsSix) {
  EXPECT_EQ(failure_of(std::bad_alloc()).exit_code, 6);
  EXPECT_EQ(failure_of(system_error(ENOMEM)).exit_code, 6);
  const c10::SourceLocation where{"f", "file.cpp", 1};
  EXPECT_EQ(failure_of(c10::OutOfMemoryError(where, "CUDA out of memory. Tried to allocate")).exit_code, 6);
  const Failure cpu = failure_of(c10::Error(
      where,
      "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried"));
  EXPECT_EQ(cpu.exit_code, 6);
  EXPECT_THAT(cpu.line,
              AllOf(HasSubstr("out of memory"), HasSubstr("--batch-size"), Not(HasSubstr("alloc_cpu"))));
}

TEST(Failure, ADiskThatIsFullIsFourWithPathAndCure) {
  const Failure full = failure_of(system_error(ENOSPC));
  EXPECT_EQ(full.exit_code, 4);
  EXPECT_THAT(full.line, AllOf(HasSubstr("runs/a/metrics.jsonl"), HasSubstr("No space left"),
                               HasSubstr("free some space")));
  EXPECT_THAT(failure_of(system_error(EACCES)).line, HasSubstr("a folder that you may write to"));
  EXPECT_EQ(failure_of(system_error(EIO)).exit_code, 4);
  EXPECT_EQ(failure_of(system_error(EAGAIN)).exit_code, 1);
}

TEST(Failure, LibTorchErrorsLoseTheirBacktrace) {
  const c10::Error error({"f", "file.cpp", 1}, "mat1 and mat2 shapes cannot be multiplied\nsecond line");
  const Failure failure = failure_of(error);
  EXPECT_EQ(failure.exit_code, 1);
  EXPECT_THAT(failure.line,
              AllOf(HasSubstr("mat1 and mat2"), Not(HasSubstr("second line")), Not(HasSubstr("frame #"))));
}

TEST(Failure, EverythingElseIsOne) {
  EXPECT_EQ(failure_of(std::logic_error("a\nb")).line, "unexpected error: a b");
  EXPECT_EQ(failure_of(std::logic_error("a")).exit_code, 1);
  EXPECT_EQ(failure_of(42).exit_code, 1);
}

}  // namespace
}  // namespace gradstep

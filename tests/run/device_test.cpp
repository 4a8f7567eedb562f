// configure_process: a faulty option is refused before anything of the process changes.
#include "run/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "gradstep/base/error.h"
#include "support/message_of.h"

namespace gradstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ConfigureProcess, RefusesADeviceThatIsNone) {
  for (const char* device : {"gpu", "meta", "mps", "cuda:x", "cuda:-1", "cpu:0", ""}) {
    EXPECT_THAT(message_of<ConfigError>([&] { (void)configure_process({.device = device}); }),
                AllOf(HasSubstr("`device` "), HasSubstr("must be auto, cpu, cuda or cuda:N")))
        << device;
  }
}

TEST(ConfigureProcess, RefusesANumberOfThreadsThatIsNone) {
  for (const int64_t threads : {-1, 4097}) {
    EXPECT_THAT(
        message_of<ConfigError>([&] { (void)configure_process({.device = "cpu", .threads = threads}); }),
        AllOf(HasSubstr("`threads` "), HasSubstr("must be 0 (chosen) to 4096")));
  }
}

TEST(ConfigureProcess, RefusesAMemoryLimitThatIsNone) {
  const int threads = at::get_num_threads();
  for (const char* limit : {"8gb", "lots", "-1", ""}) {
    const ProcessOptions options{.device = "cpu", .threads = threads + 1, .memory_limit = limit};
    EXPECT_THAT(message_of<ConfigError>([&] { (void)configure_process(options); }),
                AllOf(HasSubstr("`memory_limit` "), HasSubstr("must be auto, none, or bytes")))
        << limit;
  }
  EXPECT_EQ(at::get_num_threads(), threads);
}

}  // namespace
}  // namespace gradstep::testing

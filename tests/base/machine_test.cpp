// What the machine gives: quotas of made-up cgroup folders (case L5), memory and the processor's names.
// no torch
#include "base/machine.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "support/scratch_dir.h"

namespace gradstep {
namespace {

using testing::ScratchDir;

// A cgroup tree, a file that says where in it the process is, and what follows for cores and memory.
class Cgroup : public ::testing::Test {
 protected:
  void put(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(dir_.file(name)).parent_path());
    dir_.write(name, text);
  }
  void belong(const std::string& lines) { dir_.write("membership", lines); }
  int64_t cores() { return num_usable_cores(dir_.path(), dir_.file("membership")); }
  int64_t memory() { return free_memory_bytes(dir_.path(), dir_.file("membership")).value(); }
  ScratchDir dir_;
};

// Independent of the code under test: the mask as the C library shows it.
int64_t cores_of_the_mask() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  EXPECT_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
  return CPU_COUNT(&mask);
}

// The affinity mask of one test, given back afterwards: quotas above one core show only where the machine has
// more.
class AffinityGuard {
 public:
  AffinityGuard() { EXPECT_EQ(sched_getaffinity(0, sizeof former_, &former_), 0); }
  ~AffinityGuard() { sched_setaffinity(0, sizeof former_, &former_); }
  AffinityGuard(const AffinityGuard&) = delete;
  AffinityGuard& operator=(const AffinityGuard&) = delete;
  void keep_one() {
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &former_)) {
        CPU_SET(cpu, &one);
        break;
      }
    }
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  }

 private:
  cpu_set_t former_{};
};

TEST_F(Cgroup, WithoutFilesTheAffinityMaskCounts) {
  EXPECT_EQ(cores(), cores_of_the_mask());
  AffinityGuard affinity;
  affinity.keep_one();
  EXPECT_EQ(cores(), 1);
}

TEST_F(Cgroup, L5_QuotaOfVersionTwo) {
  put("cpu.max", "200000 100000\n");
  EXPECT_EQ(cores(), std::min<int64_t>(2, cores_of_the_mask()));
  put("cpu.max", "100000 100000\n");
  EXPECT_EQ(cores(), 1);
  put("cpu.max", "50000 100000\n");  // half a core is still one thread
  EXPECT_EQ(cores(), 1);
  put("cpu.max", "150000 100000\n");  // rounded up
  EXPECT_EQ(cores(), std::min<int64_t>(2, cores_of_the_mask()));
}

TEST_F(Cgroup, L5_QuotaOfVersionOne) {
  put("cpu/cpu.cfs_quota_us", "100000\n");
  put("cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cores(), 1);
  put("cpu/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(cores(), cores_of_the_mask());
}

TEST_F(Cgroup, NoLimitIsTheMask) {
  put("cpu.max", "max 100000\n");
  EXPECT_EQ(cores(), cores_of_the_mask());
}

TEST_F(Cgroup, NonsenseCountsAsAbsent) {
  for (const char* text : {"", "\n", "words and more\n", "0 100000\n", "-5 100000\n", "100000 0\n",
                           "100000\n", "100000 x\n", "99999999999999999999999999 1\n"}) {
    put("cpu.max", text);
    EXPECT_EQ(cores(), cores_of_the_mask()) << text;
  }
}

TEST_F(Cgroup, L5_QuotaOfAGroupOrOfOneAboveIt) {
  belong("0::/user/job\n");
  put("cpu.max", "max 100000\n");
  put("user/job/cpu.max", "100000 100000\n");
  EXPECT_EQ(cores(), 1);
  put("user/job/cpu.max", "max 100000\n");
  EXPECT_EQ(cores(), cores_of_the_mask());
  put("user/cpu.max", "100000 100000\n");  // the tightest on the way down
  EXPECT_EQ(cores(), 1);
}

TEST_F(Cgroup, GroupsOfOthersDoNotCount) {
  belong("0::/user/job\n");
  put("user/other/cpu.max", "100000 100000\n");
  put("job/cpu.max", "100000 100000\n");
  EXPECT_EQ(cores(), cores_of_the_mask());
}

TEST_F(Cgroup, L5_NestedGroupOfVersionOne) {
  belong("12:memory:/elsewhere\n4:cpu,cpuacct:/docker/abc\n1:cpuset:/\n0::/\n");
  put("cpu/docker/abc/cpu.cfs_quota_us", "100000\n");
  put("cpu/docker/abc/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cores(), 1);
}

TEST_F(Cgroup, R38_MemoryOfTheTightestLimit) {
  const int64_t machine = memory();
  EXPECT_GT(machine, int64_t{64} << 20);
  put("memory.max", "max\n");
  EXPECT_GT(memory(), int64_t{64} << 20);
  belong("0::/job\n");
  put("job/memory.max", "50000000\n");
  put("job/memory.current", "20000000\n");
  EXPECT_EQ(memory(), 30'000'000);
  // R38: cached files are dropped when their memory is needed.
  put("job/memory.stat", "anon 1000\ninactive_file 15000000\nactive_file 2\n");
  EXPECT_EQ(memory(), 45'000'000);
  put("job/memory.stat", "inactive_file 99000000\n");
  EXPECT_EQ(memory(), 50'000'000);
  put("job/memory.stat", "");
  put("job/memory.current", "60000000\n");  // over it, for a moment
  EXPECT_EQ(memory(), 0);
}

TEST_F(Cgroup, R38_MemoryOfVersionOne) {
  put("memory/memory.limit_in_bytes", "9223372036854771712\n");  // how version 1 writes "none"
  put("memory/memory.usage_in_bytes", "1000\n");
  EXPECT_GT(memory(), int64_t{64} << 20);
  belong("4:memory:/job\n");
  put("memory/job/memory.limit_in_bytes", "3000\n");
  put("memory/job/memory.usage_in_bytes", "1000\n");
  EXPECT_EQ(memory(), 2000);
  put("memory/job/memory.stat", "inactive_file 1\ntotal_inactive_file 400\n");
  EXPECT_EQ(memory(), 2400);
}

TEST_F(Cgroup, R55_ThrottledTimeOfBothVersions) {
  const auto throttled = [&] { return cpu_pressure(dir_.path(), dir_.file("membership")).throttled_seconds; };
  EXPECT_EQ(throttled(), 0);
  belong("0::/job\n4:cpu,cpuacct:/other\n");
  put("job/cpu.stat", "usage_usec 900\nnr_throttled 3\nthrottled_usec 1500000\n");
  EXPECT_EQ(throttled(), 1.5);
  put("cpu/other/cpu.stat", "nr_periods 1\nthrottled_time 250000000\n");
  EXPECT_EQ(throttled(), 1.75);
}

TEST(Machine, R55_ThreadsThatWantACoreAreSeen) {
  EXPECT_GE(cpu_pressure().num_runnable, 1);
  EXPECT_GE(cpu_pressure().preemptions, 0);
}

TEST_F(Cgroup, TheLimitItself) {
  const auto total = [&] { return total_memory(dir_.path(), dir_.file("membership")).value(); };
  const int64_t machine = total().bytes;
  EXPECT_GE(machine, memory());
  EXPECT_FALSE(total().of_cgroup);
  belong("0::/job\n4:memory:/old\n");
  put("job/memory.max", "50000000\n");
  EXPECT_EQ(total().bytes, 50'000'000);
  EXPECT_TRUE(total().of_cgroup);
  put("memory/old/memory.limit_in_bytes", "40000000\n");
  EXPECT_EQ(total().bytes, 40'000'000);
  put("job/memory.max", "max\n");
  put("memory/old/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(total().bytes, machine);
  EXPECT_FALSE(total().of_cgroup);
}

TEST_F(Cgroup, TheQuotaItselfAndHowOftenItHeldBack) {
  const auto quota = [&] { return cgroup_quota_cores(dir_.path(), dir_.file("membership")); };
  const auto throttling = [&] { return cgroup_throttling(dir_.path(), dir_.file("membership")); };
  EXPECT_TRUE(std::isinf(quota()));
  EXPECT_EQ(throttling().periods, 0);
  belong("0::/job\n4:cpu,cpuacct:/old\n");
  put("job/cpu.max", "150000 100000\n");
  EXPECT_EQ(quota(), 1.5);
  put("cpu.stat", "usage_usec 1\nnr_periods 9\nnr_throttled 1\nthrottled_usec 5\n");
  put("job/cpu.stat", "nr_periods 50\nnr_throttled 20\n");
  EXPECT_EQ(throttling().periods, 50);
  EXPECT_EQ(throttling().throttled, 20);
  put("cpu/old/cpu.stat", "nr_periods 70\nnr_throttled 30\nthrottled_time 1\n");
  EXPECT_EQ(throttling().periods, 70);
  EXPECT_EQ(throttling().throttled, 30);
}

TEST(Machine, ResidentMemoryFollowsWhatIsTouched) {
  const int64_t before = resident_bytes();
  EXPECT_GT(before, int64_t{1} << 20);
  constexpr size_t kBytes = size_t{64} << 20;
  const std::vector<char> block(kBytes, 'x');
  EXPECT_GT(resident_bytes() - before, static_cast<int64_t>(kBytes * 9 / 10)) << block[kBytes - 1];
}

TEST(Machine, TheProcessorHasANameAndKnownFeatures) {
  EXPECT_FALSE(processor_name().empty());
  EXPECT_EQ(processor_name().find('\n'), std::string::npos);
  for (const std::string& feature : processor_features()) {
    EXPECT_EQ(feature.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_"), std::string::npos)
        << feature;
  }
}

}  // namespace
}  // namespace gradstep

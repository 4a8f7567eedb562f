// gradstep doctor on machines that a test makes up, and on this one.
#include "commands/doctor_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/memory_limit.h"
#include "commands/doctor_disk.h"
#include "support/gradstep_program.h"
#include "support/scratch_dir.h"

namespace gradstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

MachineFacts good_machine() {
  return {.processor = "Some CPU",
          .features = {"avx2", "fma"},
          .kernels = "AVX2",
          .onednn = true,
          .free_memory = 12'300'000'000,
          .memory = MemoryTotal{.bytes = 16'000'000'000, .of_cgroup = true},
          .affinity_cores = 8,
          .online_cores = 16,
          .load = 0.5,
          .busy_cores = 0.3,
          .max_open_files = 1024};
}

// What is said under `name` after a change of the good machine.
Finding finding_of(const std::string& name, const std::function<void(MachineFacts&)>& change,
                   bool run_goes_on = false) {
  MachineFacts facts = good_machine();
  change(facts);
  std::vector<Finding> found;
  examine_machine(facts, run_goes_on, [&](Finding each) { found.push_back(std::move(each)); });
  Finding wanted;
  for (const Finding& each : found) {
    if (each.name == name) {
      wanted = each;
    } else {
      EXPECT_EQ(each.grade, Grade::kOk) << each.name << ": " << each.text;
    }
  }
  EXPECT_EQ(wanted.name, name);
  return wanted;
}

struct Case {
  const char* name;
  Grade grade;
  std::function<void(MachineFacts&)> change;
  const char* text;
};

TEST(DoctorMachine, JudgesEachFact) {
  const auto nothing = [](MachineFacts&) {};
  const std::vector<Case> cases{
      {"processor", Grade::kOk, nothing, "Some CPU (avx2 fma)"},
      {"kernels", Grade::kOk, nothing, "libtorch uses AVX2, oneDNN is there"},
      {"kernels", Grade::kWarning, [](auto& f) { f.has_default_kernels = true; }, "with AVX2"},
      {"kernels", Grade::kWarning,
       [](auto& f) {
         f.has_default_kernels = true;
         f.asked_kernels = "default";
       },
       "unset ATEN_CPU_CAPABILITY"},
      {"devices", Grade::kOk, [](auto& f) { f.num_gpus = 2; }, "cpu and 2 CUDA"},
      {"devices", Grade::kOk, [](auto& f) { f.has_gpu_driver = true; }, "does not see the NVIDIA card"},
      {"memory", Grade::kOk, nothing, "12.3 GB free of 16.0 GB (cgroup)"},
      {"memory", Grade::kWarning, [](auto& f) { f.free_memory = 900'000'000; },
       "raise the limit of the container"},
      {"memory", Grade::kWarning, [](auto& f) { f.free_memory.reset(); }, "not known"},
      {"threads", Grade::kOk, nothing, "8 cores of 16 may be used (affinity 8, quota none)"},
      {"threads", Grade::kOk,
       [](auto& f) {
         f.quota_cores = 2.5;
         f.throttling = {.periods = 1000, .throttled = 20};
       },
       "3 cores of 16 may be used (affinity 8, quota 2.5); the quota held back in 20 of 1,000 periods"},
      {"threads", Grade::kOk, [](auto& f) { f.omp_num_threads = "8,2"; }, "OMP_NUM_THREADS is 8,2"},
      {"threads", Grade::kWarning, [](auto& f) { f.omp_num_threads = "9"; }, "set it to 8"},
      {"threads", Grade::kWarning,
       [](auto& f) {
         f.omp_num_threads = "4";
         f.quota_cores = 2;
       },
       "set it to 2"},
      {"threads", Grade::kWarning, [](auto& f) { f.omp_num_threads = "many"; }, "no number of threads"},
      {"threads", Grade::kProblem, [](auto& f) { f.threads_error = "needs 7 threads"; }, "needs 7 threads"},
      {"load", Grade::kOk, nothing, "0.5 in the last minute, 0.3 now, on 16 cores"},
      {"limits", Grade::kOk, nothing, "open files 1,024, size of a file none, address space none"},
      {"limits", Grade::kWarning, [](auto& f) { f.max_open_files = 100; }, "ulimit -n"},
      {"limits", Grade::kWarning, [](auto& f) { f.max_file_bytes = 1000; }, "size of a file 1.0 kB, "},
      {"limits", Grade::kWarning, [](auto& f) { f.max_address_bytes = 1 << 30; }, "ulimit -v"},
      {"clock", Grade::kOk, nothing, "2026"},
      {"clock", Grade::kWarning, [](auto& f) { f.year = 1970; }, "set it"},
      {"clock", Grade::kWarning, [](auto& f) { f.clock_goes_back = true; }, "went back"}};
  for (const Case& each : cases) {
    const Finding found = finding_of(each.name, each.change);
    EXPECT_EQ(found.grade, each.grade) << each.name << ": " << found.text;
    EXPECT_THAT(found.text, HasSubstr(each.text));
  }
}

// A run that has just ended is still in the load of the minute; a short burst is no load.
TEST(DoctorMachine, WarnsOfALoadOnlyWhileItLasts) {
  const auto load = [](double minute, std::optional<double> now) {
    return [=](MachineFacts& facts) {
      facts.load = minute;
      facts.busy_cores = now;
    };
  };
  // 16 cores, of which we may use 8: 12 of others leave us half of ours.
  EXPECT_EQ(finding_of("load", load(12, 12)).grade, Grade::kOk);
  EXPECT_EQ(finding_of("load", load(12.5, 1)).grade, Grade::kOk);
  EXPECT_EQ(finding_of("load", load(1, 15)).grade, Grade::kOk);
  EXPECT_EQ(finding_of("load", load(12.5, 13)).grade, Grade::kWarning);
  EXPECT_EQ(finding_of("load", load(12.5, std::nullopt)).grade, Grade::kWarning);
  const Finding own = finding_of("load", load(20, 16), /*run_goes_on=*/true);
  EXPECT_EQ(own.grade, Grade::kOk);
  EXPECT_THAT(own.text, HasSubstr("the run itself included"));
}

TEST(DoctorMachine, KnowsThisOne) {
  const MachineFacts facts = machine_facts();
  limit_tensor_memory(0);
  EXPECT_FALSE(facts.processor.empty());
  EXPECT_FALSE(facts.kernels.empty());
  EXPECT_GT(facts.free_memory.value(), 0);
  EXPECT_GE(facts.memory.value().bytes, facts.free_memory.value());
  EXPECT_GE(facts.affinity_cores, 1);
  EXPECT_GE(facts.online_cores, facts.affinity_cores);
  EXPECT_GT(facts.max_open_files, 0U);
  EXPECT_GE(facts.year, 2024);
  EXPECT_FALSE(facts.clock_goes_back);
  EXPECT_EQ(facts.threads_error, "");
}

TEST(DoctorVerdict, CountsAndCodes) {
  const Finding ok = fine("memory", "1 GB free");
  const Finding warned = warning("disk", "in memory");
  const Finding data = problem("data", "gone", ExitCode::kData);
  const Finding lock = problem("lock", "a link", ExitCode::kUsage);
  EXPECT_EQ(verdict({ok}), "all is well");
  EXPECT_EQ(exit_code_of({ok}), 0);
  EXPECT_EQ(verdict({ok, warned}), "0 problems, 1 warning");
  EXPECT_EQ(exit_code_of({ok, warned}), 1);
  EXPECT_EQ(verdict({warned, data, lock, warned}), "2 problems, 2 warnings");
  EXPECT_EQ(exit_code_of({warned, data, lock}), 5);
  EXPECT_EQ(exit_code_of({lock, data}), 2);
  EXPECT_EQ(line_of(ok), "ok       memory       1 GB free\n");
  EXPECT_EQ(line_of(problem("data", "a\nb\x1b[31m; give `data_dir`", ExitCode::kData)),
            "problem  data         a?b?[31m; give --data-dir\n");
}

TEST(DoctorDisk, JudgesEachFact) {
  const DiskFacts good{.folder = "/runs", .type = 0xEF53, .free_bytes = 5'000'000'000, .needed_bytes = 1000};
  const auto with = [&](const std::function<void(DiskFacts&)>& change) {
    DiskFacts facts = good;
    change(facts);
    return examine_disk(facts);
  };
  const auto grade = [&](const std::function<void(DiskFacts&)>& change) { return with(change).grade; };
  EXPECT_EQ(examine_disk(good), fine("disk", "/runs: ext4, 5.0 GB free, locks and syncs work"));
  EXPECT_EQ(grade([](auto& f) { f.type = 0x01021994; }), Grade::kWarning);
  EXPECT_THAT(with([](auto& f) { f.type = 0x01021994; }).text,
              AllOf(HasSubstr("tmpfs"), HasSubstr("reboot")));
  EXPECT_EQ(with([](auto& f) { f.type = 0x6969; }).grade, Grade::kOk);
  EXPECT_THAT(with([](auto& f) { f.type = 0x6969; }).text, HasSubstr("nfs, 5.0 GB free, a network disk"));
  EXPECT_THAT(with([](auto& f) { f.type = 1; }).text, HasSubstr("not known here"));
  EXPECT_EQ(grade([](auto& f) { f.free_bytes = 999; }), Grade::kProblem);
  EXPECT_THAT(with([](auto& f) { f.free_bytes = 999; }).text, HasSubstr("needs 1.0 kB"));
  EXPECT_EQ(grade([](auto& f) { f.free_bytes = 999'999'999; }), Grade::kWarning);
  EXPECT_EQ(grade([](auto& f) { f.lock_error = "No locks available"; }), Grade::kWarning);
  EXPECT_EQ(grade([](auto& f) { f.sync_error = "No space left"; }), Grade::kProblem);
  EXPECT_EQ(grade([](auto& f) { f.sync_seconds = 2; }), Grade::kWarning);
}

TEST(DoctorDisk, TriesAFileThatIsGoneAfterwards) {
  const ScratchDir scratch;
  const DiskFacts facts = disk_facts(scratch.path(), scratch.path());
  EXPECT_EQ(facts.lock_error + facts.sync_error + facts.not_tried, "");
  EXPECT_GT(facts.free_bytes, 0U);
  EXPECT_GT(facts.sync_seconds, 0);
  EXPECT_EQ(scratch.num_entries(), 0);
  EXPECT_THAT(disk_facts(scratch.path(), "/proc").not_tried, HasSubstr("not tried"));
  EXPECT_THROW((void)disk_facts(scratch.file("absent"), ""), std::system_error);
}

TEST(DoctorDisk, OfARunLeavesTheRunAlone) {
  const ScratchDir scratch;
  const std::string run = scratch.file("run");
  std::filesystem::create_directory(run);
  const auto before = std::filesystem::last_write_time(run);
  std::vector<Finding> found;
  examine_disks(run, [&](Finding each) { found.push_back(std::move(each)); });
  ASSERT_EQ(found.size(), 1U);
  EXPECT_THAT(found[0].text, AllOf(HasSubstr(run + ": "), Not(HasSubstr("not tried"))));
  EXPECT_EQ(std::filesystem::last_write_time(run), before);
}

}  // namespace
}  // namespace gradstep::testing

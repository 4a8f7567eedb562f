// Two ranks in threads do the same about a bad window, a save that failed and a best model that is lost.
// Ranks that do not act alike fail the test in thread_world.h.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <future>
#include <thread>

#include "gradstep/gradstep.h"
#include "incident/black_box.h"
#include "support/hooked_file_system.h"
#include "support/ranked_run.h"
#include "support/saves.h"

namespace gradstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Rank = RankedRun::Rank;

// The first of rank 1's samples of window 4. Rank 0's are sound.
constexpr int64_t kBadSample = 14;

// A run that goes back to its checkpoint of update 2 when window 4 is not finite.
void roll_back_at_window_4(RankedRun& run) {
  run.inputs[kBadSample].fill_(NAN);
  run.job.trouble.on_not_finite = Reaction::kRollBack;
}

TEST(TrainerRanks, ABadShareOfOneSendsBothBack) {
  RankedRun one(1);
  roll_back_at_window_4(one);
  one.run();
  RankedRun two;
  roll_back_at_window_4(two);
  two.run();
  expect_same_ends(two);
  EXPECT_EQ(first_difference(two.newest(), of_two(one.newest())), "");
  EXPECT_EQ(two.newest().num_rollbacks, 1);
  std::vector<int64_t> windows;
  for (const WindowRow& row : two.ranks[0]->sink.windows) windows.push_back(row.step.window);
  EXPECT_THAT(windows, ElementsAre(1, 2, 3, 4, 3, 4, 5, 6));
  ASSERT_THAT(two.events<RolledBack>(), SizeIs(1));
  EXPECT_EQ(two.events<RolledBack>()[0].to, checkpoints_dir(two.out.path()) + "/" + checkpoint_name(2));
}

// The checkpoint is broken as soon as it is in its place.
TEST(TrainerRanks, ABrokenCheckpointToGoBackToEndsBoth) {
  RankedRun run;
  roll_back_at_window_4(run);
  HookedFileSystem disk(posix_file_system(), [&](const std::string& what, const std::string& path) {
    const std::string model = "checkpoints/" + checkpoint_name(2) + "/model.safetensors";
    if (what == "sync folder" && path.ends_with("/checkpoints") &&
        std::filesystem::exists(run.out.file(model)))
      run.out.write(model, "broken");
  });
  run.disk = &disk;
  run.run();
  expect_same_errors(run, ExitCode::kCheckpoint);
  for (const auto& rank : run.ranks) EXPECT_THAT(rank->error, HasSubstr(checkpoint_name(2)));
}

TEST(TrainerRanks, WithoutACheckpointToGoBackToBothEnd) {
  RankedRun run;
  roll_back_at_window_4(run);
  run.job.save.interval = {};
  run.run();
  expect_same_errors(run, ExitCode::kDiverged);
  for (const auto& rank : run.ranks) EXPECT_THAT(rank->error, HasSubstr("there is no checkpoint"));
}

// Rank 1 looks into a folder of its own: it has none, or one of another update.
TEST(TrainerRanks, ACheckpointThatOneCannotSeeEndsBoth) {
  for (const std::string seen : {"nothing", "another"}) {
    SCOPED_TRACE(seen);
    RankedRun run;
    const ScratchDir other;
    if (seen == "another") {
      run.job.length.stop_after = 1;
      run.run();
      std::filesystem::copy(run.out.path(), other.path(), std::filesystem::copy_options::recursive);
      std::filesystem::remove_all(run.out.file("checkpoints"));
      run.job.length.stop_after.reset();
    }
    roll_back_at_window_4(run);
    run.prepare = [&](int64_t number, Rank& rank) {
      if (number == 1) rank.output_dir = other.path();
    };
    run.run();
    expect_same_errors(run, ExitCode::kCheckpoint);
    EXPECT_THAT(run.ranks[0]->error, HasSubstr("rank 1 failed"));
    EXPECT_THAT(run.ranks[1]->error,
                seen == "nothing" ? HasSubstr("there is no checkpoint here") : HasSubstr(checkpoint_name(1)));
    EXPECT_EQ(run.newest().engine.counters.windows, 4);  // it leaves its last window
  }
}

// One rank's folder is empty, has the checkpoint of another update, or a broken one.
TEST(TrainerRanks, ACheckpointThatOneCannotResumeFromEndsBoth) {
  for (const std::string seen : {"nothing", "another", "broken"}) {
    for (const int64_t bad : {0, 1}) {
      SCOPED_TRACE(seen + " by " + std::to_string(bad));
      RankedRun run;
      const ScratchDir other;
      run.job.length.stop_after = 2;
      run.run();
      if (seen != "nothing")
        std::filesystem::copy(run.out.path(), other.path(), std::filesystem::copy_options::recursive);
      if (seen == "broken") other.write("checkpoints/" + checkpoint_name(2) + "/model.safetensors", "no");
      if (seen == "another") run.go_on();
      run.prepare = [&](int64_t number, Rank& rank) {
        if (number == bad) rank.resume_from = other.path();
      };
      run.go_on();
      expect_same_errors(run, ExitCode::kCheckpoint);
      for (const auto& rank : run.ranks) EXPECT_EQ(rank->num_forwards, 0);
      const std::string& own = run.ranks[static_cast<size_t>(bad)]->error;
      if (seen == "nothing") EXPECT_THAT(own, HasSubstr("there is no checkpoint here"));
      if (seen != "another") {
        EXPECT_THAT(run.ranks[static_cast<size_t>(1 - bad)]->error,
                    HasSubstr("rank " + std::to_string(bad) + " failed"));
      }
    }
  }
}

TEST(TrainerRanks, BothEndAfterTooManyRollbacks) {
  RankedRun run;
  roll_back_at_window_4(run);
  run.job.trouble.max_rollbacks = 0;
  run.run();
  expect_same_errors(run, ExitCode::kDiverged);
  for (const auto& rank : run.ranks) EXPECT_THAT(rank->error, HasSubstr("after 0 rollbacks"));
}

// The sixth of six windows leaps up on rank 1.
void spike_at_window_6(RankedRun& run) {
  run.inputs[22].fill_(1e4);
  run.job.engine.spikes = {.z_score = 8, .window = 4};
  run.job.trouble.on_spike = Reaction::kGoOn;
}

void fill(torch::nn::Sequential& net, const NamedTensors& tensors) {
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : model_tensors(*net))
    at::Tensor(tensor).copy_(tensor_named(tensors, name));
}

TEST(TrainerRanks, BothLookAtABadWindowAndRankZeroWritesTheBlackBox) {
  for (const std::string kind : {"not finite", "spike"}) {
    SCOPED_TRACE(kind);
    const bool is_spike = kind == "spike";
    RankedRun run;
    if (is_spike)
      spike_at_window_6(run);
    else
      run.inputs[kBadSample].fill_(NAN);
    run.run();
    expect_same_ends(run);
    for (const auto& rank : run.ranks) {
      EXPECT_EQ(rank->num_forwards, 6 + 1);
      EXPECT_EQ(rank->end->skipped_total, 1);
    }
    const std::vector<BlackBoxWritten> events = run.events<BlackBoxWritten>();
    ASSERT_THAT(events, SizeIs(1));
    EXPECT_EQ(events[0].window, is_spike ? 6 : 4);
    const BlackBox box = read_black_box(events[0].file);
    EXPECT_EQ(box.rank, 1);  // where the bad sample is
    EXPECT_EQ(box.ids, is_spike ? (std::vector<int64_t>{22, 23}) : (std::vector<int64_t>{14, 15}));
    if (!is_spike) {
      const std::string& first = run.ranks[0]->sink.windows[3].step.first_non_finite;
      EXPECT_THAT(first, HasSubstr("aten::"));
      EXPECT_EQ(box.first_non_finite, first);
    }
    EXPECT_FALSE(box.modules.empty());
    // It has the divisor of all ranks, so that one can replay it alone.
    EXPECT_EQ(box.divisor, 4.0);
    torch::nn::Sequential net = small_classifier();
    fill(net, box.model);
    const Examination again = replay(box, classification_task(net), *run.ranks[0]->job.data.train);
    EXPECT_EQ(compare_with_recorded(box, again).text, "same as recorded");
  }
}

TEST(TrainerRanks, ABlackBoxThatCannotBeWrittenHoldsUpNobody) {
  RankedRun sound;
  sound.inputs[kBadSample].fill_(NAN);
  sound.run();
  RankedRun run;
  run.inputs[kBadSample].fill_(NAN);
  HookedFileSystem disk(posix_file_system(), [](const std::string& what, const std::string& path) {
    if (what == "write" && path.find("blackbox") != std::string::npos)
      throw std::system_error(ENOSPC, std::generic_category(), "cannot write " + path);
  });
  run.disk = &disk;
  run.run();
  expect_same_ends(run);
  ASSERT_THAT(run.events<BlackBoxFailed>(), SizeIs(1));
  EXPECT_THAT(run.events<BlackBoxFailed>()[0].error, HasSubstr("No space left"));
  EXPECT_THAT(run.events<BlackBoxWritten>(), IsEmpty());
  EXPECT_EQ(first_difference(run.newest(), sound.newest()), "");
}

// The look says what went wrong; that it fails on one rank does not matter to the training.
TEST(TrainerRanks, ASecondLookThatFailsOnOneHoldsUpNobody) {
  for (const int64_t failing : {0, 1}) {
    for (const bool is_spike : {false, true}) {
      SCOPED_TRACE(is_spike);
      RankedRun run;
      if (is_spike)
        spike_at_window_6(run);
      else
        run.inputs[kBadSample].fill_(NAN);
      run.prepare = [&](int64_t number, Rank& rank) {
        if (number != failing) return;
        rank.job.task.forward = [&, forward = rank.job.task.forward](const Batch& batch) {
          if (rank.num_forwards == (is_spike ? 7 : 5)) throw std::runtime_error("the user's own");
          return forward(batch);
        };
      };
      run.run();
      expect_same_ends(run);
      EXPECT_EQ(run.ranks[0]->end->skipped_total, 1);
      EXPECT_EQ(run.events<BlackBoxFailed>().size(), is_spike ? 1U : 0U);  // told by rank 0
    }
  }
}

// The second one is that of the look at the spike.
TEST(TrainerRanks, AUserStateThatOneCannotTakeBackAfterTheLookEndsBoth) {
  for (const int64_t failing : {0, 1}) {
    SCOPED_TRACE(failing);
    RankedRun run;
    spike_at_window_6(run);
    std::array<int, 2> num_restores{};
    run.prepare = [&](int64_t number, Rank& rank) {
      rank.job.task.user_state = [] { return UserState{.values = {{"stage", "1"}}}; };
      rank.job.task.restore_user_state = [&num_restores, number, failing](const UserState&) {
        if (++num_restores[static_cast<size_t>(number)] == 2 && number == failing)
          throw std::runtime_error("the user's own");
      };
    };
    run.run();
    EXPECT_THAT(num_restores, ElementsAre(2, 2));
    for (const auto& rank : run.ranks) EXPECT_FALSE(rank->end);
    // A checkpoint has the user state of rank 0, which is not saved if it could not be taken back.
    EXPECT_EQ(run.newest().engine.counters.windows, failing == 0 ? 4 : 6);
  }
}

// The first save fails.
TEST(TrainerRanks, ASaveThatFailedEndsBothOrNeither) {
  for (const bool goes_on : {false, true}) {
    SCOPED_TRACE(goes_on);
    RankedRun run;
    run.job.save.continue_on_error = goes_on;
    int failures_left = 1;
    HookedFileSystem disk(posix_file_system(), [&](const std::string& what, const std::string& path) {
      if (what == "write" && path.find(checkpoint_name(2)) != std::string::npos && failures_left-- > 0)
        throw std::system_error(EIO, std::generic_category(), "cannot write " + path);
    });
    run.disk = &disk;
    run.run();
    EXPECT_THAT(run.events<SaveFailed>(), SizeIs(1));
    if (goes_on) {
      expect_same_ends(run);
      EXPECT_EQ(run.ranks[1]->end->update, 6);
      continue;
    }
    expect_same_errors(run, ExitCode::kCheckpoint);
    EXPECT_THAT(run.ranks[0]->error, AllOf(HasSubstr(checkpoint_name(2)), HasSubstr("Input/output error")));
    EXPECT_THAT(run.ranks[1]->error, HasSubstr("rank 0 failed"));
    EXPECT_EQ(run.newest().engine.counters.windows, run.ranks[0]->sink.windows.back().step.window);
  }
}

TEST(TrainerRanks, ALastSaveThatFailedEndsBoth) {
  RankedRun run;
  run.job.save.continue_on_error = true;
  HookedFileSystem disk(posix_file_system(), [](const std::string& what, const std::string& path) {
    if (what == "write" && path.find(checkpoint_name(6)) != std::string::npos)
      throw std::system_error(EIO, std::generic_category(), "cannot write " + path);
  });
  run.disk = &disk;
  run.run();
  expect_same_errors(run, ExitCode::kCheckpoint);
}

// With a learning rate of 0 no evaluation is better than the first: the second is the best because what
// belonged to the first was lost. The save in between waits for the one that fails, and so hears of it first.
TEST(TrainerRanks, ABestModelThatCouldNotBeWrittenIsForgottenByBoth) {
  const auto make = [](RankedRun& run) {
    run.has_eval_part = true;
    run.job.engine.schedule.peak = 0;
    run.job.eval.interval = {2, Interval::Unit::kUpdates};
    run.job.save.interval = {3, Interval::Unit::kUpdates};
    run.job.save.continue_on_error = true;
    std::promise<void> third_window;
    run.prepare = [&](int64_t, Rank& rank) {
      rank.sink.on_window = [&](const WindowRow& row) {
        if (row.step.window == 3) third_window.set_value();
      };
    };
    int failures_left = 1;
    HookedFileSystem disk(posix_file_system(), [&](const std::string& what, const std::string& path) {
      if (what != "write" || path.find("best.safetensors") == std::string::npos || failures_left-- <= 0)
        return;
      third_window.get_future().wait();
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      throw std::system_error(EIO, std::generic_category(), "cannot write " + path);
    });
    run.disk = &disk;
    run.run();
    run.disk = &posix_file_system();
    run.prepare = {};
  };
  RankedRun one(1);
  make(one);
  RankedRun two;
  make(two);
  expect_same_ends(two);
  EXPECT_THAT(two.events<SaveFailed>(), SizeIs(1));
  for (const auto& rank : two.ranks) {
    EXPECT_EQ(rank->end->best_eval->update, one.ranks[0]->end->best_eval->update);
    EXPECT_EQ(rank->end->best_eval->update, 4);
  }
  EXPECT_EQ(read_model_file(two.out.file("best.safetensors")).info.update, 4);
}

// The files of the best evaluation are gone, or belong to the folder that the run came from.
TEST(TrainerRanks, ABestModelThatIsGoneAtTheResumeIsTheSameToBoth) {
  for (const bool is_fork : {false, true}) {
    SCOPED_TRACE(is_fork);
    const auto make = [&](RankedRun& run) {
      run.has_eval_part = true;
      run.job.engine.schedule.peak = 0;
      run.job.eval.interval = {2, Interval::Unit::kUpdates};
      run.job.length.stop_after = 3;
      run.run();
      std::filesystem::remove(run.out.file("best.safetensors"));
      run.job.length.stop_after.reset();
      if (is_fork) {
        std::filesystem::create_directory(run.out.file("fork"));
        run.prepare = [&run](int64_t, Rank& rank) { rank.output_dir = run.out.file("fork"); };
      }
      run.go_on();
    };
    RankedRun one(1);
    make(one);
    RankedRun two;
    make(two);
    for (const auto& rank : two.ranks) {
      ASSERT_TRUE(rank->end) << rank->error;
      EXPECT_EQ(rank->end->update, 6);
      EXPECT_EQ(rank->end->best_eval->update, 4);
      EXPECT_EQ(rank->end->best_eval->update, one.ranks[0]->end->best_eval->update);
    }
    EXPECT_TRUE(same_bytes(two.ranks[0]->weights(), two.ranks[1]->weights()));
    EXPECT_TRUE(std::filesystem::exists(two.ranks[0]->output_dir + "/best.safetensors"));
  }
}

}  // namespace
}  // namespace gradstep::testing

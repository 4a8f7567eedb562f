// RankedRun: a whole training run of a small classifier on any number of ranks in threads, in a folder that
// goes with the test.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/exit_code_of.h"
#include "gradstep/gradstep.h"
#include "support/full_state.h"
#include "support/recording_sink.h"
#include "support/scratch_dir.h"
#include "support/thread_world.h"
#include "support/toys.h"

namespace gradstep::testing {

class RankedRun {
 public:
  struct Rank {
    [[nodiscard]] std::vector<at::Tensor> weights() const { return copies(model_tensors(*net)); }

    torch::nn::Sequential net{nullptr};
    Job job{};
    std::string output_dir{};
    std::string resume_from{};  // where it looks for the newest checkpoint
    RecordingSink sink{};
    StopToken stop{};
    int64_t num_forwards = 0;  // in training
    // How it left: with an end, or with an error.
    std::optional<RunEnd> end{};
    std::string error{};
    ExitCode code = ExitCode::kOk;
  };

  // Windows of four samples, two of them on each of two ranks, in the order of their numbers.
  explicit RankedRun(int64_t num_ranks = 2, int64_t num_samples = 24)
      : inputs(numbers({num_samples, 4}, 0.5)), ranks(static_cast<size_t>(num_ranks)) {
    job.engine = {.schedule = {.shape = LrShape::kConstant, .peak = 0.02}, .micro_batch = 2};
    job.global_batch = 4;
    job.order = sequential_order(num_samples);
    job.save.interval = {2, Interval::Unit::kUpdates};
  }

  // From the beginning.
  void run() { start(/*resumes=*/false); }
  // From the newest checkpoint.
  void go_on() { start(/*resumes=*/true); }

  [[nodiscard]] TrainState newest() const { return newest_checkpoint(out.path()).value().state; }
  // Events of one kind on rank 0.
  template <class Kind>
  [[nodiscard]] std::vector<Kind> events() const {
    std::vector<Kind> found;
    for (const EventRow& row : ranks[0]->sink.events) {
      if (const auto* event = std::get_if<Kind>(&row.event)) found.push_back(*event);
    }
    return found;
  }

  ScratchDir out;
  at::Tensor inputs;  // of the training samples; the targets are their numbers modulo 3
  Job job;            // but for the tasks and the data
  bool has_eval_part = false;
  FileSystem* disk = &posix_file_system();
  // Changes what a rank has before it starts; each start makes all of them anew.
  std::function<void(int64_t rank, Rank&)> prepare;
  std::vector<std::unique_ptr<Rank>> ranks;

 private:
  [[nodiscard]] std::shared_ptr<const Dataset> dataset(const at::Tensor& samples) const {
    const at::Tensor targets = torch::arange(samples.size(0)) % 3;
    return std::make_shared<TensorDataset>(DatasetSpec{.name = "toy", .input_shape = {4}, .num_classes = 3},
                                           samples, targets);
  }

  // One after the other: they draw from the generator of the process.
  [[nodiscard]] std::unique_ptr<Rank> make_rank(int64_t number) {
    auto rank = std::make_unique<Rank>();
    rank->net = small_classifier();
    rank->job = job;
    rank->job.data.train = dataset(inputs);
    if (has_eval_part) rank->job.data.eval = dataset(numbers({11, 4}, 7));
    rank->job.task = classification_task(rank->net);
    rank->output_dir = rank->resume_from = out.path();
    if (prepare) prepare(number, *rank);
    rank->job.task.forward = [rank = rank.get(), forward = rank->job.task.forward](const Batch& batch) {
      if (rank->net->is_training()) ++rank->num_forwards;
      return forward(batch);
    };
    return rank;
  }

  void start(bool resumes) {
    for (size_t i = 0; i < ranks.size(); ++i) ranks[i] = make_rank(static_cast<int64_t>(i));
    run_ranks(static_cast<int64_t>(ranks.size()), [&](World& world) {
      Rank& rank = *ranks[static_cast<size_t>(world.rank())];
      try {
        Trainer trainer(rank.job, world);
        if (resumes) trainer.resume_newest(rank.resume_from);
        rank.end = trainer.run(rank.sink, rank.stop, *disk, rank.output_dir);
      } catch (const std::exception& error) {
        rank.error = error.what();
        rank.code = exit_code_of(std::current_exception());
      }
    });
  }
};

// What two ranks should have saved where one rank saved this.
inline TrainState of_two(TrainState state) {
  state.world_size = 2;
  return state;
}

// Both ended, at the same point with the same weights, and rank 0 alone has rows.
inline void expect_same_ends(const RankedRun& run) {
  const RankedRun::Rank& first = *run.ranks[0];
  const RankedRun::Rank& second = *run.ranks[1];
  EXPECT_EQ(first.error, "");
  EXPECT_EQ(second.error, "");
  ASSERT_TRUE(first.end && second.end);
  EXPECT_EQ(second.end->update, first.end->update);
  EXPECT_EQ(second.end->samples, first.end->samples);
  EXPECT_EQ(second.end->skipped_total, first.end->skipped_total);
  EXPECT_EQ(second.end->reason, first.end->reason);
  EXPECT_EQ(second.end->stopped_by, first.end->stopped_by);
  EXPECT_EQ(second.end->best_eval.has_value(), first.end->best_eval.has_value());
  EXPECT_EQ(second.end->model_path, first.end->model_path);
  EXPECT_TRUE(same_bytes(second.weights(), first.weights()));
  EXPECT_TRUE(same_bytes(first.weights(), copies(run.newest().model)));
  EXPECT_THAT(second.sink.windows, ::testing::IsEmpty());
  EXPECT_THAT(second.sink.events, ::testing::IsEmpty());
  EXPECT_THAT(first.sink.ends, ::testing::SizeIs(1));
}

// Both left by an error of this kind.
inline void expect_same_errors(const RankedRun& run, ExitCode code) {
  for (const auto& rank : run.ranks) {
    EXPECT_FALSE(rank->end);
    EXPECT_EQ(rank->code, code) << rank->error;
    EXPECT_NE(rank->error, "");
  }
}

}  // namespace gradstep::testing

// Values and tensors of a task's own go through checkpoints: at a resume, at a rollback, and at every level.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "gradstep/gradstep.h"
#include "step/precision_probe.h"
#include "support/message_of.h"
#include "support/recording_sink.h"
#include "support/scratch_dir.h"
#include "support/toys.h"

namespace gradstep::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A regression whose loss is weighted by what the task has seen so far, so that parameters are right only
// where that memory is.
struct Remembering {
  Remembering() {
    torch::manual_seed(3);
    model = torch::nn::Sequential(torch::nn::Linear(2, 1));
    memory = at::zeros({2});
    task = regression_task(model);
    task.loss_sum = [this](const at::Tensor& outputs, const Batch& batch) {
      const at::NoGradGuard no_grad;
      if (model->is_training()) {
        memory.mul_(0.5).add_(batch.inputs.sum(0));
        ++batches;
      }
      const at::AutoGradMode grad(true);
      return (at::mse_loss(outputs, batch.targets, at::Reduction::Sum) * (1 + memory.abs().sum()));
    };
    task.user_state = [this] {
      return UserState{.values = {{"batches", std::to_string(batches)}}, .tensors = {{"memory", memory}}};
    };
    task.restore_user_state = [this](const UserState& state) {
      num_restored += 1;
      if (state.empty()) return;
      batches = std::stoll(state.values.at("batches"));
      memory.copy_(state.tensors.at(0).second);
    };
  }

  torch::nn::Sequential model{nullptr};
  at::Tensor memory;
  int64_t batches = 0;
  int num_restored = 0;
  Task task;
};

std::shared_ptr<const Dataset> line_data(bool with_nan = false) {
  at::Tensor inputs = (at::arange(32, at::kFloat).view({16, 2}) * 0.3).sin();
  if (with_nan) inputs[7].fill_(std::numeric_limits<float>::quiet_NaN());
  return std::make_shared<TensorDataset>(DatasetSpec{.name = "line", .input_shape = {2}}, inputs,
                                         inputs.sum(1, true) * 2);
}

EngineOptions constant_lr() {
  return {.schedule = {.shape = LrShape::kConstant, .peak = 0.01}, .micro_batch = 2};
}

Job job_of(const Remembering& trainee, const std::shared_ptr<const Dataset>& data) {
  Job job;
  job.task = trainee.task;
  job.data.train = data;
  job.engine = constant_lr();
  job.global_batch = 4;
  job.length.max_updates = 10;
  job.save.interval = {3, Interval::Unit::kUpdates};
  return job;
}

std::vector<at::Tensor> all_of(const Remembering& trainee) {
  std::vector<at::Tensor> tensors{trainee.memory.clone()};
  for (const at::Tensor& tensor : trainee.model->parameters()) tensors.push_back(tensor.detach().clone());
  return tensors;
}

RunEnd run(Trainer& trainer, const std::string& folder, RecordingSink& sink) {
  const StopToken stop;
  return trainer.run(sink, stop, posix_file_system(), folder);
}

TEST(UserState, R52_ATrainerGoesOnBitForBit) {
  const ScratchDir folder;
  RecordingSink sink;
  Remembering unbroken;
  Trainer whole(job_of(unbroken, line_data()), solo());
  run(whole, "", sink);
  {
    Remembering first;
    Job job = job_of(first, line_data());
    job.length.stop_after = 4;
    Trainer trainer(std::move(job), solo());
    run(trainer, folder.path(), sink);
  }
  Remembering second;
  second.batches = 1000;  // whatever it remembered before is gone
  Trainer trainer(job_of(second, line_data()), solo());
  trainer.resume(*newest_checkpoint(folder.path()));
  EXPECT_THAT(trainer.warnings(), IsEmpty());
  EXPECT_EQ(second.batches, 8);
  run(trainer, folder.path(), sink);
  EXPECT_TRUE(same_bytes(all_of(second), all_of(unbroken)));
  EXPECT_EQ(second.batches, unbroken.batches);
  const TrainState state = newest_checkpoint(folder.path())->state;
  EXPECT_EQ(state.user.values.at("batches"), "20");
  EXPECT_TRUE(state.user.tensors.at(0).second.equal(unbroken.memory));
}

TEST(UserState, ARollbackTakesItBackToo) {
  const ScratchDir folder;
  RecordingSink sink;
  Remembering trainee;
  Job job = job_of(trainee, line_data(/*with_nan=*/true));
  job.order = sequential_order(16);
  job.save.interval = {1, Interval::Unit::kUpdates};
  job.trouble.on_not_finite = Reaction::kRollBack;
  job.length.max_updates = 3;
  Trainer trainer(std::move(job), solo());
  run(trainer, folder.path(), sink);
  // The second window of each epoch has the NaN; a memory that kept it would be NaN for ever.
  EXPECT_TRUE(at::isfinite(trainee.memory).all().item<bool>());
  EXPECT_EQ(trainee.batches, 6);
}

// A window that is skipped, a second look, a try that runs out of memory, and the probe of the precision.
TEST(UserState, NothingButAnUpdateChangesIt) {
  Remembering trainee;
  int num_forwards = 0;
  trainee.task.forward = [&trainee, &num_forwards](const Batch& batch) {
    if (++num_forwards == 4) throw std::bad_alloc();
    return trainee.model->forward(batch.inputs);
  };
  Engine engine(trainee.task, constant_lr(), solo());
  const at::Tensor good = at::ones({4, 2}), bad = at::full({4, 2}, NAN);
  const auto step = [&](const at::Tensor& inputs) { return engine.step(inputs, at::ones({4, 1})); };
  step(good);
  EXPECT_EQ(trainee.batches, 2);
  EXPECT_EQ(step(good).num_out_of_memory, 1);  // at its second micro-batch; then four of one sample
  EXPECT_EQ(trainee.batches, 6);
  const at::Tensor memory = trainee.memory.clone();
  EXPECT_EQ(step(bad).outcome, StepOutcome::kNotFinite);
  EXPECT_EQ(trainee.batches, 6);
  EXPECT_TRUE(same_bytes(trainee.memory, memory));
  (void)choose_precision(trainee.task, {good, at::ones({4, 1})}, std::nullopt, std::nullopt);
  EXPECT_EQ(trainee.batches, 6);
  EXPECT_TRUE(same_bytes(trainee.memory, memory));
}

// It keeps the tensors that it gets, and writes through data(), which counts no version up.
TEST(UserState, ATaskMayKeepWhatItGetsBackAndWriteAnyWay) {
  Remembering trainee;
  const auto loss_sum = trainee.task.loss_sum;
  at::Tensor teacher = at::zeros({2});
  trainee.task.loss_sum = [&teacher, loss_sum](const at::Tensor& outputs, const Batch& batch) {
    teacher.data().add_(batch.inputs.sum(0));
    return loss_sum(outputs, batch);
  };
  trainee.task.user_state = [&teacher] { return UserState{.tensors = {{"teacher", teacher}}}; };
  trainee.task.restore_user_state = [&teacher](const UserState& state) {
    teacher = state.tensors.at(0).second;
  };
  Engine engine(trainee.task, constant_lr(), solo());
  for (int i = 0; i < 3; ++i) engine.step(at::ones({4, 2}), at::ones({4, 1}));
  EXPECT_EQ(teacher[0].item<float>(), 12);
  engine.step(at::full({4, 2}, NAN), at::ones({4, 1}));  // with a second look
  EXPECT_EQ(teacher[0].item<float>(), 12);
}

TEST(UserState, WhatCannotBeTakenBackEndsTheWindowAndIsNotSaved) {
  Remembering trainee;
  trainee.task.restore_user_state = [](const UserState&) { throw DataError("no such stage"); };
  Engine engine(trainee.task, constant_lr(), solo());
  EXPECT_THROW(engine.step(at::full({4, 2}, NAN), at::ones({4, 1})), DataError);
  EXPECT_FALSE(engine.is_whole());
  int num_calls = 0;  // once before the second look, and once after it
  trainee.task.restore_user_state = [&num_calls](const UserState&) {
    if (++num_calls == 2) throw DataError("no such stage");
  };
  Engine second(trainee.task, constant_lr(), solo());
  EXPECT_THROW(second.step(at::full({4, 2}, NAN), at::ones({4, 1})), DataError);
  EXPECT_FALSE(second.is_whole());
}

TEST(UserState, ALoopOfOnesOwnFillsAndReadsIt) {
  const ScratchDir folder;
  Remembering trainee;
  trainee.task.user_state = {};
  trainee.task.restore_user_state = {};
  Engine engine(trainee.task, constant_lr(), solo());
  TrainState state = capture_engine(engine);
  EXPECT_TRUE(state.user.empty());
  state.user.values["stage"] = "2";
  write_checkpoint(posix_file_system(), folder.path(), state);
  const TrainState read = newest_checkpoint(folder.path())->state;
  EXPECT_EQ(read.user.values, state.user.values);
  EXPECT_THAT(read.user.tensors, IsEmpty());
}

TEST(UserState, WhatATaskDoesNotTakeBackIsSaid) {
  const ScratchDir folder;
  RecordingSink sink;
  {
    Remembering first;
    Job job = job_of(first, line_data());
    job.length.stop_after = 2;
    Trainer trainer(std::move(job), solo());
    run(trainer, folder.path(), sink);
  }
  Remembering second;
  second.task.restore_user_state = {};
  Trainer trainer(job_of(second, line_data()), solo());
  trainer.resume(*newest_checkpoint(folder.path()));
  EXPECT_THAT(trainer.warnings(), ElementsAre(HasSubstr("contains user state")));
}

TEST(UserState, ACheckpointWithoutOneRestoresAnEmptyState) {
  const ScratchDir folder;
  {
    Remembering first;
    first.task.user_state = {};
    Engine engine(first.task, constant_lr(), solo());
    write_checkpoint(posix_file_system(), folder.path(), capture_engine(engine));
  }
  Remembering second;
  second.batches = 5;
  Engine engine(second.task, constant_lr(), solo());
  const FoundCheckpoint found = *newest_checkpoint(folder.path());
  restore_engine(found.path, found.state, engine);
  EXPECT_EQ(second.num_restored, 1);
  EXPECT_EQ(second.batches, 5);
}

TEST(UserState, WhatThrowsWhileItIsTakenBackLeavesTheEngineAsItWas) {
  Remembering first;
  Engine engine(first.task, constant_lr(), solo());
  const TrainState state = capture_engine(engine);
  Remembering second;
  second.task.restore_user_state = [](const UserState&) { throw DataError("no such stage"); };
  second.model->parameters()[0].detach().fill_(9);
  Engine other(second.task, constant_lr(), solo());
  EXPECT_THROW(restore_engine("c", state, other), DataError);
  EXPECT_TRUE(second.model->parameters()[0].eq(9).all().item<bool>());
}

TEST(UserState, WhatCannotBeStoredIsNamedAndCostsNoCheckpoint) {
  const ScratchDir folder;
  Remembering trainee;
  Engine engine(trainee.task, constant_lr(), solo());
  write_checkpoint(posix_file_system(), folder.path(), capture_engine(engine));
  const auto refusal = [&](UserState user) {
    TrainState state = capture_engine(engine);
    state.user = std::move(user);
    Checkpointer checkpointer(posix_file_system(), {.output_dir = folder.path()});
    checkpointer.save(state);
    checkpointer.wait();
    const std::vector<SaveOutcome> outcomes = checkpointer.outcomes();
    const std::string message =
        message_of<CheckpointError>([&] { write_checkpoint(posix_file_system(), folder.path(), state); });
    EXPECT_EQ(outcomes.at(0).error, message);
    EXPECT_TRUE(newest_checkpoint(folder.path()).has_value());
    return message;
  };
  const at::Tensor one = at::ones({1});
  EXPECT_THAT(refusal({.values = {{"name", "\xff"}}}), HasSubstr("the value of name is not UTF-8"));
  EXPECT_THAT(refusal({.values = {{"\xff", ""}}}), HasSubstr("a key is not UTF-8"));
  EXPECT_THAT(refusal({.tensors = {{"a", one}, {"a", one}}}),
              HasSubstr("tensor a has the name of another one"));
  EXPECT_THAT(refusal({.tensors = {{"a", at::Tensor()}}}), HasSubstr("tensor a is undefined"));
  EXPECT_THAT(refusal({.tensors = {{"a", one.to_sparse()}}}), HasSubstr("tensor a is not dense"));
  EXPECT_THAT(refusal({.tensors = {{"__metadata__", one}}}), HasSubstr("reserved"));
  EXPECT_THAT(refusal({.tensors = {{"a", one.to(at::kComplexDouble)}}}), HasSubstr("tensor a"));
}

TEST(UserState, ADamagedFileIsABrokenCheckpoint) {
  const ScratchDir folder;
  Remembering trainee;
  Engine engine(trainee.task, constant_lr(), solo());
  write_checkpoint(posix_file_system(), folder.path(), capture_engine(engine));
  const std::string path = checkpoints_dir(folder.path()) + "/" + checkpoint_name(0);
  posix_file_system().remove_all(path + "/user.safetensors");
  EXPECT_THAT(message_of<CheckpointError>([&] { (void)read_checkpoint(path); }),
              HasSubstr("user.safetensors: missing"));
}

TEST(UserState, MoreThanTheReaderTakesIsRefusedBeforeAnythingIsWritten) {
  const ScratchDir folder;
  Remembering trainee;
  Engine engine(trainee.task, constant_lr(), solo());
  write_checkpoint(posix_file_system(), folder.path(), capture_engine(engine));
  TrainState state = capture_engine(engine);
  state.user.values["text"] = std::string(70'000'000, 'x');
  EXPECT_THAT(
      message_of<CheckpointError>([&] { write_checkpoint(posix_file_system(), folder.path(), state); }),
      HasSubstr("keep large values as tensors"));
  EXPECT_TRUE(newest_checkpoint(folder.path()).has_value());
}

TEST(UserState, WhateverATaskThrowsIsAnErrorOfTheRun) {
  const ScratchDir folder;
  RecordingSink sink;
  Remembering trainee;
  Job job = job_of(trainee, line_data());
  int num_calls = 0;
  job.task.user_state = [&num_calls]() -> UserState {
    if (++num_calls > 2) throw 42;
    return {};
  };
  Trainer trainer(std::move(job), solo());
  EXPECT_THROW(run(trainer, folder.path(), sink), int);
}

}  // namespace
}  // namespace gradstep::testing

// What the tests of saving share: states of a run, how a save ended, and whether a state is another one.
#pragma once

#include <gtest/gtest.h>

#include "checkpoint/state_json.h"
#include "gradstep/checkpoint/checkpoint.h"
#include "gradstep/checkpoint/checkpointer.h"
#include "support/failing_file_system.h"
#include "support/full_state.h"

namespace gradstep::testing {

// A state with numbers of its own for each update, on tensors of its own. No evaluation was the best yet.
inline TrainState state_at(int64_t update) {
  TrainState state = full_state(update, 0.01 * static_cast<double>(update));
  state.best_eval.reset();
  return state;
}

// The same update after another evaluation: a state of its own that takes the same place on the disk.
inline TrainState evaluated(TrainState state) {
  state.last_eval->update = state.engine.counters.updates;
  state.last_eval->metrics = {{"acc", 0.5}};
  return state;
}

inline bool is(const TrainState& read, const TrainState& expected) {
  return compare_states(read, expected).empty() && format_state(read) == format_state(expected);
}

// In one line; empty: none.
inline std::string first_difference(const TrainState& a, const TrainState& b) {
  const std::vector<StateDifference> all = compare_states(a, b);
  return all.empty() ? "" : all.front().what + ": " + all.front().detail;
}

// The tensors of a model file in the order of `like`.
inline std::vector<at::Tensor> tensors_of(const std::string& path, const NamedTensors& like) {
  const NamedTensors stored = read_model_file(path).tensors;
  std::vector<at::Tensor> tensors;
  for (const auto& [name, tensor] : like) {
    for (const auto& [other, value] : stored) {
      if (other == name) tensors.push_back(value);
    }
  }
  EXPECT_EQ(stored.size(), like.size()) << path;
  return tensors;
}

// The disk, but quick: what a process that is killed leaves is the same.
inline FailingFileSystem quick_disk() { return FailingFileSystem(posix_file_system(), /*syncs=*/false); }

// Waits for the one save that was made since the last question.
inline SaveOutcome outcome_of(Checkpointer& checkpointer) {
  checkpointer.wait();
  std::vector<SaveOutcome> outcomes = checkpointer.outcomes();
  EXPECT_EQ(outcomes.size(), 1U);
  return outcomes.empty() ? SaveOutcome{.error = "no outcome"} : outcomes.front();
}

inline SaveOutcome save_and_wait(Checkpointer& checkpointer, const TrainState& state,
                                 const SaveRequest& request = {}) {
  checkpointer.save(state, request);
  return outcome_of(checkpointer);
}

}  // namespace gradstep::testing

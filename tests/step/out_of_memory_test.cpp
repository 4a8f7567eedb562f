// Cases A11 and G5: where memory runs out the micro-batch is halved and the same window begun again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/memory_limit.h"
#include "gradstep/base/error.h"
#include "gradstep/checkpoint/checkpoint.h"
#include "support/lin.h"
#include "support/message_of.h"
#include "support/toys.h"

namespace gradstep::testing {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kRowBytes = int64_t{1} << 18;  // scratch memory that Hungry takes for each row

// No more than `bytes` beside what is in use now, while it lives.
class RoomFor {
 public:
  explicit RoomFor(int64_t bytes) {
    limit_tensor_memory(0);  // from here on it counts
    limit_tensor_memory(tensor_memory_bytes() + bytes);
  }
  ~RoomFor() { limit_tensor_memory(0); }
  RoomFor(const RoomFor&) = delete;
  RoomFor& operator=(const RoomFor&) = delete;
};

enum class Where { kForward, kBackward };

// The identity, which takes scratch memory by the row in one of its directions.
struct Hungry : torch::autograd::Function<Hungry> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            bool in_backward) {
    context->saved_data["in_backward"] = in_backward;
    if (!in_backward) at::empty({x.size(0), kRowBytes}, at::kByte);
    return x.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    if (context->saved_data["in_backward"].toBool()) at::empty({grads[0].size(0), kRowBytes}, at::kByte);
    return {grads[0], at::Tensor()};
  }
};

// Branches, so that a backward that stops half way leaves work behind; notes what went through it.
struct BranchesImpl : torch::nn::Module {
  BranchesImpl(Where where_, double dropout_, bool batch_norm) : where(where_), dropout(dropout_) {
    fc1 = register_module("fc1", torch::nn::Linear(1, 32));
    fc2 = register_module("fc2", torch::nn::Linear(32, 32));
    fc3 = register_module("fc3", torch::nn::Linear(32, 32));
    if (batch_norm) norm = register_module("norm", torch::nn::BatchNorm1d(32));
  }
  at::Tensor forward(const at::Tensor& x) {
    for (int64_t i = 0; i < x.size(0); ++i) seen.push_back(static_cast<int64_t>(x[i].item<float>()));
    at::Tensor h = fc1(x / 16).tanh();
    if (norm) h = norm(h);
    h = torch::dropout(h, dropout, is_training());
    const at::Tensor left = fc3(h).tanh() * fc3(h * 2).sigmoid();
    // Newest, so the first in the backward: when it fails the others are still queued.
    return left + Hungry::apply(fc2(h).relu(), where == Where::kBackward);
  }
  Where where;
  double dropout;
  torch::nn::Linear fc1{nullptr}, fc2{nullptr}, fc3{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
  std::vector<int64_t> seen;
};
TORCH_MODULE(Branches);

struct Config {
  Where where = Where::kForward;
  double dropout = 0;
  bool batch_norm = false;
  Precision precision = Precision::kFp32;
};

struct Trainee {
  Trainee(const Config& setup, int64_t micro_batch)
      : model(make(setup)), engine(task(), options(setup, micro_batch), solo()) {}

  static Branches make(const Config& setup) {
    torch::manual_seed(3);
    return Branches(setup.where, setup.dropout, setup.batch_norm);
  }
  static EngineOptions options(const Config& setup, int64_t micro_batch) {
    return {.schedule = {.shape = LrShape::kConstant, .peak = 0.01},
            .precision = setup.precision,
            .micro_batch = micro_batch,
            .clip_grad = 1.0};
  }
  [[nodiscard]] Task task() const {
    Task task;
    task.module = model.ptr();
    task.forward = [m = model](const Batch& batch) mutable { return m->forward(batch.inputs); };
    task.loss_sum = [](const at::Tensor& outputs, const Batch&) {
      return outputs.to(at::kFloat).square().sum();
    };
    return task;
  }
  StepReport step(int64_t first = 0, int64_t n = 16) {
    return engine.step(at::arange(first, first + n, at::kFloat).unsqueeze(1), no_targets(n));
  }
  // Parameters, moments and buffers.
  [[nodiscard]] std::vector<at::Tensor> all() const {
    std::vector<at::Tensor> tensors = everything(engine);
    for (const at::Tensor& buffer : model->buffers()) tensors.push_back(buffer.clone());
    return tensors;
  }

  Branches model;
  Engine engine;
};

std::vector<int64_t> count_up(int64_t n) {
  std::vector<int64_t> ids(static_cast<size_t>(n));
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

std::vector<int64_t> last(const std::vector<int64_t>& ids, int64_t n) { return {ids.end() - n, ids.end()}; }

// A run that must come down from 16 to 4, against one that had 4 from the start.
void expect_same_as_four_from_the_start(const Config& setup) {
  Trainee four(setup, 4);
  Trainee sixteen(setup, 16);
  for (int window = 0; window < 3; ++window) {
    const StepReport expected = four.step();
    const RoomFor five_rows(5 * kRowBytes);
    const StepReport report = sixteen.step();
    EXPECT_EQ(report.num_out_of_memory, window == 0 ? 2 : 0);
    EXPECT_EQ(report.micro_batch, 4);
    EXPECT_EQ(report.num_micro_batches, 4);
    EXPECT_EQ(report.loss, expected.loss);
    EXPECT_EQ(report.grad_norm, expected.grad_norm);
    EXPECT_EQ(report.update, window + 1);
    EXPECT_EQ(last(sixteen.model->seen, 16), count_up(16));
  }
  // 16 and 8 were tried once, from the first sample on.
  EXPECT_EQ(sixteen.model->seen.size(), 16U + 8U + 3U * 16U);
  EXPECT_TRUE(same_bytes(sixteen.all(), four.all()));
  EXPECT_EQ(sixteen.engine.state().micro_batch, 4);
}

TEST(OutOfMemory, A11_InForwardAndInBackward) {
  for (const Where where : {Where::kForward, Where::kBackward})
    expect_same_as_four_from_the_start({.where = where});
}

TEST(OutOfMemory, A11_WithDropoutAndBatchNormStatistics) {
  for (const Where where : {Where::kForward, Where::kBackward}) {
    expect_same_as_four_from_the_start({.where = where, .dropout = 0.5, .batch_norm = true});
  }
}

TEST(OutOfMemory, A11_UnderAutocastNoCastWeightsStayBehind) {
  for (const Where where : {Where::kForward, Where::kBackward}) {
    for (const Precision precision : {Precision::kBf16, Precision::kFp16}) {
      expect_same_as_four_from_the_start({.where = where, .dropout = 0.5, .precision = precision});
    }
  }
}

TEST(OutOfMemory, A11_LinSumsTheSameSixteen) {
  Lin four;
  Engine expected(lin_task(four), plain_sgd(4), solo());
  Lin lin;
  Task task = lin_task(lin);
  task.forward = [lin](const Batch& batch) mutable {
    if (batch.inputs.size(0) > 4) throw std::bad_alloc();
    return lin->forward(batch.inputs);
  };
  Engine engine(task, plain_sgd(16), solo());
  const at::Tensor inputs = at::arange(16, at::kFloat).unsqueeze(1);
  expected.step(inputs, no_targets(16));
  EXPECT_EQ(engine.step(inputs, no_targets(16)).num_out_of_memory, 2);
  EXPECT_TRUE(same_bytes(lin->w, four->w));
  EXPECT_EQ(lin->w.item<float>(), -7.5F);
}

TEST(OutOfMemory, TheWordsOfTheDefaultAllocatorCountToo) {
  Lin lin;
  Task task = lin_task(lin);
  task.forward = [lin](const Batch& batch) mutable {
    if (batch.inputs.size(0) > 2)
      at::empty({int64_t{1} << 60}, at::kByte);  // "DefaultCPUAllocator: can't allocate memory"
    return lin->forward(batch.inputs);
  };
  Engine engine(task, plain_sgd(4), solo());
  EXPECT_EQ(engine.step(column({1, 2, 3, 4}), no_targets(4)).micro_batch, 2);
}

TEST(OutOfMemory, AShortWindowHalvesFromItsOwnSize) {
  Trainee trainee({}, 1000);
  const RoomFor four_rows(4 * kRowBytes + kRowBytes / 2);
  EXPECT_EQ(trainee.step(0, 6).micro_batch, 3);
  EXPECT_EQ(trainee.engine.state().micro_batch, 3);
  EXPECT_EQ(trainee.engine.options().micro_batch, 1000);  // as asked
  const TrainState state = capture_engine(trainee.engine);
  EXPECT_EQ(state.asked_micro_batch, 1000);
  EXPECT_EQ(state.engine.micro_batch, 3);
}

TEST(OutOfMemory, AtOneSampleItIsAnErrorAndTheWindowMayBeGivenAgain) {
  for (const Where where : {Where::kForward, Where::kBackward}) {
    const Config setup{.where = where, .dropout = 0.5};
    Trainee expected(setup, 8);
    Trainee trainee(setup, 8);
    expected.step(0);
    trainee.step(0);
    const std::vector<at::Tensor> before = trainee.all();
    {
      const RoomFor half_a_row(kRowBytes / 2);
      const std::string message = message_of<Error>([&] { trainee.step(16); });
      EXPECT_THAT(message, HasSubstr("out of memory in window 2 with a micro-batch of 1"));
    }
    EXPECT_TRUE(same_bytes(trainee.all(), before));
    EXPECT_EQ(trainee.engine.counters().windows, 1);
    EXPECT_EQ(trainee.engine.state().micro_batch, 8);
    for (const auto& [name, parameter] : trainee.engine.optimizer().parameters())
      EXPECT_FALSE(parameter.grad().defined());
    expected.step(16);
    trainee.step(16);
    EXPECT_TRUE(same_bytes(trainee.all(), expected.all()));
  }
}

TEST(OutOfMemory, TheErrorLeavesWithSix) {
  Trainee trainee({}, 1);
  const RoomFor half_a_row(kRowBytes / 2);
  try {
    trainee.step();
    FAIL() << "no exception";
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::kOutOfMemory);
  }
}

TEST(OutOfMemory, BatchNormStopsAtTwoSamples) {
  Trainee trainee({.batch_norm = true}, 8);
  const RoomFor one_row(kRowBytes + kRowBytes / 2);
  EXPECT_THAT(message_of<Error>([&] { trainee.step(0, 5); }), HasSubstr("with a micro-batch of 2"));
}

TEST(OutOfMemory, AnotherExceptionPassesThrough) {
  Lin lin;
  Task task = lin_task(lin);
  task.forward = [](const Batch&) -> at::Tensor { TORCH_CHECK(false, "the user's own"); };
  Engine engine(task, plain_sgd(4), solo());
  EXPECT_THAT(message_of<c10::Error>([&] { engine.step(column({1, 2}), no_targets(2)); }),
              HasSubstr("the user's own"));
}

// The least room in which a window of 8 goes through from `state` without running out of memory. REQUIRES: it
// is above 3 and at most 5 rows.
int64_t least_room(Trainee& trainee, const EngineState& state) {
  int64_t too_little = 3 * kRowBytes, enough = 5 * kRowBytes;
  while (enough - too_little > 1) {
    const int64_t middle = (too_little + enough) / 2;
    trainee.engine.restore(state);
    const RoomFor room(middle);
    (trainee.step(0, 8).num_out_of_memory == 0 ? enough : too_little) = middle;
  }
  return enough;
}

// 1,000 windows that run out of memory at 8 and fit at 4: nothing of the failed tries stays.
TEST(OutOfMemory, G5_NothingStaysBehindAfterAThousandTries) {
  for (const Where where : {Where::kForward, Where::kBackward}) {
    Trainee trainee({.where = where, .dropout = 0.5, .precision = Precision::kBf16}, 8);
    trainee.step(0, 8);
    EngineState eight = trainee.engine.state();
    eight.micro_batch = 4;
    trainee.engine.restore(eight);
    const int64_t room_of_four = least_room(trainee, eight);
    const int64_t live = tensor_memory_bytes();
    eight.micro_batch = 8;
    for (int i = 0; i < 1000; ++i) {
      trainee.engine.restore(eight);
      trainee.model->seen.clear();
      const RoomFor five_rows(5 * kRowBytes);
      ASSERT_EQ(trainee.step(0, 8).num_out_of_memory, 1);
      ASSERT_EQ(tensor_memory_bytes(), live) << i;
    }
    // The smaller try itself needs no more than it would without the failure.
    trainee.engine.restore(eight);
    const RoomFor no_more_than_four(room_of_four);
    EXPECT_EQ(trainee.step(0, 8).micro_batch, 4);
  }
}

}  // namespace
}  // namespace gradstep::testing

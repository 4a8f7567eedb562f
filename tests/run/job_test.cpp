// A job says by itself what a resume must compare, and what makes no sense in it.
#include "gradstep/run/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "base/machine.h"
#include "gradstep/base/error.h"
#include "gradstep/run/trainer.h"
#include "support/message_of.h"
#include "support/ranked_run.h"

namespace gradstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Job small_job() {
  Job job = RankedRun(1).job;
  torch::nn::Sequential net = small_classifier();
  job.task = classification_task(net);
  job.data.train =
      std::make_shared<TensorDataset>(DatasetSpec{.name = "toy", .input_shape = {4}, .num_classes = 3},
                                      numbers({24, 4}, 0.5), at::arange(24).remainder(3));
  return job;
}

TEST(Job, WhatMakesNoSenseIsNamed) {
  const auto refusal = [](const std::function<void(Job&)>& change) {
    Job job = small_job();
    change(job);
    return message_of<ConfigError>([&] { const Trainer trainer(job, solo()); });
  };
  EXPECT_THAT(refusal([](Job& job) { job.task = {}; }), HasSubstr("the task lacks its module"));
  EXPECT_THAT(refusal([](Job& job) { job.task.module = torch::nn::ReLU().ptr(); }),
              HasSubstr("no parameters"));
  const auto metrics = [&](const std::vector<std::string>& names) {
    return refusal([&](Job& job) {
      for (const std::string& name : names) job.task.metrics.push_back({.name = name});
    });
  };
  EXPECT_THAT(metrics({"a", "a"}), HasSubstr("two metrics are named a"));
  EXPECT_THAT(metrics({"loss"}), HasSubstr("rows have val_loss already"));
  EXPECT_THAT(metrics({"samples"}), HasSubstr("rows have val_samples already"));
  for (const std::string name : {"", "two words", "new\nline", "\xff", "esc\x1b"})
    EXPECT_THAT(metrics({name}), HasSubstr("without spaces")) << name;
  for (const char* key : {"version", "git_commit", "precision", "matmul", "update", "black_box"}) {
    EXPECT_THAT(refusal([&](Job& job) { job.model_settings[key] = "7"; }),
                HasSubstr(std::string("model setting '") + key + "'"));
  }
  EXPECT_THAT(refusal([](Job& job) { job.model_settings["a\xff"] = "7"; }), HasSubstr("key is not UTF-8"));
  EXPECT_THAT(refusal([](Job& job) { job.data = {}; }), HasSubstr("no training data"));
  EXPECT_THAT(refusal([](Job& job) { job.global_batch = -1; }), HasSubstr("global_batch"));
  EXPECT_THAT(refusal([](Job& job) { job.epoch_size = -1; }), HasSubstr("epoch_size"));
  EXPECT_THAT(refusal([](Job& job) {
                job.epoch_size = 10;
                job.order = {};
              }),
              AllOf(HasSubstr("epoch_size"), HasSubstr("order")));
  for (const int64_t num : {-1, 1025}) {
    EXPECT_THAT(refusal([&](Job& job) { job.num_workers = num; }), HasSubstr("num_workers"));
  }
  EXPECT_THAT(refusal([](Job& job) { job.length.epochs = 0; }), HasSubstr("length.epochs"));
  EXPECT_THAT(refusal([](Job& job) { job.length.max_updates = -3; }), HasSubstr("length.max_updates"));
  EXPECT_THAT(refusal([](Job& job) { job.length.max_seconds = NAN; }), HasSubstr("length.max_seconds"));
  EXPECT_THAT(refusal([](Job& job) { job.length.stop_after = 0; }), HasSubstr("length.stop_after"));
  EXPECT_THAT(refusal([](Job& job) { job.length.epochs = int64_t{1} << 47; }), HasSubstr("too many updates"));
  for (const double value : {-1.0, double{NAN}, double{INFINITY}, 0.5, 1e300})
    EXPECT_THAT(refusal([&](Job& job) { job.eval.interval = {value, Interval::Unit::kEpochs}; }),
                HasSubstr("eval.interval"));
  EXPECT_THAT(refusal([](Job& job) { job.engine.micro_batch = INT64_MAX; }), HasSubstr("micro_batch"));
  EXPECT_THAT(refusal([](Job& job) { job.global_batch = INT64_MAX; }), HasSubstr("global_batch"));
  EXPECT_THAT(refusal([](Job& job) { job.eval.early_stop_patience = -1; }), HasSubstr("early_stop_patience"));
  EXPECT_THAT(refusal([](Job& job) { job.save.interval.value = -1; }), HasSubstr("save.interval"));
  EXPECT_THAT(refusal([](Job& job) { job.save.keep = -1; }), HasSubstr("save.keep"));
  EXPECT_THAT(refusal([](Job& job) { job.save.grace_seconds = -1; }), HasSubstr("grace_seconds"));
  EXPECT_THAT(refusal([](Job& job) { job.trouble.max_rollbacks = -1; }), HasSubstr("max_rollbacks"));
  for (const int bad : {-1, 9}) {
    EXPECT_THAT(refusal([&](Job& job) { job.trouble.on_not_finite = static_cast<Reaction>(bad); }),
                HasSubstr("trouble.on_not_finite must be"));
    EXPECT_THAT(refusal([&](Job& job) { job.trouble.on_spike = static_cast<Reaction>(bad); }),
                HasSubstr("trouble.on_spike must be"));
    EXPECT_THAT(refusal([&](Job& job) { job.save.interval = {1, static_cast<Interval::Unit>(bad)}; }),
                HasSubstr("save.interval"));
    EXPECT_THAT(refusal([&](Job& job) {
                  job.task.metrics.push_back({.name = "m", .direction = static_cast<Direction>(bad)});
                }),
                HasSubstr("metric m: direction must be"));
    EXPECT_THAT(refusal([&](Job& job) { job.settings = {{"k", "a", static_cast<OnResume>(bad)}}; }),
                HasSubstr("setting k: on_resume"));
    EXPECT_THAT(refusal([&](Job& job) { job.engine.precision = static_cast<Precision>(bad); }),
                HasSubstr("precision must be"));
  }
  EXPECT_THAT(refusal([](Job& job) { job.settings = {{"k", "a"}, {"j", "a"}, {"k", "b"}}; }),
              HasSubstr("two settings are named k"));
}

// Each of these ended at its first save, with nothing to show for the work before.
TEST(Job, AModelThatNoFileCanHoldIsRefused) {
  const auto refusal = [](const std::function<void(torch::nn::Module&)>& add) {
    Job job = small_job();
    add(*job.task.module);
    return message_of<ConfigError>([&] { const Trainer trainer(job, solo()); });
  };
  const at::Tensor two = at::zeros({2});
  EXPECT_THAT(refusal([&](auto& net) { net.register_buffer("buf", two.to(at::kComplexDouble)); }),
              HasSubstr("buffer buf is ComplexDouble, a type that no safetensors file can hold"));
  EXPECT_THAT(refusal([&](auto& net) {
                net.register_buffer("buf", at::quantize_per_tensor(two, 0.1, 0, at::kQInt8));
              }),
              HasSubstr("buffer buf is QInt8"));
  EXPECT_THAT(refusal([&](auto& net) { net.register_parameter("x\xff", two); }),
              HasSubstr("has a name that is not UTF-8"));
  EXPECT_THAT(refusal([&](auto& net) { net.register_parameter("__metadata__", two); }),
              HasSubstr("parameter __metadata__ has a name that is reserved"));
  EXPECT_THAT(refusal([&](auto& net) { net.register_buffer("buf", two[0].expand({3})); }),
              HasSubstr("buffer buf has elements that share memory"));
  EXPECT_THAT(refusal([&](auto& net) {
                net.register_parameter("twice", two);
                net.register_buffer("twice", two);
              }),
              HasSubstr("buffer twice has the name of a parameter"));
}

// Every option of the engine changes the settings, so that a resume notices it.
TEST(Job, SettingsOfAJobWithoutAnyAreItsEngineOptions) {
  // The bindings name every field there is: with one more this file does not compile, and whoever adds it
  // comes here and to settings_of().
  [[maybe_unused]] const auto& [optimizer, make_optimizer, schedule, precision, scaler, micro_batch,
                                clip_grad, max_skips_in_a_row, seed, ema_decay, spikes] = EngineOptions{};
  [[maybe_unused]] const auto& [kind, weight_decay, beta1, beta2, eps, momentum, nesterov, decay_all,
                                groups] = optimizer;
  [[maybe_unused]] const auto& [shape, peak, min, warmup_steps, total_steps, function] = schedule;
  [[maybe_unused]] const auto& [init_scale, growth_factor, backoff_factor, growth_interval] = scaler;
  [[maybe_unused]] const auto& [z_score, window] = spikes;
  const Settings before = settings_of(small_job());
  const auto changed = [&](const std::function<void(Job&)>& change) {
    Job job = small_job();
    change(job);
    const Settings now = settings_of(job);
    std::vector<std::string> keys;
    for (size_t i = 0; i < now.size(); ++i) {
      if (now[i].text != before.at(i).text) keys.push_back(now[i].key);
    }
    return keys;
  };
  EXPECT_THAT(changed([](Job& job) { job.engine.seed = 1; }), ElementsAre("seed"));
  EXPECT_THAT(changed([](Job& job) { job.order = {}; }), ElementsAre("order"));
  EXPECT_THAT(changed([](Job& job) { job.epoch_size = 3; }), ElementsAre("epoch_size"));
  EXPECT_THAT(changed([](Job& job) { job.engine.schedule.total_steps = 7; }), ElementsAre("total_steps"));
  EXPECT_THAT(changed([](Job& job) { job.engine.spikes.window = 7; }), ElementsAre("spike_window"));
  EXPECT_THAT(changed([](Job& job) { job.engine.max_skips_in_a_row = 7; }),
              ElementsAre("max_skips_in_a_row"));
  EXPECT_THAT(changed([](Job& job) { job.engine.scaler.init_scale = 2; }), ElementsAre("init_scale"));
  EXPECT_THAT(changed([](Job& job) { job.engine.scaler.growth_factor = 3; }), ElementsAre("growth_factor"));
  EXPECT_THAT(changed([](Job& job) { job.engine.scaler.backoff_factor = 0.25; }),
              ElementsAre("backoff_factor"));
  EXPECT_THAT(changed([](Job& /*job*/) { at::set_num_threads(at::get_num_threads() + 1); }),
              ElementsAre("threads"));
  at::set_num_threads(at::get_num_threads() - 1);
  EXPECT_THAT(changed([](Job& job) { job.engine.optimizer.kind = OptimizerKind::kSgd; }), ElementsAre("opt"));
  EXPECT_THAT(changed([](Job& job) { job.engine.make_optimizer = [](auto) { return nullptr; }; }),
              ElementsAre("opt"));
  EXPECT_THAT(changed([](Job& job) { job.engine.optimizer.groups = parse_param_groups("*.bias:lr=0.5"); }),
              ElementsAre("param_groups"));
  EXPECT_THAT(changed([](Job& job) { job.engine.optimizer.decay_all = true; }), ElementsAre("decay_all"));
  EXPECT_THAT(changed([](Job& job) { job.engine.optimizer.beta1 = 0.5; }), ElementsAre("beta1"));
  EXPECT_THAT(changed([](Job& job) { job.engine.optimizer.beta2 = 0.5; }), ElementsAre("beta2"));
  EXPECT_THAT(changed([](Job& job) { job.engine.optimizer.eps = 0.5; }), ElementsAre("eps"));
  EXPECT_THAT(changed([](Job& job) { job.engine.optimizer.momentum = 0.5; }), ElementsAre("momentum"));
  EXPECT_THAT(changed([](Job& job) { job.engine.optimizer.nesterov = true; }), ElementsAre("nesterov"));
  EXPECT_THAT(changed([](Job& job) { job.engine.optimizer.weight_decay = 0.5; }),
              ElementsAre("weight_decay"));
  EXPECT_THAT(changed([](Job& job) { job.engine.schedule.function = [](int64_t) { return 1.0; }; }),
              ElementsAre("sched"));
  EXPECT_THAT(changed([](Job& job) { job.engine.schedule.shape = LrShape::kLinear; }), ElementsAre("sched"));
  EXPECT_THAT(changed([](Job& job) { job.engine.schedule.peak = 0.5; }), ElementsAre("lr"));
  EXPECT_THAT(changed([](Job& job) { job.engine.schedule.min = 0.001; }), ElementsAre("min_lr"));
  EXPECT_THAT(changed([](Job& job) { job.engine.schedule.warmup_steps = 3; }), ElementsAre("warmup_steps"));
  EXPECT_THAT(changed([](Job& job) { job.engine.clip_grad = 3; }), ElementsAre("clip_grad"));
  EXPECT_THAT(changed([](Job& job) { job.engine.ema_decay = 0.5; }), ElementsAre("ema"));
  EXPECT_THAT(changed([](Job& job) { job.engine.micro_batch = 3; }), ElementsAre("batch_size"));
  EXPECT_THAT(changed([](Job& job) { job.engine.precision = Precision::kBf16; }), ElementsAre("precision"));
  EXPECT_THAT(changed([](Job& job) { job.engine.scaler.growth_interval = 3; }),
              ElementsAre("growth_interval"));
  EXPECT_THAT(changed([](Job& job) { job.engine.spikes.z_score = 3; }), ElementsAre("spike_zscore"));
}

TEST(Job, SettingsOfItsOwnStandBesideThoseOfTheEngine) {
  Job job = small_job();
  const Settings engine = settings_of(job);
  job.settings = {{"width", "64"}, {"lr", "by hand"}};
  const Settings all = settings_of(job);
  ASSERT_EQ(all.size(), engine.size() + 1);
  EXPECT_EQ(all[0].key, "width");
  EXPECT_EQ(all[1].text, "by hand");
  EXPECT_EQ(std::ranges::count(all, "lr", &Setting::key), 1);
  job.settings_are_complete = true;
  EXPECT_EQ(settings_of(job).size(), 2U);
}

// An epoch of one window without weight says nothing of the data; as many windows as the data have, do.
TEST(Job, AShortEpochWithoutWeightIsNotTheEnd) {
  for (const int64_t sound_windows : {1, 0}) {
    RankedRun run(1);
    run.job.epoch_size = run.job.global_batch;
    run.job.order = [=](int64_t epoch) { return at::arange(4) + 4 * (epoch % 6); };
    run.job.length.epochs = 12;
    run.prepare = [&](int64_t, RankedRun::Rank& rank) {
      rank.job.task.weight = [num_windows = std::make_shared<int64_t>(0), sound_windows](const Batch& batch) {
        return (*num_windows)++ % 6 < sound_windows ? static_cast<double>(batch.size()) : 0.0;
      };
    };
    run.run();
    if (sound_windows > 0) {
      ASSERT_EQ(run.ranks[0]->error, "");
      EXPECT_EQ(run.ranks[0]->end->update, 2);
    } else {
      EXPECT_THAT(run.ranks[0]->error, HasSubstr("no sample of the last 6 windows"));
    }
  }
}

TEST(Job, AnEpochMayRepeatSamplesAndLeaveThemOut) {
  const auto make = [](RankedRun& run) {
    run.job.epoch_size = 10;
    run.job.order = [](int64_t epoch) { return (at::arange(10, at::kLong) * 7 + epoch) % 5; };
    run.job.length.epochs = 4;  // of three windows
  };
  RankedRun whole(1);
  make(whole);
  whole.run();
  ASSERT_EQ(whole.ranks[0]->error, "");
  EXPECT_EQ(whole.ranks[0]->end->update, 12);
  EXPECT_EQ(whole.ranks[0]->end->samples, 40);
  RankedRun run(1);
  make(run);
  run.job.length.stop_after = 5;
  run.run();
  run.job.length.stop_after.reset();
  run.go_on();
  EXPECT_TRUE(same_bytes(run.ranks[0]->weights(), whole.ranks[0]->weights()));
}

// Not of the process, which may have had other runs before.
TEST(Job, TheTimeOfARunBeginsWithItsTrainer) {
  RankedRun run(1);
  constexpr double kLimit = 4;  // the run takes a hundredth of that
  while (process_seconds() < kLimit) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  run.job.length = {.epochs = 1, .max_seconds = kLimit};
  run.run();
  ASSERT_EQ(run.ranks[0]->error, "");
  EXPECT_EQ(run.ranks[0]->end->reason, EndReason::kDone);
}

TEST(Job, WhatIsKnownOfTheOutputFolderReachesTheSinks) {
  RankedRun run(1);
  Job job = small_job();
  job.save.grace_seconds = 1e-9;  // no disk takes a save in a nanosecond
  Trainer trainer(job, solo());
  const std::vector<std::string> warnings = trainer.prepare_output(posix_file_system(), run.out.path());
  ASSERT_EQ(warnings.size(), 1U);
  RecordingSink sink;
  const StopToken stop;
  trainer.run(sink, stop, posix_file_system(), run.out.path());
  ASSERT_FALSE(sink.events.empty());
  EXPECT_EQ(std::get<Warning>(sink.events[0].event).text, warnings[0]);
  ASSERT_EQ(sink.starts.size(), 1U);
  EXPECT_EQ(sink.starts[0].plan.output_dir, run.out.path());
}

// Counts draws that are not those of an evaluation of the run with seed 21.
class DrawnData final : public Dataset {
 public:
  [[nodiscard]] const DatasetSpec& spec() const override { return spec_; }
  [[nodiscard]] int64_t size() const override { return 5; }
  [[nodiscard]] Batch gather(const at::Tensor& ids, const Draw& draw) const override {
    if (draw.seed != 21 || draw.training) ++num_wrong;
    return {.inputs = at::zeros({ids.size(0), 4}), .targets = at::zeros({ids.size(0)}, at::kLong)};
  }
  [[nodiscard]] std::string fingerprint() const override { return "drawn"; }

  mutable std::atomic<int> num_wrong = 0;

 private:
  DatasetSpec spec_{.name = "drawn", .input_shape = {4}, .num_classes = 3};
};

TEST(Job, AnEvaluationDrawsWithTheSeedOfTheRun) {
  RankedRun run(1);
  const auto data = std::make_shared<DrawnData>();
  run.job.engine.seed = 21;
  run.prepare = [&](int64_t, RankedRun::Rank& rank) { rank.job.data.eval = data; };
  run.run();
  ASSERT_EQ(run.ranks[0]->error, "");
  EXPECT_TRUE(run.ranks[0]->end->last_eval);
  EXPECT_EQ(data->num_wrong, 0);
}

TEST(Job, AnOutputFolderThatWasLookedAtBeforeAResumeIsLookedAtAgain) {
  RankedRun run(1);
  run.job.length.stop_after = 3;
  run.run();
  const ScratchDir other;
  const std::optional<FoundCheckpoint> found = newest_checkpoint(run.out.path());
  Job job = small_job();
  job.length.stop_after = 1;
  job.accept_drift = true;
  Trainer trainer(job, solo());
  (void)trainer.prepare_output(posix_file_system(), other.path());
  trainer.resume(*found);
  RecordingSink sink;
  const StopToken stop;
  trainer.run(sink, stop, posix_file_system(), other.path());
  EXPECT_EQ(sink.windows.size(), 1U);
  // A run that goes on from elsewhere saves before its first window.
  EXPECT_THAT(list_checkpoints(other.path()), ElementsAre(3, 4));
}

}  // namespace
}  // namespace gradstep::testing

// The flags of `train`, one entry each, in the order of the help; those that keep a run alive are in
// keep_alive_flags.cpp.
#include "config/train_flags.h"

#include "base/byte_count.h"
#include "base/machine.h"
#include "base/seed.h"
#include "gradstep/base/error.h"
#include "gradstep/step/optimizer.h"
#include "report/report_to.h"

namespace gradstep {
namespace {

constexpr char kLength[] = "Length and batch";
constexpr char kOptimizer[] = "Optimizer";
constexpr char kSchedule[] = "Schedule";
constexpr char kMachine[] = "Precision and machine";
constexpr char kOutput[] = "Output";

Flag<RunConfig> seed_flag(FlagInfo info) {
  info.kind = ValueKind::kInteger;
  info.expects = "a whole number from 0 to " + std::to_string(kMaxSeed);
  return value_flag(
      std::move(info), &RunConfig::seed, parse_unsigned, [](uint64_t value) { return std::to_string(value); },
      [](uint64_t value) { return value <= kMaxSeed; });
}

Flag<RunConfig> device_flag(FlagInfo info) {
  return text_flag(std::move(info), &RunConfig::device, "auto, cpu, cuda or cuda:N", is_device_text);
}

void add_data(TrainFlags& flags) {
  flags.push_back(real_flag(
      {.key = "val_fraction",
       .group = kDataGroup,
       .metavar = "X",
       .help = "Part of the training set to split off and evaluate on; 0: the evaluation part of the data."},
      &RunConfig::val_fraction, kBelowOne));
  flags.push_back(enum_flag(
      {.key = "order",
       .group = kDataGroup,
       .metavar = "NAME",
       .help = "Order of the samples: shuffled anew in every epoch, or sequential."},
      &RunConfig::order, {{"shuffled", SampleOrder::kShuffled}, {"sequential", SampleOrder::kSequential}}));
  flags.push_back(
      integer_flag({.key = "workers",
                    .on_resume = OnResume::kFree,
                    .group = kDataGroup,
                    .short_name = 'j',
                    .metavar = "N",
                    .help = "Threads that prepare windows ahead; 0: none. The order never depends on it.",
                    .aliases = {"num_workers"}},
                   &RunConfig::workers, {.min = 0, .max = 1024}));
}

void add_length(TrainFlags& flags) {
  flags.push_back(optional_integer_flag({.key = "epochs",
                                         .on_resume = OnResume::kNotCompared,
                                         .group = kLength,
                                         .metavar = "N",
                                         .help = "Passes over the training set.",
                                         .default_text = "1, or as many as --max-steps takes"},
                                        &RunConfig::epochs, kCount));
  flags.push_back(optional_integer_flag(
      {.key = "max_steps",
       .on_resume = OnResume::kNotCompared,
       .group = kLength,
       .metavar = "N",
       .help = "Updates after which the run ends. With --epochs too, whichever comes first."},
      &RunConfig::max_steps, kCount));
  flags.push_back(
      integer_flag({.key = "batch_size",
                    .on_resume = OnResume::kWarned,
                    .group = kLength,
                    .short_name = 'b',
                    .metavar = "N",
                    .help = "Samples that go through the model at once (a micro-batch), per rank."},
                   &RunConfig::batch_size, kCount));
  flags.push_back(integer_flag({.key = "grad_accum_steps",
                                .on_resume = OnResume::kNotCompared,
                                .group = kLength,
                                .metavar = "N",
                                .help = "Micro-batches in one update.",
                                .aliases = {"gradient_accumulation_steps"}},
                               &RunConfig::grad_accum_steps, kCount));
  flags.push_back(optional_integer_flag({.key = "global_batch_size",
                                         .on_resume = OnResume::kNotCompared,
                                         .group = kLength,
                                         .metavar = "N",
                                         .help = "Samples in one update, over all ranks; replaces "
                                                 "--grad-accum-steps. No size must divide another."},
                                        &RunConfig::global_batch_size, kCount));
}

bool are_param_groups(const std::string& text) {
  if (text == "none") return true;
  try {
    (void)parse_param_groups(text);
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

void add_optimizer(TrainFlags& flags) {
  flags.push_back(choice_flag({.key = "opt",
                               .group = kOptimizer,
                               .metavar = "NAME",
                               .help = "Optimizer: adamw or sgd.",
                               .aliases = {"optimizer"}},
                              &RunConfig::opt, {"adamw", "sgd"}));
  flags.push_back(real_flag({.key = "lr",
                             .on_resume = OnResume::kWarned,
                             .group = kOptimizer,
                             .metavar = "X",
                             .help = "Peak learning rate.",
                             .aliases = {"learning_rate"}},
                            &RunConfig::lr, kNotNegative));
  flags.push_back(real_flag({.key = "weight_decay",
                             .on_resume = OnResume::kWarned,
                             .group = kOptimizer,
                             .metavar = "X",
                             .help = "Weight decay of the matrices.",
                             .aliases = {"wd"}},
                            &RunConfig::weight_decay, kNotNegative));
  flags.push_back(switch_flag({.key = "decay_all",
                               .on_resume = OnResume::kWarned,
                               .group = kOptimizer,
                               .help = "Decay biases and other one-dimensional parameters too."},
                              &RunConfig::decay_all));
  flags.push_back(text_flag(
      {.key = "param_groups",
       .group = kOptimizer,
       .metavar = "GROUPS",
       .help =
           "Parameters that train differently, by pattern of their names: "
           "'embed.*:lr=0.1,wd=0; head.*:frozen'. The first pattern that matches holds; lr is a factor, wd "
           "a weight decay.",
       .default_text = "none"},
      &RunConfig::param_groups, "none, or groups such as 'embed.*:lr=0.1,wd=0; head.*:frozen'",
      are_param_groups));
  flags.push_back(real_flag({.key = "beta1",
                             .on_resume = OnResume::kWarned,
                             .group = kOptimizer,
                             .metavar = "X",
                             .help = "adamw: decay of the mean of gradients."},
                            &RunConfig::beta1, kBelowOne));
  flags.push_back(real_flag({.key = "beta2",
                             .on_resume = OnResume::kWarned,
                             .group = kOptimizer,
                             .metavar = "X",
                             .help = "adamw: decay of the mean of squared gradients."},
                            &RunConfig::beta2, kBelowOne));
  flags.push_back(real_flag({.key = "eps",
                             .on_resume = OnResume::kWarned,
                             .group = kOptimizer,
                             .metavar = "X",
                             .help = "adamw: added to the root of the second moment."},
                            &RunConfig::eps, {.min = 1.17549435e-38}));  // the smallest normal number of fp32
  flags.push_back(real_flag({.key = "momentum",
                             .on_resume = OnResume::kWarned,
                             .group = kOptimizer,
                             .metavar = "X",
                             .help = "sgd: momentum; 0: none."},
                            &RunConfig::momentum, kBelowOne));
  flags.push_back(switch_flag({.key = "nesterov",
                               .on_resume = OnResume::kWarned,
                               .group = kOptimizer,
                               .help = "sgd: Nesterov's form of momentum."},
                              &RunConfig::nesterov));
  flags.push_back(
      real_flag({.key = "clip_grad",
                 .on_resume = OnResume::kWarned,
                 .group = kOptimizer,
                 .metavar = "X",
                 .help = "Largest norm of the whole gradient; a larger one is scaled down to it. 0: off.",
                 .aliases = {"max_grad_norm"}},
                &RunConfig::clip_grad, kNotNegative));
}

void add_ema(TrainFlags& flags) {
  flags.push_back(real_flag(
      {.key = "ema",
       .on_resume = OnResume::kWarned,
       .group = kOptimizer,
       .metavar = "X",
       .help = "Decay of a moving average of the parameters, evaluated and written beside them; 0: off."},
      &RunConfig::ema, kBelowOne));
}

void add_schedule(TrainFlags& flags) {
  flags.push_back(choice_flag({.key = "sched",
                               .group = kSchedule,
                               .metavar = "NAME",
                               .help = "Learning rate after the warm-up: cosine, linear or constant."},
                              &RunConfig::sched, {"cosine", "linear", "constant"}));
  flags.push_back(
      optional_integer_flag({.key = "warmup_steps",
                             .group = kSchedule,
                             .metavar = "N",
                             .help = "Updates over which the learning rate rises to its peak; 0: none.",
                             .default_text = "auto, 100 or a tenth of the run, whichever is less"},
                            &RunConfig::warmup_steps, kCountOrZero, "auto"));
  flags.push_back(real_flag({.key = "min_lr",
                             .group = kSchedule,
                             .metavar = "X",
                             .help = "Learning rate at which cosine and linear end."},
                            &RunConfig::min_lr, kNotNegative));
}

void add_machine(TrainFlags& flags) {
  flags.push_back(
      choice_flag({.key = "precision",
                   .on_resume = OnResume::kWarned,
                   .group = kMachine,
                   .metavar = "NAME",
                   .help = "fp32, bf16, fp16, or auto: what the device is measured to run fastest."},
                  &RunConfig::precision, {"auto", "fp32", "bf16", "fp16"}));
  flags.push_back(choice_flag({.key = "matmul",
                               .on_resume = OnResume::kWarned,
                               .group = kMachine,
                               .metavar = "NAME",
                               .help = "Kernels for fp32 matrix products on a CPU: auto, torch or onednn."},
                              &RunConfig::matmul, {"auto", "torch", "onednn"}));
  flags.push_back(device_flag({.key = "device",
                               .on_resume = OnResume::kWarned,
                               .group = kMachine,
                               .metavar = "NAME",
                               .help = "auto, cpu, cuda or cuda:N."}));
  flags.push_back(integer_flag(
      {.key = "threads",
       .on_resume = OnResume::kWarned,
       .group = kMachine,
       .metavar = "N",
       .help = "Threads that compute.",
       .default_text = "0, OMP_NUM_THREADS, or what is fastest of the cores within the cgroup quota"},
      &RunConfig::threads, {.min = 0, .max = kMaxThreads}));
  flags.push_back(text_flag(
      {.key = "memory_limit",
       .on_resume = OnResume::kFree,
       .group = kMachine,
       .metavar = "BYTES",
       .help = "Memory for tensors on the CPU, such as 8g. If it runs out, the micro-batch is halved.",
       .default_text = "auto, what is free at the start"},
      &RunConfig::memory_limit, "auto, none, or bytes such as 512m or 8g", [](const std::string& text) {
        return text == "auto" || text == "none" || parse_byte_count(text).has_value();
      }));
  flags.push_back(seed_flag({.key = "seed",
                             .group = kMachine,
                             .metavar = "N",
                             .help = "Seed of initial weights, order and dropout."}));
  flags.push_back(switch_flag({.key = "deterministic",
                               .on_resume = OnResume::kWarned,
                               .group = kMachine,
                               .help = "Only operations that give the same bits in each run."},
                              &RunConfig::deterministic));
}

void add_output(TrainFlags& flags) {
  flags.push_back(path_flag({.key = "output_dir",
                             .on_resume = OnResume::kFree,
                             .group = kOutput,
                             .short_name = 'o',
                             .metavar = "DIR",
                             .help = "Folder for config.toml, metrics.jsonl, checkpoints and the model.",
                             .default_text = "runs/<dataset>-<model>-<time>"},
                            &RunConfig::output_dir));
  flags.push_back(
      interval_flag({.key = "eval_interval",
                     .on_resume = OnResume::kFree,
                     .group = kOutput,
                     .metavar = "WHEN",
                     .help = "Evaluate every N updates, Nep epochs, Ns, Nm or Nh; 0: only at the end."},
                    &RunConfig::eval_interval));
  flags.push_back(integer_flag({.key = "early_stop_patience",
                                .on_resume = OnResume::kFree,
                                .group = kOutput,
                                .metavar = "N",
                                .help = "Stop after N evaluations without a better --best-metric; 0: off."},
                               &RunConfig::early_stop_patience, kCountOrZero));
  flags.push_back(integer_flag({.key = "log_interval",
                                .on_resume = OnResume::kFree,
                                .group = kOutput,
                                .metavar = "N",
                                .help = "Windows from one line to the next; 0: no lines."},
                               &RunConfig::log_interval, kCountOrZero));
  flags.push_back(text_flag(
      {.key = "report_to",
       .on_resume = OnResume::kFree,
       .group = kOutput,
       .metavar = "NAMES",
       .help = "Reports besides metrics.jsonl, each in <output-dir>/NAME: " + known_report_names() + "."},
      &RunConfig::report_to, known_report_names(),
      [](const std::string& text) { return parse_report_names(text).has_value(); }));
  flags.push_back(switch_flag({.key = "quiet",
                               .on_resume = OnResume::kNotCompared,
                               .group = kOutput,
                               .short_name = 'q',
                               .help = "Print the last line only."},
                              &RunConfig::quiet));
  flags.push_back(switch_flag({.key = "dry_run",
                               .on_resume = OnResume::kNotCompared,
                               .group = kOutput,
                               .help = "Print the plan of the run and stop.",
                               .of_one_start = true},
                              &RunConfig::dry_run));
}

TrainFlags make_train_flags() {
  TrainFlags flags;
  add_data(flags);
  add_length(flags);
  add_optimizer(flags);
  add_ema(flags);
  add_schedule(flags);
  add_trouble_flags(flags);
  add_machine(flags);
  add_checkpoint_flags(flags);
  add_output(flags);
  const RunConfig defaults;
  for (Flag<RunConfig>& flag : flags) {
    if (flag.info.default_text.empty() && !flag.info.is_switch()) flag.info.default_text = flag.get(defaults);
  }
  return flags;
}

}  // namespace

const std::vector<Flag<RunConfig>>& train_flags() {
  static const TrainFlags flags = make_train_flags();
  return flags;
}

}  // namespace gradstep

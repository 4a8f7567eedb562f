// The flag table of `train`, and how numbers, switches and devices are read from text and written to it.
#include "run/flag_table.h"

#include <charconv>
#include <cmath>
#include <system_error>

#include "gradstep/base/error.h"
#include "gradstep/data/dataset.h"
#include "gradstep/model/registry.h"

namespace gradstep {
namespace {

constexpr char kData[] = "Data";
constexpr char kModel[] = "Model";
constexpr char kLength[] = "Length and batch";
constexpr char kOptimizer[] = "Optimizer";
constexpr char kSchedule[] = "Schedule";
constexpr char kMachine[] = "Precision and machine";
constexpr char kOutput[] = "Output";

// Large enough for any job, small enough that their products stay within 64 bits.
constexpr IntegerRange kCount{.min = 1, .max = 1'000'000'000};
constexpr IntegerRange kCountOrZero{.min = 0, .max = 1'000'000'000};
constexpr RealRange kNotNegative{.min = 0};
constexpr RealRange kBelowOne{.min = 0, .max = 1, .max_included = false};

template <class Number>
std::optional<Number> parse_whole(const std::string& text) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return value;
}

std::optional<Interval> interval_from(const std::string& text) {
  try {
    return parse_interval(text);
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

Flag<RunConfig> interval_flag(FlagInfo info, Interval RunConfig::* field) {
  info.expects = "N (updates), Nep (epochs), Ns, Nm or Nh (seconds, minutes, hours), or 0";
  return value_flag(
      std::move(info), field, interval_from, [](const Interval& value) { return to_string(value); },
      [](const Interval& value) { return value.value == 0 || interval_from(to_string(value)) == value; });
}

Flag<RunConfig> seed_flag(FlagInfo info) {
  info.kind = ValueKind::kInteger;
  info.expects = "a whole number from 0 to 18446744073709551615";
  return value_flag(
      std::move(info), &RunConfig::seed, parse_unsigned, [](uint64_t value) { return std::to_string(value); },
      [](uint64_t) { return true; });
}

Flag<RunConfig> device_flag(FlagInfo info) {
  return text_flag(std::move(info), &RunConfig::device, "auto, cpu, cuda or cuda:N", is_device_text);
}

using Flags = std::vector<Flag<RunConfig>>;

void add_data(Flags& flags) {
  flags.push_back(choice_flag({.key = "dataset",
                               .group = kData,
                               .metavar = "NAME",
                               .help = "Data set: " + expectation(dataset_names()) + "."},
                              &RunConfig::dataset, dataset_names()));
  flags.push_back(
      text_flag({.key = "data_dir",
                 .group = kData,
                 .metavar = "DIR",
                 .help = "Folder with the files of the data set.",
                 .aliases = {"data_path"},
                 .default_text = "the Debian package's folder for fashion-mnist, else data/<name>"},
                &RunConfig::data_dir));
  flags.push_back(real_flag(
      {.key = "val_fraction",
       .group = kData,
       .metavar = "X",
       .help = "Part of the training set to split off for evaluation; 0: evaluate on the test set."},
      &RunConfig::val_fraction, kBelowOne));
  flags.push_back(
      integer_flag({.key = "workers",
                    .group = kData,
                    .short_name = 'j',
                    .metavar = "N",
                    .help = "Threads that prepare windows ahead; 0: none. The order never depends on it.",
                    .aliases = {"num_workers"}},
                   &RunConfig::workers, {.min = 0, .max = 1024}));
}

void add_model(Flags& flags) {
  flags.push_back(choice_flag({.key = "model",
                               .group = kModel,
                               .metavar = "NAME",
                               .help = "Model to train: " + expectation(model_names()) + "."},
                              &RunConfig::model, model_names()));
  flags.push_back(
      integer_flag({.key = "hidden", .group = kModel, .metavar = "N", .help = "Width of the hidden layer."},
                   &RunConfig::hidden, {.min = 1, .max = 1'000'000}));
  flags.push_back(real_flag({.key = "dropout",
                             .group = kModel,
                             .metavar = "X",
                             .help = "Probability that a hidden unit is dropped in training."},
                            &RunConfig::dropout, kBelowOne));
}

void add_length(Flags& flags) {
  flags.push_back(optional_integer_flag({.key = "epochs",
                                         .group = kLength,
                                         .metavar = "N",
                                         .help = "Passes over the training set.",
                                         .default_text = "1, or as many as --max-steps takes"},
                                        &RunConfig::epochs, kCount));
  flags.push_back(optional_integer_flag(
      {.key = "max_steps",
       .group = kLength,
       .metavar = "N",
       .help = "Updates after which the run ends. With --epochs too, whichever comes first."},
      &RunConfig::max_steps, kCount));
  flags.push_back(
      integer_flag({.key = "batch_size",
                    .group = kLength,
                    .short_name = 'b',
                    .metavar = "N",
                    .help = "Samples that go through the model at once (a micro-batch), per rank."},
                   &RunConfig::batch_size, kCount));
  flags.push_back(integer_flag({.key = "grad_accum_steps",
                                .group = kLength,
                                .metavar = "N",
                                .help = "Micro-batches in one update.",
                                .aliases = {"gradient_accumulation_steps"}},
                               &RunConfig::grad_accum_steps, kCount));
  flags.push_back(optional_integer_flag({.key = "global_batch_size",
                                         .group = kLength,
                                         .metavar = "N",
                                         .help = "Samples in one update, over all ranks; replaces "
                                                 "--grad-accum-steps. No size must divide another."},
                                        &RunConfig::global_batch_size, kCount));
}

void add_optimizer(Flags& flags) {
  flags.push_back(choice_flag({.key = "opt",
                               .group = kOptimizer,
                               .metavar = "NAME",
                               .help = "Optimizer: adamw or sgd.",
                               .aliases = {"optimizer"}},
                              &RunConfig::opt, {"adamw", "sgd"}));
  flags.push_back(real_flag({.key = "lr",
                             .group = kOptimizer,
                             .metavar = "X",
                             .help = "Peak learning rate.",
                             .aliases = {"learning_rate"}},
                            &RunConfig::lr, kNotNegative));
  flags.push_back(real_flag({.key = "weight_decay",
                             .group = kOptimizer,
                             .metavar = "X",
                             .help = "Weight decay of the matrices.",
                             .aliases = {"wd"}},
                            &RunConfig::weight_decay, kNotNegative));
  flags.push_back(switch_flag({.key = "decay_all",
                               .group = kOptimizer,
                               .help = "Decay biases and other one-dimensional parameters too."},
                              &RunConfig::decay_all));
  flags.push_back(real_flag(
      {.key = "beta1", .group = kOptimizer, .metavar = "X", .help = "adamw: decay of the mean of gradients."},
      &RunConfig::beta1, kBelowOne));
  flags.push_back(real_flag({.key = "beta2",
                             .group = kOptimizer,
                             .metavar = "X",
                             .help = "adamw: decay of the mean of squared gradients."},
                            &RunConfig::beta2, kBelowOne));
  flags.push_back(real_flag({.key = "eps",
                             .group = kOptimizer,
                             .metavar = "X",
                             .help = "adamw: added to the root of the second moment."},
                            &RunConfig::eps, kNotNegative));
  flags.push_back(
      real_flag({.key = "momentum", .group = kOptimizer, .metavar = "X", .help = "sgd: momentum; 0: none."},
                &RunConfig::momentum, kBelowOne));
  flags.push_back(
      switch_flag({.key = "nesterov", .group = kOptimizer, .help = "sgd: Nesterov's form of momentum."},
                  &RunConfig::nesterov));
  flags.push_back(
      real_flag({.key = "clip_grad",
                 .group = kOptimizer,
                 .metavar = "X",
                 .help = "Largest norm of the whole gradient, scaled down to it where above; 0: off.",
                 .aliases = {"max_grad_norm"}},
                &RunConfig::clip_grad, kNotNegative));
  flags.push_back(
      real_flag({.key = "label_smoothing",
                 .group = kOptimizer,
                 .metavar = "X",
                 .help = "Share of the target that is spread evenly over the classes, in training only."},
                &RunConfig::label_smoothing, {.min = 0, .max = 1}));
}

void add_schedule(Flags& flags) {
  flags.push_back(choice_flag({.key = "sched",
                               .group = kSchedule,
                               .metavar = "NAME",
                               .help = "Learning rate after the warm-up: cosine, linear or constant."},
                              &RunConfig::sched, {"cosine", "linear", "constant"}));
  flags.push_back(integer_flag({.key = "warmup_steps",
                                .group = kSchedule,
                                .metavar = "N",
                                .help = "Updates over which the learning rate rises to its peak; 0: none."},
                               &RunConfig::warmup_steps, kCountOrZero));
  flags.push_back(real_flag({.key = "min_lr",
                             .group = kSchedule,
                             .metavar = "X",
                             .help = "Learning rate at which cosine and linear end."},
                            &RunConfig::min_lr, kNotNegative));
}

void add_machine(Flags& flags) {
  flags.push_back(
      choice_flag({.key = "precision",
                   .group = kMachine,
                   .metavar = "NAME",
                   .help = "fp32, bf16, fp16, or auto: what the device is measured to run fastest."},
                  &RunConfig::precision, {"auto", "fp32", "bf16", "fp16"}));
  flags.push_back(choice_flag({.key = "matmul",
                               .group = kMachine,
                               .metavar = "NAME",
                               .help = "Kernels for fp32 matrix products on a CPU: auto, torch or onednn."},
                              &RunConfig::matmul, {"auto", "torch", "onednn"}));
  flags.push_back(device_flag(
      {.key = "device", .group = kMachine, .metavar = "NAME", .help = "auto, cpu, cuda or cuda:N."}));
  flags.push_back(integer_flag({.key = "threads",
                                .group = kMachine,
                                .metavar = "N",
                                .help = "Threads that compute.",
                                .default_text = "0, the cores within the cgroup quota"},
                               &RunConfig::threads, {.min = 0, .max = 4096}));
  flags.push_back(seed_flag({.key = "seed",
                             .group = kMachine,
                             .metavar = "N",
                             .help = "Seed of initial weights, order and dropout."}));
  flags.push_back(switch_flag({.key = "deterministic",
                               .group = kMachine,
                               .help = "Only operations that give the same bits in each run."},
                              &RunConfig::deterministic));
}

void add_output(Flags& flags) {
  flags.push_back(text_flag({.key = "output_dir",
                             .group = kOutput,
                             .short_name = 'o',
                             .metavar = "DIR",
                             .help = "Folder for config.toml, metrics.jsonl and the model.",
                             .default_text = "runs/<dataset>-<model>-<time>"},
                            &RunConfig::output_dir));
  flags.push_back(
      interval_flag({.key = "eval_interval",
                     .group = kOutput,
                     .metavar = "WHEN",
                     .help = "Evaluate every N updates, Nep epochs, Ns, Nm or Nh; 0: only at the end."},
                    &RunConfig::eval_interval));
  flags.push_back(integer_flag({.key = "early_stop_patience",
                                .group = kOutput,
                                .metavar = "N",
                                .help = "Stop after N evaluations without a better val_acc; 0: off."},
                               &RunConfig::early_stop_patience, kCountOrZero));
  flags.push_back(integer_flag({.key = "log_interval",
                                .group = kOutput,
                                .metavar = "N",
                                .help = "Windows from one line to the next; 0: no lines."},
                               &RunConfig::log_interval, kCountOrZero));
  flags.push_back(
      switch_flag({.key = "quiet", .group = kOutput, .short_name = 'q', .help = "Print the last line only."},
                  &RunConfig::quiet));
  flags.push_back(
      switch_flag({.key = "dry_run", .group = kOutput, .help = "Print the plan of the run and stop."},
                  &RunConfig::dry_run));
}

Flags make_train_flags() {
  Flags flags;
  add_data(flags);
  add_model(flags);
  add_length(flags);
  add_optimizer(flags);
  add_schedule(flags);
  add_machine(flags);
  add_output(flags);
  const RunConfig defaults;
  for (Flag<RunConfig>& flag : flags) {
    if (flag.info.default_text.empty() && !flag.info.is_switch()) flag.info.default_text = flag.get(defaults);
  }
  return flags;
}

}  // namespace

const std::vector<Flag<RunConfig>>& train_flags() {
  static const Flags flags = make_train_flags();
  return flags;
}

std::optional<int64_t> parse_integer(const std::string& text) { return parse_whole<int64_t>(text); }

std::optional<uint64_t> parse_unsigned(const std::string& text) { return parse_whole<uint64_t>(text); }

std::optional<double> parse_real(const std::string& text) {
  const std::optional<double> value = parse_whole<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<bool> parse_switch(const std::string& text) {
  if (text == "true" || text == "1" || text == "yes" || text == "on") return true;
  if (text == "false" || text == "0" || text == "no" || text == "off") return false;
  return std::nullopt;
}

bool in_range(int64_t value, const IntegerRange& range) { return value >= range.min && value <= range.max; }

bool in_range(double value, const RealRange& range) {
  if (!std::isfinite(value) || value < range.min) return false;
  return range.max_included ? value <= range.max : value < range.max;
}

std::string expectation(const IntegerRange& range) {
  const std::string min = std::to_string(range.min);
  if (range.max == std::numeric_limits<int64_t>::max()) return "a whole number of at least " + min;
  return "a whole number from " + min + " to " + std::to_string(range.max);
}

std::string expectation(const RealRange& range) {
  const std::string min = shortest(range.min);
  if (std::isinf(range.max)) return "a number of at least " + min;
  if (range.max_included) return "a number from " + min + " to " + shortest(range.max);
  return "a number of at least " + min + " and less than " + shortest(range.max);
}

std::string expectation(const std::vector<std::string>& choices) {
  std::string text;
  for (size_t i = 0; i < choices.size(); ++i) {
    if (i > 0) text += i + 1 == choices.size() ? " or " : ", ";
    text += choices[i];
  }
  return text;
}

bool is_device_text(const std::string& text) {
  if (text == "auto" || text == "cpu" || text == "cuda") return true;
  if (text.rfind("cuda:", 0) != 0 || text.size() == 5 || text.size() > 8) return false;
  return text.find_first_not_of("0123456789", 5) == std::string::npos;
}

std::string flag_spelling(const std::string& key) {
  std::string text = "--" + key;
  for (char& c : text) {
    if (c == '_') c = '-';
  }
  return text;
}

std::string variable_spelling(const std::string& key) {
  std::string text = "GRADSTEP_" + key;
  for (char& c : text) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return text;
}

std::string complaint(const std::string& name, const std::string& text, const FlagInfo& info) {
  return name + " '" + text + "': must be " + info.expects;
}

}  // namespace gradstep

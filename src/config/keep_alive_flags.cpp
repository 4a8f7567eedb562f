// The flags that keep a run alive: numbers that go wrong, checkpoints, limits of time.
#include "config/train_flags.h"
#include "gradstep/base/error.h"

namespace gradstep {
namespace {

constexpr char kTrouble[] = "Numbers that go wrong";
constexpr char kCheckpoints[] = "Checkpoints and limits";

EnumChoices<OnTrouble> reactions() {
  return {{"skip", OnTrouble::kSkip}, {"stop", OnTrouble::kStop}, {"rollback", OnTrouble::kRollBack}};
}

EnumChoices<OnTrouble> reactions_or_off() {
  EnumChoices<OnTrouble> choices = reactions();
  choices.insert(choices.begin(), {"off", OnTrouble::kOff});
  return choices;
}

// Seconds, or none (which is 0).
Flag<RunConfig> duration_flag(FlagInfo info, double RunConfig::* field) {
  info.expects = "a time such as 30s, 90m or 3h, or none";
  return value_flag(
      std::move(info), field,
      [](const std::string& text) -> std::optional<double> {
        if (text == "none" || text == "0") return 0.0;
        const std::optional<Interval> time = interval_from(text);
        return time && time->unit == Interval::Unit::kSeconds ? std::optional(time->value) : std::nullopt;
      },
      [](double value) {
        return value == 0 ? std::string("none") : to_string(Interval{value, Interval::Unit::kSeconds});
      },
      [](double value) { return value == 0 || in_range(value, kNotNegative); });
}

}  // namespace

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

void add_trouble_flags(TrainFlags& flags) {
  flags.push_back(
      enum_flag({.key = "on_nonfinite",
                 .on_resume = OnResume::kWarned,
                 .group = kTrouble,
                 .metavar = "WHAT",
                 .help = "If gradients are not finite: skip the update, stop, or rollback, which goes "
                         "back to the newest checkpoint and steps over the window."},
                &RunConfig::on_nonfinite, reactions()));
  flags.push_back(enum_flag({.key = "on_spike",
                             .on_resume = OnResume::kWarned,
                             .group = kTrouble,
                             .metavar = "WHAT",
                             .help = "If loss or gradient norm leap up: off, skip, stop or rollback."},
                            &RunConfig::on_spike, reactions_or_off()));
  flags.push_back(real_flag({.key = "spike_zscore",
                             .on_resume = OnResume::kWarned,
                             .group = kTrouble,
                             .metavar = "X",
                             .help = "Standard deviations above the mean that make a spike."},
                            &RunConfig::spike_zscore, kNotNegative));
  flags.push_back(integer_flag({.key = "spike_window",
                                .on_resume = OnResume::kWarned,
                                .group = kTrouble,
                                .metavar = "N",
                                .help = "Windows that mean and deviation are taken over."},
                               &RunConfig::spike_window, {.min = 2, .max = 1'000'000}));
  flags.push_back(integer_flag({.key = "max_rollbacks",
                                .on_resume = OnResume::kFree,
                                .group = kTrouble,
                                .metavar = "N",
                                .help = "Rollbacks after which the run ends as diverged."},
                               &RunConfig::max_rollbacks, kCountOrZero));
}

void add_checkpoint_flags(TrainFlags& flags) {
  flags.push_back(
      path_flag({.key = "resume",
                 .on_resume = OnResume::kNotCompared,
                 .group = kCheckpoints,
                 .metavar = "WHAT",
                 .help = "Go on from a checkpoint: auto (the newest one in --output-dir, or a new run if "
                         "it has none), none, or the path of a checkpoint or of a run.",
                 .of_one_start = true},
                &RunConfig::resume));
  flags.push_back(
      switch_flag({.key = "accept_drift",
                   .on_resume = OnResume::kNotCompared,
                   .group = kCheckpoints,
                   .help = "Go on although data, seed, batch, length, schedule or optimizer differ from the "
                           "checkpoint's. Moments that it lacks begin at 0.",
                   .of_one_start = true},
                  &RunConfig::accept_drift));
  flags.push_back(
      interval_flag({.key = "save_interval",
                     .on_resume = OnResume::kFree,
                     .group = kCheckpoints,
                     .metavar = "WHEN",
                     .help = "Save every N updates, Nep epochs, Ns, Nm or Nh; 0: only at the end."},
                    &RunConfig::save_interval));
  flags.push_back(integer_flag({.key = "keep_checkpoints",
                                .on_resume = OnResume::kFree,
                                .group = kCheckpoints,
                                .metavar = "N",
                                .help = "Newest checkpoints to keep, besides the best one; 0: all."},
                               &RunConfig::keep_checkpoints, kCountOrZero));
  flags.push_back(text_flag(
      {.key = "best_metric",
       .on_resume = OnResume::kNotCompared,  // the metric that it names is compared instead
       .group = kCheckpoints,
       .metavar = "NAME",
       .help =
           "What makes an evaluation the best: val_loss or another value of its row, such as val_acc; with "
           "--ema also ema_val_loss and the like.",
       .default_text = "auto, the first metric of the task"},
      &RunConfig::best_metric, "auto, or the name of a value such as val_loss or ema_val_acc",
      [](const std::string& text) {
        return text == "auto" || text.starts_with("val_") || text.starts_with("ema_val_");
      }));
  flags.push_back(enum_flag(
      {.key = "on_save_error",
       .on_resume = OnResume::kFree,
       .group = kCheckpoints,
       .metavar = "WHAT",
       .help = "If a checkpoint cannot be written: stop, or continue and try again at the "
               "next one."},
      &RunConfig::on_save_error, {{"stop", OnSaveError::kStop}, {"continue", OnSaveError::kContinue}}));
  flags.push_back(
      duration_flag({.key = "max_time",
                     .on_resume = OnResume::kNotCompared,
                     .group = kCheckpoints,
                     .metavar = "TIME",
                     .help = "Save and leave within this time from the start of the program: 30s, 90m, 3h.",
                     .of_one_start = true},
                    &RunConfig::max_time));
  flags.push_back(
      duration_flag({.key = "grace",
                     .on_resume = OnResume::kNotCompared,
                     .group = kCheckpoints,
                     .metavar = "TIME",
                     .help = "Time between the scheduler's signal and its kill. A warning says if a save "
                             "would take longer."},
                    &RunConfig::grace));
  flags.push_back(
      optional_integer_flag({.key = "stop_after",
                             .on_resume = OnResume::kNotCompared,
                             .group = kCheckpoints,
                             .metavar = "N",
                             .help = "Save and leave after N updates of this start; the schedule stays "
                                     "that of the whole run.",
                             .of_one_start = true},
                            &RunConfig::stop_after, kCount));
}

}  // namespace gradstep

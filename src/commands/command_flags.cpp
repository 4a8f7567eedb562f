// no torch
// The flags of the subcommands but train.
#include "base/machine.h"
#include "commands/command_info.h"

namespace gradstep {
namespace {

constexpr char kCheckpoints[] = "Checkpoints";
constexpr char kProof[] = "Proof";
constexpr char kEval[] = "Evaluation";
constexpr char kReplay[] = "Replay";
constexpr char kDoctor[] = "Checks";

std::vector<Flag<EvalOptions>> make_eval_flags() {
  const auto known_precision = [](const std::string& text) {
    return text.empty() || text == "fp32" || text == "bf16" || text == "fp16";
  };
  return {
      text_flag({.key = "precision",
                 .group = kEval,
                 .metavar = "NAME",
                 .help = "fp32, bf16 or fp16.",
                 .default_text = "the one recorded in the model"},
                &EvalOptions::precision, "fp32, bf16 or fp16", known_precision),
      text_flag({.key = "device",
                 .group = kEval,
                 .metavar = "NAME",
                 .help = "auto, cpu, cuda or cuda:N.",
                 .default_text = "auto"},
                &EvalOptions::device, "auto, cpu, cuda or cuda:N", is_device_text),
      integer_flag({.key = "threads",
                    .group = kEval,
                    .metavar = "N",
                    .help = "Threads that compute.",
                    .default_text = "0, OMP_NUM_THREADS or the cores within the cgroup quota"},
                   &EvalOptions::threads, {.min = 0, .max = kMaxThreads}),
      integer_flag({.key = "batch_size",
                    .group = kEval,
                    .short_name = 'b',
                    .metavar = "N",
                    .help = "Samples that go through the model at once; the result hardly depends on it.",
                    .default_text = "0, chosen by the program"},
                   &EvalOptions::batch_size, {.min = 0, .max = 1'000'000'000}),
      path_flag({.key = "predictions",
                 .group = kEval,
                 .metavar = "FILE.csv",
                 .help = "Write the prediction for each sample there.",
                 .default_text = "none"},
                &EvalOptions::predictions_path),
      switch_flag(
          {.key = "force",
           .group = kEval,
           .help = "Replace the file of --predictions, and measure on a part held out of other data."},
          &EvalOptions::force),
      switch_flag({.key = "json", .group = kEval, .help = "Print one JSON object instead of lines."},
                  &EvalOptions::json),
      switch_flag({.key = "quiet", .group = kEval, .short_name = 'q', .help = "Print the last line only."},
                  &EvalOptions::quiet),
  };
}

std::vector<Flag<ReplayOptions>> make_replay_flags() {
  return {
      text_flag({.key = "device",
                 .group = kReplay,
                 .metavar = "NAME",
                 .help = "auto, cpu, cuda or cuda:N.",
                 .default_text = "as recorded"},
                &ReplayOptions::device, "auto, cpu, cuda or cuda:N",
                [](const std::string& text) { return text.empty() || is_device_text(text); }),
      integer_flag({.key = "threads",
                    .group = kReplay,
                    .metavar = "N",
                    .help = "Threads that compute; 0: the cores within the cgroup quota.",
                    .default_text = "as recorded"},
                   &ReplayOptions::threads, {.min = 0, .max = kMaxThreads}),
  };
}

}  // namespace

const std::vector<Flag<EvalOptions>>& eval_flags() {
  static const std::vector<Flag<EvalOptions>> flags = make_eval_flags();
  return flags;
}

const std::vector<Flag<ReplayOptions>>& replay_flags() {
  static const std::vector<Flag<ReplayOptions>> flags = make_replay_flags();
  return flags;
}

const std::vector<Flag<CkptLsOptions>>& ckpt_ls_flags() {
  static const std::vector<Flag<CkptLsOptions>> flags{
      switch_flag({.key = "verify",
                   .group = kCheckpoints,
                   .help = "Check the hashes of all files as well, not only their sizes."},
                  &CkptLsOptions::verify),
      switch_flag({.key = "json", .group = kCheckpoints, .help = "Print one JSON object instead of a table."},
                  &CkptLsOptions::json),
  };
  return flags;
}

const std::vector<Flag<CkptVerifyOptions>>& ckpt_verify_flags() {
  static const std::vector<Flag<CkptVerifyOptions>> flags{
      switch_flag({.key = "json", .group = kCheckpoints, .help = "Print one JSON object instead of lines."},
                  &CkptVerifyOptions::json),
      switch_flag({.key = "quiet",
                   .group = kCheckpoints,
                   .short_name = 'q',
                   .help = "No lines; the exit code tells."},
                  &CkptVerifyOptions::quiet),
  };
  return flags;
}

const std::vector<Flag<CkptExportOptions>>& ckpt_export_flags() {
  static const std::vector<Flag<CkptExportOptions>> flags{
      choice_flag({.key = "format",
                   .group = kCheckpoints,
                   .metavar = "NAME",
                   .help = "safetensors, or pt for torch.load.",
                   .default_text = "by the ending of the file"},
                  &CkptExportOptions::format, {"safetensors", "pt"}),
      switch_flag({.key = "ema",
                   .group = kCheckpoints,
                   .help = "The moving averages in place of the parameters, of a run with train --ema."},
                  &CkptExportOptions::ema),
      switch_flag({.key = "force", .group = kCheckpoints, .help = "Replace the file if it is there already."},
                  &CkptExportOptions::force),
      switch_flag({.key = "quiet", .group = kCheckpoints, .short_name = 'q', .help = "Print nothing."},
                  &CkptExportOptions::quiet),
  };
  return flags;
}

const std::vector<Flag<VerifyResumeOptions>>& verify_resume_flags() {
  static const std::vector<Flag<VerifyResumeOptions>> flags{
      integer_flag({.key = "updates",
                    .group = kProof,
                    .metavar = "N",
                    .help = "Updates before the stop.",
                    .default_text = "20"},
                   &VerifyResumeOptions::updates, {.min = 1, .max = 1'000'000'000}),
      integer_flag(
          {.key = "more", .group = kProof, .metavar = "N", .help = "Updates after it.", .default_text = "20"},
          &VerifyResumeOptions::more, {.min = 1, .max = 1'000'000'000}),
      switch_flag({.key = "kill",
                   .group = kProof,
                   .help = "Kill the first part (SIGKILL) once its last checkpoint is there, instead of "
                           "letting it end."},
                  &VerifyResumeOptions::kill),
      path_flag({.key = "output_dir",
                 .group = kProof,
                 .short_name = 'o',
                 .metavar = "DIR",
                 .help = "New folder for both runs and their logs, which stays.",
                 .default_text = "a temporary folder, which stays only when something differs or fails"},
                &VerifyResumeOptions::output_dir),
      switch_flag({.key = "quiet", .group = kProof, .short_name = 'q', .help = "Print the last line only."},
                  &VerifyResumeOptions::quiet),
  };
  return flags;
}

const std::vector<Flag<DoctorOptions>>& doctor_flags() {
  static const std::vector<Flag<DoctorOptions>> flags{
      switch_flag({.key = "json", .group = kDoctor, .help = "Print one JSON object instead of lines."},
                  &DoctorOptions::json),
      switch_flag({.key = "quiet", .group = kDoctor, .short_name = 'q', .help = "Print the last line only."},
                  &DoctorOptions::quiet),
  };
  return flags;
}

}  // namespace gradstep

// no torch
// The flags of ckpt ls, verify and export, and of verify-resume.
#include "app/command_info.h"

namespace gradstep {
namespace {

constexpr char kCheckpoints[] = "Checkpoints";
constexpr char kProof[] = "Proof";

}  // namespace

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
      text_flag({.key = "output_dir",
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

}  // namespace gradstep

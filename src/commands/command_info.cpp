// The subcommands with their positional arguments and examples.
#include "commands/command_info.h"

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "app/program.h"
#include "app/run_settings.h"
#include "commands/run_command.h"
#include "config/config_file.h"

namespace gradstep {
namespace {

template <class Config>
std::vector<FlagInfo> infos(const std::vector<Flag<Config>>& flags) {
  std::vector<FlagInfo> result;
  for (const Flag<Config>& flag : flags) result.push_back(flag.info);
  return result;
}

constexpr char kEval[] = "Evaluation";
constexpr char kReplay[] = "Replay";

// In front of a command's own: the flags by which the user may give other data than the recorded ones.
std::vector<FlagInfo> with_data_flags(std::vector<FlagInfo> own, const RunSettings& settings,
                                      const std::string& group) {
  std::vector<FlagInfo> flags = settings.data_flags();
  for (FlagInfo& flag : flags) {
    flag.group = group;
    flag.default_text = "as recorded";
  }
  flags.insert(flags.end(), own.begin(), own.end());
  return flags;
}

// The examples are written for gradstep.
void name_examples(CommandInfo& info, const std::string& name) {
  constexpr char kOurs[] = "gradstep ";
  for (std::string& example : info.examples) {
    const size_t place = example.find(kOurs);
    if (place != std::string::npos) example.replace(place, sizeof kOurs - 1, name + " ");
  }
}

std::vector<CommandInfo> make_commands() {
  const RunSettings settings(program().catalog);
  std::vector<FlagInfo> train = settings.flags();
  train.push_back(config_flag());
  std::vector<CommandInfo> all{
      {.name = "train",
       .summary = "Train a model and write it, its rows and its settings to a folder.",
       .positional = "",
       .positional_help = "",
       .flags = std::move(train),
       .examples = {"gradstep train --epochs 3 -o runs/first",
                    "gradstep train --dry-run --batch-size 128 --grad-accum-steps 1",
                    "GRADSTEP_LR=3e-4 gradstep train -c runs/first/config.toml -o runs/second"},
       .run = command_train},
      {.name = "eval",
       .summary = "Loss and metrics of a saved model on the evaluation part of its data.",
       .positional = "MODEL",
       .positional_help = "A model.safetensors, or the output folder of a run.",
       .flags = with_data_flags(infos(eval_flags()), settings, kEval),
       .examples = {"gradstep eval runs/first",
                    "gradstep eval runs/first/best.safetensors --predictions predictions.csv"},
       .run = command_eval},
      {.name = "replay",
       .summary = "Run an update that went wrong again, and compare what each module gave.",
       .positional = "FILE",
       .positional_help = "A black box, as a run leaves it in its output folder.",
       .flags = with_data_flags(infos(replay_flags()), settings, kReplay),
       .examples = {"gradstep replay runs/first/blackbox-00000120.safetensors"},
       .run = command_replay},
      {.name = "ckpt ls",
       .summary = "List the checkpoints of a run.",
       .positional = "RUN",
       .positional_help = "The output folder of a run, or one checkpoint.",
       .flags = infos(ckpt_ls_flags()),
       .examples = {"gradstep ckpt ls runs/first", "gradstep ckpt ls runs/first --verify --json"},
       .run = command_ckpt_ls},
      {.name = "ckpt verify",
       .summary = "Check sizes, hashes and contents of checkpoints; exit code 4 if one is broken.",
       .positional = "PATH",
       .positional_help = "The output folder of a run, for all its checkpoints, or one checkpoint.",
       .flags = infos(ckpt_verify_flags()),
       .examples = {"gradstep ckpt verify runs/first",
                    "gradstep ckpt verify runs/first/checkpoints/step-00000120"},
       .run = command_ckpt_verify},
      {.name = "ckpt diff",
       .summary = "Compare two checkpoints, tensors bit by bit; exit code 1 if they differ.",
       .positional = "A B",
       .positional_help =
           "Two checkpoints, or two runs, whose newest whole checkpoints are compared. Paths, times, and "
           "settings of what is shown or kept do not count.",
       .flags = {},
       .examples = {"gradstep ckpt diff runs/first runs/second"},
       .run = command_ckpt_diff},
      {.name = "ckpt export",
       .summary = "Write the weights of a checkpoint as safetensors, or as .pt for Python's torch.load.",
       .positional = "PATH FILE",
       .positional_help = "A run (its newest whole checkpoint), a checkpoint or a model.safetensors; and the "
                          "file to write, ending in .safetensors or .pt.",
       .flags = infos(ckpt_export_flags()),
       .examples = {"gradstep ckpt export runs/first weights.pt",
                    "gradstep ckpt export runs/first averages.safetensors --ema"},
       .run = command_ckpt_export},
      {.name = "verify-resume",
       .summary =
           "Prove that a run that stopped and went on equals an unbroken one, in all tensors and rows; "
           "exit code 1 if not.",
       .positional = "",
       .positional_help = "",
       .rest = "TRAIN-FLAGS",
       .flags = infos(verify_resume_flags()),
       .examples = {"gradstep verify-resume -- --precision bf16 --dropout 0.1",
                    "gradstep verify-resume --updates 5 --kill -- -c runs/first/config.toml"},
       .run = command_verify_resume},
      {.name = "env",
       .summary = "Versions, processor features, devices and measured precisions.",
       .positional = "",
       .positional_help = "",
       .flags = {},
       .examples = {"gradstep env"},
       .run = command_env},
      {.name = "doctor",
       .summary =
           "Check this machine and the folder of a run, one line each with what to do; exit code 0 only when "
           "all is well, 1 if there are only warnings, else that of the first problem.",
       .positional = "[RUN]",
       .positional_help = "The output folder of a run, which may be going on. Nothing in it is changed. "
                          "Without it the machine and the current folder are checked.",
       .flags = infos(doctor_flags()),
       .examples = {"gradstep doctor", "gradstep doctor runs/first", "gradstep doctor runs/first --json"},
       .run = command_doctor},
  };
  for (const ExtraCommand& extra : program().extra) {
    const auto place = std::ranges::find(all, extra.before, &CommandInfo::name);
    all.insert(place, extra.info);
  }
  for (CommandInfo& info : all) name_examples(info, program().name);
  return all;
}

}  // namespace

std::vector<std::string> positional_names(const CommandInfo& command) {
  std::string names = command.positional;
  std::erase_if(names, [](char c) { return c == '[' || c == ']'; });  // of an optional one
  std::istringstream words(names);
  return {std::istream_iterator<std::string>(words), {}};
}

const std::vector<CommandInfo>& commands() {
  static const std::vector<CommandInfo> all = make_commands();
  return all;
}

const CommandInfo& command(const std::string& name) {
  for (const CommandInfo& info : commands()) {
    if (info.name == name) return info;
  }
  throw std::logic_error("no subcommand " + name);
}

}  // namespace gradstep

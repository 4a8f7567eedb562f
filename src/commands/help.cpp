// Lays the flags of a subcommand out in groups and columns, for a terminal and as Markdown.
// no torch
#include "commands/help.h"

#include <algorithm>

#include "app/program.h"

namespace gradstep {
namespace {

struct ExitCodeLine {
  const char* code;
  const char* meaning;
};
constexpr ExitCodeLine kExitCodes[] = {
    {"0", "done, or ended as asked by --max-time or --stop-after, checkpoint and model saved"},
    {"1",
     "unexpected error, a fault of the program; ckpt diff, verify-resume, replay: something differs; doctor: "
     "warnings alone"},
    {"2", "a flag, the config file or the output folder cannot be used"},
    {"3",
     "numbers went wrong: too many updates in a row were not finite, weights are not finite, or a policy "
     "such as "
     "--on-nonfinite or --on-spike ended the run"},
    {"4", "no usable checkpoint or model file, or none can be written"},
    {"5", "the data set is missing or broken"},
    {"6", "out of memory"},
    {"129", "stopped by SIGHUP, checkpoint and model saved"},
    {"130", "stopped by SIGINT, checkpoint and model saved (a second SIGINT: at once, nothing saved)"},
    {"138", "stopped by SIGUSR1, checkpoint and model saved"},
    {"140", "stopped by SIGUSR2, checkpoint and model saved"},
    {"143", "stopped by SIGTERM, checkpoint and model saved"},
};
constexpr size_t kFlagColumn = 32;
constexpr size_t kCommandColumn = 17;
constexpr char kWords[] =
    "An update is one optimizer step. A window is all the samples of one update; a micro-batch is the part "
    "of it that goes through the model at once.";
constexpr char kPrecedence[] =
    "A flag wins over its environment variable GRADSTEP_<FLAG> (GRADSTEP_BATCH_SIZE=64), the variable over "
    "the config file (batch_size = 64), and the file over the default. --nesterov=false turns a switch off.";

// Writes `prefix` padded to `indent` columns, then `text` wrapped at `width`, with further lines indented as
// well.
std::string hanging(const std::string& prefix, const std::string& text, size_t indent, size_t width) {
  std::string result;
  std::string line = prefix;
  if (prefix.size() + 2 > indent && indent > 0 && !prefix.empty()) {
    result = prefix + "\n";
    line.clear();
  }
  line.resize(indent, ' ');
  bool empty = true;
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find(' ', start), text.size());
    const std::string word = text.substr(start, end - start);
    if (!empty && line.size() + 1 + word.size() > width) {
      result += line + "\n";
      line.assign(indent, ' ');
      empty = true;
    }
    line += (empty ? "" : " ") + word;
    empty = false;
    start = end + 1;
  }
  return result + line + "\n";
}

// "--batch-size N"
std::string long_form(const FlagInfo& flag) {
  return flag_spelling(flag.key) + (flag.metavar.empty() ? "" : " " + flag.metavar);
}

std::string aliases(const FlagInfo& flag, const char* separator) {
  std::string text;
  for (const std::string& alias : flag.aliases)
    text += (text.empty() ? "" : separator) + flag_spelling(alias);
  return text;
}

std::string flag_help(const FlagInfo& flag, size_t width) {
  const std::string prefix =
      (flag.short_name == 0 ? std::string("      ") : std::string("  -") + flag.short_name + ", ") +
      long_form(flag);
  std::string text = flag.help;
  if (!flag.aliases.empty()) text += " Also " + aliases(flag, ", ") + ".";
  if (!flag.default_text.empty()) text += " [" + flag.default_text + "]";
  return hanging(prefix, text, kFlagColumn, width);
}

// Groups in the order of their first flag, with the flags in table order.
std::vector<std::pair<std::string, std::vector<const FlagInfo*>>> grouped(const CommandInfo& command) {
  std::vector<std::pair<std::string, std::vector<const FlagInfo*>>> groups;
  for (const FlagInfo& flag : command.flags) {
    auto found = std::find_if(groups.begin(), groups.end(),
                              [&](const auto& group) { return group.first == flag.group; });
    if (found == groups.end()) found = groups.insert(found, {flag.group, {}});
    found->second.push_back(&flag);
  }
  return groups;
}

std::string usage_line(const CommandInfo& command) {
  return program().name + " " + command.name + (command.positional.empty() ? "" : " " + command.positional) +
         (command.flags.empty() ? "" : " [flags]") + (command.rest.empty() ? "" : " -- " + command.rest);
}

std::string exit_code_help(size_t width) {
  std::string text = "Exit codes\n";
  for (const ExitCodeLine& line : kExitCodes)
    text += hanging(std::string("  ") + line.code, line.meaning, 7, width);
  return text;
}

// | inside a cell would end it; < > would be taken for HTML.
std::string cell(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '|') {
      result += "\\|";
    } else if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else {
      result += c;
    }
  }
  return result;
}

std::string markdown_flag(const FlagInfo& flag) {
  std::string text = "| `" + long_form(flag) + "`";
  if (flag.short_name != 0) text += std::string(", `-") + flag.short_name + "`";
  text += " | " + (flag.is_switch() ? "off" : cell(flag.default_text)) + " | " + cell(flag.help);
  if (!flag.aliases.empty()) text += " Also `" + aliases(flag, "`, `") + "`.";
  return text + " |\n";
}

std::string markdown_command(const CommandInfo& command) {
  std::string text = "## " + program().name + " " + command.name + "\n\n" + command.summary + "\n\n    " +
                     usage_line(command) + "\n";
  if (!command.positional.empty())
    text += "\n`" + command.positional + "`: " + command.positional_help + "\n";
  if (command.name == "train") text += std::string("\n") + kWords + "\n\n" + cell(kPrecedence) + "\n";
  for (const auto& [group, flags] : grouped(command)) {
    text += "\n### " + group + "\n\n| Flag | Default | Meaning |\n| --- | --- | --- |\n";
    for (const FlagInfo* flag : flags) text += markdown_flag(*flag);
  }
  text += "\nExamples:\n\n";
  for (const std::string& example : command.examples) text += "    " + example + "\n";
  return text + "\n";
}

// The blocks with an empty line between two.
std::string joined(const std::vector<std::string>& blocks) {
  std::string text;
  for (const std::string& block : blocks) {
    if (!text.empty()) text += '\n';
    text += block;
  }
  return text;
}

}  // namespace

std::string program_help(int width) {
  const auto columns = static_cast<size_t>(width);
  std::string text = "usage: " + program().name + " COMMAND [flags]\n\nCommands\n";
  for (const CommandInfo& command : commands())
    text += hanging("  " + command.name, command.summary, kCommandColumn, columns);
  text += "\nFlags\n";
  text += hanging("  -h, --help", "This text; after a command: its flags.", 16, columns);
  text += hanging("  -q, --quiet", "Print the last line only.", 16, columns);
  text += hanging("  --version", "Versions of gradstep and LibTorch.", 16, columns);
  return text + "\nStart with: " + program().name + " train --epochs 3 -o runs/first\n";
}

std::string group_help(const std::string& group, int width) {
  std::string text = "usage: " + program().name + " " + group + " COMMAND [flags]\n\nCommands\n";
  for (const CommandInfo& command : commands()) {
    if (!command.name.starts_with(group + " ")) continue;
    text += hanging("  " + command.name.substr(group.size() + 1), command.summary, kCommandColumn,
                    static_cast<size_t>(width));
  }
  return text + "\nMore: " + program().name + " " + group + " COMMAND --help\n";
}

std::string command_help(const CommandInfo& command, int width) {
  const auto columns = static_cast<size_t>(width);
  std::vector<std::string> blocks{"usage: " + usage_line(command) + "\n"};
  const std::string defaults = command.flags.empty() ? "" : " Defaults are in [brackets].";
  blocks.push_back(hanging("", command.summary + defaults, 0, columns));
  if (!command.positional.empty()) {
    blocks.push_back(hanging("  " + command.positional, command.positional_help, 13, columns));
  }
  if (command.name == "train") blocks.push_back(hanging("", kWords, 0, columns));
  for (const auto& [group, flags] : grouped(command)) {
    blocks.push_back(group + "\n");
    for (const FlagInfo* flag : flags) blocks.back() += flag_help(*flag, columns);
  }
  if (command.name == "train") blocks.push_back(hanging("", kPrecedence, 0, columns));
  blocks.push_back(exit_code_help(columns));
  blocks.emplace_back("Examples\n");
  for (const std::string& example : command.examples) blocks.back() += "  " + example + "\n";
  return joined(blocks);
}

std::string markdown_help() {
  std::string text =
      "# Command line\n\n"
      "`make docs` writes this page from the flag tables; a test compares the two.\n\n"
      "`gradstep --help` and `gradstep COMMAND --help` say the same in the terminal. `gradstep --version` "
      "prints the\n"
      "versions of gradstep and LibTorch, and `--quiet` prints the last line only. In the name of a flag `_` "
      "and `-` mean\n"
      "the same. If a flag is given twice, the last value counts.\n\n";
  for (const CommandInfo& command : commands()) text += markdown_command(command);
  text += "## Exit codes\n\n| Code | Meaning |\n| --- | --- |\n";
  for (const ExitCodeLine& line : kExitCodes)
    text += std::string("| ") + line.code + " | " + line.meaning + " |\n";
  return text;
}

}  // namespace gradstep

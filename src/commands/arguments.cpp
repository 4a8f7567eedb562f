// no torch
// Registers the flags of a table with CLI11, lets it split the arguments, and words what it refuses in our
// way.
#include "commands/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "app/program.h"
#include "base/nearest.h"
#include "base/utf8.h"
#include "gradstep/base/error.h"

namespace gradstep {
namespace {

std::vector<std::string> spellings(const FlagInfo& flag) {
  std::vector<std::string> names{flag_spelling(flag.key)};
  for (const std::string& alias : flag.aliases) names.push_back(flag_spelling(alias));
  if (flag.short_name != 0) names.push_back({'-', flag.short_name});
  return names;
}

// "--batch_size=3" -> "--batch-size=3". Words after a lone "--" stay as they are.
std::vector<std::string> with_dashes(std::vector<std::string> arguments) {
  for (std::string& argument : arguments) {
    if (argument == "--") break;
    if (argument.rfind("--", 0) != 0) continue;
    const auto name_end =
        argument.begin() + static_cast<std::ptrdiff_t>(std::min(argument.find('='), argument.size()));
    std::replace(argument.begin(), name_end, '_', '-');
  }
  return arguments;
}

// Returns the words after the first lone "--", and removes them and the "--".
std::vector<std::string> take_rest(std::vector<std::string>& arguments) {
  const auto end = std::find(arguments.begin(), arguments.end(), "--");
  if (end == arguments.end()) return {};
  std::vector<std::string> rest(end + 1, arguments.end());
  arguments.erase(end, arguments.end());
  return rest;
}

class Parser {
 public:
  explicit Parser(const CommandInfo& command) : command_(command) {
    app_.set_help_flag();
    app_.allow_extras();
    for (const FlagInfo& flag : command.flags) {
      std::string names;
      for (const std::string& name : spellings(flag)) {
        names += (names.empty() ? "" : ",") + name;
        known_.push_back(name);
      }
      options_.push_back(flag.is_switch() ? app_.add_flag(names) : app_.add_option(names));
      options_.back()->take_last();
    }
    for (const std::string& name : positional_names(command)) positionals_.push_back(app_.add_option(name));
  }

  Arguments parse(std::vector<std::string> arguments) {
    std::vector<std::string> rest;
    if (!command_.rest.empty()) rest = take_rest(arguments);
    arguments = with_dashes(std::move(arguments));
    refuse_missing_values(arguments);
    std::reverse(arguments.begin(), arguments.end());  // CLI11 takes a vector from its back
    try {
      app_.parse(arguments);
    } catch (const CLI::ParseError& error) {
      const std::string what = error.what();
      refuse(what.substr(0, what.find('\n')), "");
    }
    refuse_extras(app_.remaining());
    Arguments result = collect();
    result.rest = std::move(rest);
    return result;
  }

 private:
  [[noreturn]] void refuse(const std::string& what, const std::string& hint) const {
    throw ConfigError(what + hint + (hint.empty() ? "; see " : " See ") + program().name + " " +
                      command_.name + " --help");
  }

  // A flag at the end, "--flag=", or a flag where the value of another is due.
  void refuse_missing_values(const std::vector<std::string>& arguments) const {
    for (size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i) {
      const std::string& argument = arguments[i];
      const bool empty_value = argument.rfind("--", 0) == 0 && argument.back() == '=';
      const std::string name = empty_value ? argument.substr(0, argument.size() - 1) : argument;
      if (!takes_value(name)) {
        if (empty_value && is_known(name))
          refuse(argument + " has no value: leave out the =, or give true or false", "");
        continue;
      }
      if (empty_value || i + 1 == arguments.size() || arguments[i + 1].empty())
        refuse(name + " needs a value", "");
      const std::string& value = arguments[i + 1];
      if (value.rfind("--", 0) == 0 && is_known(value.substr(0, value.find('=')))) {
        refuse(name + " needs a value, but " + value + " follows", "");
      }
      ++i;
    }
  }

  void refuse_extras(std::vector<std::string> extras) const {
    const auto mark = std::find(extras.begin(), extras.end(), "--");  // CLI11 leaves it among them
    if (!positionals_.empty() && mark != extras.end()) extras.erase(mark);
    if (extras.empty()) return;
    const auto is_flag = [](const std::string& text) { return text.size() > 1 && text[0] == '-'; };
    const auto flag = std::find_if(extras.begin(), extras.end(), is_flag);
    if (flag == extras.end()) refuse("unexpected argument '" + shortened(extras.front()) + "'", "");
    const std::string name = flag->substr(0, flag->find('='));
    if (name.size() == 2) refuse("unknown flag " + name, "");
    // "-lr" is meant as "--lr".
    std::string hint = did_you_mean(name.rfind("--", 0) == 0 ? name : "-" + name, known_);
    if (hint.empty() && !command_.rest.empty()) hint = "; flags of train go after --.";
    refuse("unknown flag " + shortened(name), hint);
  }

  [[nodiscard]] bool takes_value(const std::string& name) const {
    for (const FlagInfo& flag : command_.flags) {
      const std::vector<std::string> names = spellings(flag);
      if (std::find(names.begin(), names.end(), name) != names.end()) return !flag.is_switch();
    }
    return false;
  }

  [[nodiscard]] bool is_known(const std::string& name) const {
    return std::find(known_.begin(), known_.end(), name) != known_.end();
  }

  [[nodiscard]] Arguments collect() const {
    Arguments result;
    for (size_t i = 0; i < options_.size(); ++i) {
      if (options_[i]->count() > 0)
        result.flags.emplace_back(command_.flags[i].key, options_[i]->results().back());
    }
    for (const CLI::Option* positional : positionals_) {
      if (positional->count() > 0) result.positionals.push_back(positional->results().back());
    }
    return result;
  }

  const CommandInfo& command_;
  CLI::App app_;
  std::vector<CLI::Option*> options_;  // one a flag of the command
  std::vector<CLI::Option*> positionals_;
  std::vector<std::string> known_;
};

}  // namespace

Arguments parse_arguments(const CommandInfo& command, const std::vector<std::string>& arguments) {
  return Parser(command).parse(arguments);
}

const std::vector<std::string>& required(const CommandInfo& info, const Arguments& arguments) {
  const std::vector<std::string> names = positional_names(info);
  if (arguments.positionals.size() < names.size()) {
    const std::string& missing = names[arguments.positionals.size()];
    throw ConfigError(info.name + " needs a " + missing + ": " + info.positional_help + " See " +
                      program().name + " " + info.name + " --help");
  }
  return arguments.positionals;
}

}  // namespace gradstep

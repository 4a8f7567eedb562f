// The flag table: one entry a flag, with its names, its help, how its text is read and how it is written.
// Command line, environment, config file, help and docs/cli.md all derive from it. What is here knows neither
// CLI11 nor TOML.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/number_text.h"
#include "config/path_text.h"
#include "config/run_config.h"
#include "gradstep/config/flags.h"

namespace gradstep {

// A flag of the settings struct Config.
template <class Config>
struct Flag {
  FlagInfo info;
  std::function<bool(Config&, const std::string&)>
      set;  // false, and nothing set: the text is not what `expects` says
  std::function<std::string(const Config&)> get;  // text that set() takes back
  std::function<bool(const Config&)> valid;       // the value is what `expects` says
};

// Both ends belong to it.
struct IntegerRange {
  int64_t min = 0;
  int64_t max = std::numeric_limits<int64_t>::max();
};
struct RealRange {
  double min = 0;
  double max = std::numeric_limits<double>::infinity();
  bool max_included = true;
};

[[nodiscard]] bool in_range(int64_t value, const IntegerRange& range);
[[nodiscard]] bool in_range(double value, const RealRange& range);
[[nodiscard]] std::string expectation(const IntegerRange& range);
[[nodiscard]] std::string expectation(const RealRange& range);
[[nodiscard]] std::string expectation(const std::vector<std::string>& choices);
// "auto", "cpu", "cuda" or "cuda:N".
[[nodiscard]] bool is_device_text(const std::string& text);

// "batch_size" -> "--batch-size"; "batch_size" -> "GRADSTEP_BATCH_SIZE".
[[nodiscard]] std::string flag_spelling(const std::string& key);
[[nodiscard]] std::string variable_spelling(const std::string& key);
// "--lr '12x': must be a number of at least 0"; `name` is the flag, variable or key as the user wrote it.
[[nodiscard]] std::string complaint(const std::string& name, const std::string& text, const FlagInfo& info);

// The flags of `train` that every program has, in the order of the help: every field of RunConfig once, but
// dataset and model, whose choices the program's recipes give.
[[nodiscard]] const std::vector<Flag<RunConfig>>& train_flags();

// The flag over the settings that it fills, which must outlive it.
template <class Config>
[[nodiscard]] BoundFlag bind_flag(const Flag<Config>& flag, Config& config) {
  return {.info = flag.info,
          .set = [&config, set = flag.set](const std::string& text) { return set(config, text); },
          .get = [&config, get = flag.get] { return get(config); },
          .valid = [&config, valid = flag.valid] { return valid(config); }};
}

// ---- Makers: a flag from the member that it fills ----

// A value that `parse` reads whole, `accepts` checks and `print` writes. All other makers use this one.
template <class Config, class Value, class Parse, class Print, class Accepts>
Flag<Config> value_flag(FlagInfo info, Value Config::* field, Parse parse, Print print, Accepts accepts) {
  return {.info = std::move(info),
          .set =
              [=](Config& config, const std::string& text) {
                const auto value = parse(text);
                if (!value || !accepts(*value)) return false;
                config.*field = *value;
                return true;
              },
          .get = [=](const Config& config) { return print(config.*field); },
          .valid = [=](const Config& config) { return accepts(config.*field); }};
}

template <class Config>
Flag<Config> integer_flag(FlagInfo info, int64_t Config::* field, IntegerRange range) {
  info.kind = ValueKind::kInteger;
  info.expects = expectation(range);
  return value_flag(
      std::move(info), field, parse_integer, [](int64_t value) { return std::to_string(value); },
      [range](int64_t value) { return in_range(value, range); });
}

// A whole number, or `absent`, which stands for no value.
template <class Config>
Flag<Config> optional_integer_flag(FlagInfo info, std::optional<int64_t> Config::* field, IntegerRange range,
                                   const std::string& absent = "none") {
  using Value = std::optional<int64_t>;
  info.kind = ValueKind::kInteger;
  info.expects = expectation(range) + ", or " + absent;
  return value_flag(
      std::move(info), field,
      [absent](const std::string& text) -> std::optional<Value> {
        if (text == absent) return Value{};
        const Value value = parse_integer(text);
        return value ? std::optional<Value>(value) : std::nullopt;
      },
      [absent](const Value& value) { return value ? std::to_string(*value) : absent; },
      [range](const Value& value) { return !value || in_range(*value, range); });
}

template <class Config>
Flag<Config> real_flag(FlagInfo info, double Config::* field, RealRange range) {
  info.kind = ValueKind::kReal;
  info.expects = expectation(range);
  return value_flag(std::move(info), field, parse_real, shortest,
                    [range](double value) { return in_range(value, range); });
}

template <class Config>
Flag<Config> switch_flag(FlagInfo info, bool Config::* field) {
  info.kind = ValueKind::kSwitch;
  info.expects = "true or false";
  return value_flag(
      std::move(info), field, parse_switch, [](bool value) { return std::string(value ? "true" : "false"); },
      [](bool) { return true; });
}

// Any text that `accepts` likes; `expects` says which.
template <class Config, class Accepts>
Flag<Config> text_flag(FlagInfo info, std::string Config::* field, std::string expects, Accepts accepts) {
  info.expects = std::move(expects);
  return value_flag(
      std::move(info), field, [](const std::string& text) { return std::optional(text); },
      [](const std::string& value) { return value; }, accepts);
}

template <class Config>
Flag<Config> text_flag(FlagInfo info, std::string Config::* field) {
  return text_flag(std::move(info), field, "text", [](const std::string&) { return true; });
}

// The path of a file or folder; empty: none.
template <class Config>
Flag<Config> path_flag(FlagInfo info, std::string Config::* field) {
  info.expects = kPathExpectation;
  return value_flag(
      std::move(info), field, expand_path, [](const std::string& value) { return value; },
      [](const std::string&) { return true; });
}

template <class Value>
using EnumChoices = std::vector<std::pair<std::string, Value>>;  // text and what it stands for

template <class Config, class Value>
Flag<Config> enum_flag(FlagInfo info, Value Config::* field, EnumChoices<Value> choices) {
  std::vector<std::string> texts;
  for (const auto& [text, value] : choices) texts.push_back(text);
  info.expects = expectation(texts);
  const auto text_of = [choices](Value value) -> std::optional<std::string> {
    for (const auto& [text, each] : choices) {
      if (each == value) return text;
    }
    return std::nullopt;
  };
  return value_flag(
      std::move(info), field,
      [choices](const std::string& text) -> std::optional<Value> {
        for (const auto& [each, value] : choices) {
          if (each == text) return value;
        }
        return std::nullopt;
      },
      [text_of](Value value) { return text_of(value).value_or("unknown"); },
      [text_of](Value value) { return text_of(value).has_value(); });
}

template <class Config>
Flag<Config> choice_flag(FlagInfo info, std::string Config::* field, std::vector<std::string> choices) {
  std::string expects = expectation(choices);
  return text_flag(std::move(info), field, std::move(expects),
                   [choices = std::move(choices)](const std::string& text) {
                     for (const std::string& choice : choices) {
                       if (text == choice) return true;
                     }
                     return false;
                   });
}

}  // namespace gradstep

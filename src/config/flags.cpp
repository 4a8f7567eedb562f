// no torch
// Flags of a recipe: each is a BoundFlag over the recipe's own member.
#include "gradstep/config/flags.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "config/flag_table.h"
#include "config/path_text.h"

namespace gradstep {
namespace {

constexpr double kNoLimit = 1e300;

bool is_key(const std::string& key) {
  const auto fits = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  return !key.empty() && std::ranges::all_of(key, fits) && key[0] != '_';
}

// A flag over `value`, whose text `parse` reads and `print` writes.
template <class Value, class Parse, class Print>
BoundFlag bind(FlagInfo info, Value& value, Parse parse, Print print) {
  return {.info = std::move(info),
          .set =
              [&value, parse](const std::string& text) {
                const auto parsed = parse(text);
                if (parsed) value = *parsed;
                return parsed.has_value();
              },
          .get = [&value, print] { return print(value); },
          .valid = [] { return true; }};
}

// Narrows what a flag takes: `accepts` looks at the text.
template <class Accepts>
void narrow(BoundFlag& flag, std::string expects, Accepts accepts) {
  flag.info.expects = std::move(expects);
  flag.set = [before = flag.set, accepts](const std::string& text) { return accepts(text) && before(text); };
  flag.valid = [get = flag.get, accepts] { return accepts(get()); };
}

}  // namespace

Flags::Entry& Flags::Entry::range(double min, double max) {
  if (flag_.info.kind == ValueKind::kInteger) {
    const bool bounded = max < 9e18;
    const IntegerRange range{.min = static_cast<int64_t>(min),
                             .max = bounded ? static_cast<int64_t>(max) : IntegerRange{}.max};
    narrow(flag_, expectation(range), [range](const std::string& text) {
      const auto value = parse_integer(text);
      return value && in_range(*value, range);
    });
  } else {
    const RealRange range{.min = min, .max = max < kNoLimit ? max : RealRange{}.max};
    narrow(flag_, expectation(range), [range](const std::string& text) {
      const auto value = parse_real(text);
      return value && in_range(*value, range);
    });
  }
  return *this;
}

Flags::Entry& Flags::Entry::below(double limit) {
  const RealRange range{.min = 0, .max = limit, .max_included = false};
  narrow(flag_, expectation(range), [range](const std::string& text) {
    const auto value = parse_real(text);
    return value && in_range(*value, range);
  });
  return *this;
}

Flags::Entry& Flags::Entry::choices(std::vector<std::string> texts) {
  std::string expects = expectation(texts);
  if (flag_.info.help.find(expects) == std::string::npos) flag_.info.help += " One of " + expects + ".";
  narrow(flag_, std::move(expects), [texts = std::move(texts)](const std::string& text) {
    return std::ranges::find(texts, text) != texts.end();
  });
  return *this;
}

Flags::Entry& Flags::Entry::path() {
  flag_.info.expects = kPathExpectation;
  flag_.info.is_path = true;
  flag_.set = [before = flag_.set](const std::string& text) {
    const std::optional<std::string> path = expand_path(text);
    return path && before(*path);
  };
  return *this;
}

Flags::Entry& Flags::Entry::group(std::string heading) {
  if (std::ranges::any_of(heading, [](unsigned char c) { return c < 0x20 || c == 0x7f; }))
    throw std::logic_error("flag '" + flag_.info.key + "': the heading of its group must be one line");
  flag_.info.group = std::move(heading);
  return *this;
}

Flags::Entry& Flags::Entry::alias(std::string key) {
  if (!is_key(key))
    throw std::logic_error("flag '" + flag_.info.key + "': its alias '" + key +
                           "' must have a-z, 0-9 and _ only");
  flag_.info.aliases.push_back(std::move(key));
  return *this;
}

Flags::Entry& Flags::Entry::metavar(std::string name) {
  flag_.info.metavar = std::move(name);
  return *this;
}

Flags::Entry& Flags::Entry::default_text(std::string text) {
  flag_.info.default_text = std::move(text);
  return *this;
}

Flags::Entry& Flags::Entry::on_resume(OnResume rule) {
  flag_.info.on_resume = rule;
  return *this;
}

Flags::Entry& Flags::keep(BoundFlag flag) {
  const std::string& key = flag.info.key;
  if (!is_key(key)) throw std::logic_error("flag '" + key + "': a key has a-z, 0-9 and _ only");
  for (const Entry& entry : entries_) {
    if (entry.flag().info.key == key) throw std::logic_error("flag '" + key + "' is added twice");
  }
  return entries_.emplace_back(std::move(flag));
}

Flags::Entry& Flags::add(const std::string& key, int64_t& value, const std::string& help) {
  return keep(bind(
      {.key = key, .metavar = "N", .help = help, .kind = ValueKind::kInteger, .expects = "a whole number"},
      value, parse_integer, [](int64_t number) { return std::to_string(number); }));
}

Flags::Entry& Flags::add(const std::string& key, double& value, const std::string& help) {
  if (!std::isfinite(value))
    throw std::logic_error("flag '" + key + "': its default must be a finite number");
  return keep(
      bind({.key = key, .metavar = "X", .help = help, .kind = ValueKind::kReal, .expects = "a number"}, value,
           parse_real, shortest));
}

Flags::Entry& Flags::add(const std::string& key, bool& value, const std::string& help) {
  return keep(bind({.key = key, .help = help, .kind = ValueKind::kSwitch, .expects = "true or false"}, value,
                   parse_switch, [](bool on) { return std::string(on ? "true" : "false"); }));
}

Flags::Entry& Flags::add(const std::string& key, std::string& value, const std::string& help) {
  return keep(bind(
      {.key = key, .metavar = "TEXT", .help = help, .expects = "text"}, value,
      [](const std::string& text) { return std::optional(text); },
      [](const std::string& text) { return text; }));
}

std::vector<BoundFlag> Flags::bound() const {
  std::vector<BoundFlag> flags;
  for (const Entry& entry : entries_) {
    flags.push_back(entry.flag());
    FlagInfo& info = flags.back().info;
    if (info.default_text.empty() && !info.is_switch()) info.default_text = flags.back().get();
  }
  return flags;
}

}  // namespace gradstep

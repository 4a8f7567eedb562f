// The config file: TOML through toml++.
// no torch
#include "config/config_file.h"

#include <toml++/toml.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>

#include "base/nearest.h"
#include "base/number_text.h"
#include "base/utf8.h"
#include "gradstep/base/error.h"

namespace gradstep {
namespace {

// Far above any list of settings.
constexpr size_t kMaxBytes = size_t{1} << 20;

std::string place(const std::string& path, const toml::source_region& region) {
  return path + ", line " + std::to_string(region.begin.line) + ", column " +
         std::to_string(region.begin.column);
}

std::string read_text(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text;
  // By pieces, since a pipe tells no size. Reading a folder fails only here.
  for (char piece[4096]; file && text.size() <= kMaxBytes;) {
    file.read(piece, sizeof piece);
    text.append(piece, static_cast<size_t>(file.gcount()));
  }
  if (!file.is_open() || file.bad()) {
    throw ConfigError("config file " + path + ": " + std::strerror(errno) +
                      "; give a readable file with --config");
  }
  if (text.size() > kMaxBytes) {
    throw ConfigError("config file " + path + ": more than " + std::to_string(kMaxBytes) +
                      " bytes; give a file of settings with --config");
  }
  return text;
}

// The end of the string that begins at `begin`: behind its closing quotes.
size_t end_of_string(const std::string& text, size_t begin) {
  const char quote = text[begin];
  const std::string three(3, quote);
  const size_t num_quotes = text.compare(begin, 3, three) == 0 ? 3 : 1;
  for (size_t i = begin + num_quotes; i < text.size(); ++i) {
    if (num_quotes == 1 && text[i] == '\n') return i;  // not TOML, as the parser will say
    if (quote == '"' && text[i] == '\\')
      ++i;
    else if (text.compare(i, num_quotes, three, 0, num_quotes) == 0)
      return i + num_quotes;
  }
  return text.size();
}

// The parser takes a key like a.b.c as tables within tables, and its stack is too small for many of them. The
// line that has such a key; 0: none has.
size_t line_of_deep_key(const std::string& text) {
  constexpr size_t kMaxPoints = 100;  // outside strings; numbers have one
  size_t line = 1, points = 0;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '#') {
      i = std::min(text.find('\n', i), text.size());
    } else if (c == '"' || c == '\'') {
      const size_t end = end_of_string(text, i);
      line += static_cast<size_t>(std::count(text.begin() + static_cast<std::ptrdiff_t>(i),
                                             text.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
      i = end;
    } else {
      if (c == '\n') {
        ++line;
        points = 0;
      }
      if (c == '.' && ++points > kMaxPoints) return line;
      ++i;
    }
  }
  return 0;
}

toml::table parse(const std::string& path) {
  const std::string text = read_text(path);
  if (const size_t line = line_of_deep_key(text); line > 0) {
    throw ConfigError(path + ", line " + std::to_string(line) +
                      ": a key with more points than any setting has; train --help lists the keys");
  }
  try {
    return toml::parse(text, path);
  } catch (const toml::parse_error& error) {
    std::string what(error.description());
    std::replace(what.begin(), what.end(), '\n', ' ');
    throw ConfigError(place(path, error.source()) + ": not TOML: " + what);
  }
}

// The text that a flag would have, or nothing for what no flag can be.
std::optional<std::string> value_text(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* truth = node.as_boolean()) return std::string(truth->get() ? "true" : "false");
  if (const auto* real = node.as_floating_point()) {
    const std::string text = shortest(real->get());
    // 64.0 stays a number with a point, which a flag that counts refuses.
    return text.find_first_not_of("-0123456789") == std::string::npos ? text + ".0" : text;
  }
  return std::nullopt;
}

std::string canonical_key(std::string key, const std::vector<FlagInfo>& flags, const std::string& where) {
  std::replace(key.begin(), key.end(), '-', '_');
  std::vector<std::string> known;
  for (const FlagInfo& flag : flags) {
    if (key == flag.key || std::count(flag.aliases.begin(), flag.aliases.end(), key) > 0) return flag.key;
    known.push_back(flag.key);
    known.insert(known.end(), flag.aliases.begin(), flag.aliases.end());
  }
  const std::string hint = did_you_mean(key, known);
  throw ConfigError(where + ": unknown key " + shortened(key) +
                    (hint.empty() ? "; train --help lists the keys" : hint));
}

}  // namespace

const FlagInfo& config_flag() {
  static const FlagInfo info{
      .key = "config",
      .group = "Output",
      .short_name = 'c',
      .metavar = "FILE.toml",
      .help = "Take settings from this file: key = flag with _ for -. Flags and variables win.",
      .default_text = "none"};
  return info;
}

std::vector<GivenSetting> read_config_file(const std::string& path, const std::vector<FlagInfo>& flags) {
  std::vector<GivenSetting> settings;
  for (const auto& [name, node] : parse(path)) {
    const std::string given(name.str());
    const std::string where = place(path, node.source());
    const std::string key = canonical_key(given, flags, place(path, name.source()));
    const std::optional<std::string> text = value_text(node);
    if (!text) {
      throw ConfigError(where + ": " + given +
                        " is a table, a list or a date; give one number, text, true or false");
    }
    if (text->find('\0') != std::string::npos)
      throw ConfigError(where + ": " + given + " holds a NUL character, which no setting may have");
    if (text->empty())
      throw ConfigError(where + ": " + given + " is empty; give it a value, or leave it out");
    for (const GivenSetting& earlier : settings) {
      if (earlier.key == key)
        throw ConfigError(where + ": " + given + " is given twice; see " + earlier.where);
    }
    settings.push_back({key, *text, where + ": " + given});
  }
  return settings;
}

}  // namespace gradstep

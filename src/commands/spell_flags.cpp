// no torch
// Finds words in backticks and looks them up among the flags of all commands.
#include "commands/spell_flags.h"

#include <algorithm>
#include <exception>

#include "commands/command_info.h"

namespace gradstep {
namespace {

bool is_flag(const std::string& key) {
  return std::ranges::any_of(commands(), [&](const CommandInfo& info) {
    return std::ranges::find(info.flags, key, &FlagInfo::key) != info.flags.end();
  });
}

}  // namespace

std::string spell_flags(const std::string& text) try {
  std::string result;
  size_t done = 0;
  for (;;) {
    const size_t open = text.find('`', done);
    const size_t close = open == std::string::npos ? open : text.find('`', open + 1);
    if (close == std::string::npos) return result + text.substr(done);
    const std::string word = text.substr(open + 1, close - open - 1);
    result += text.substr(done, open - done);
    if (is_flag(word)) {
      result += flag_spelling(word);
      done = close + 1;
    } else {  // the second backtick may open the next word
      result += text.substr(open, close - open);
      done = close;
    }
  }
} catch (const std::exception&) {
  return text;  // a program whose flags are refused still says so
}

}  // namespace gradstep

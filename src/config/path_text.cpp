// no torch
#include "config/path_text.h"

#include <pwd.h>
#include <unistd.h>

#include <cctype>
#include <cstdlib>
#include <filesystem>

namespace gradstep {
namespace {

// Empty: not known.
std::string home_of(const std::string& user) {
  const char* const home = std::getenv("HOME");
  if (user.empty() && home != nullptr && *home != '\0') return home;
  const passwd* const entry = user.empty() ? getpwuid(getuid()) : getpwnam(user.c_str());
  return entry == nullptr ? std::string() : std::string(entry->pw_dir);
}

bool is_variable(const std::string& name) {
  return name.size() > 1 && name[0] == '$' &&
         (name[1] == '{' || name[1] == '_' || std::isalpha(static_cast<unsigned char>(name[1])) != 0);
}

}  // namespace

std::optional<std::string> expand_path(const std::string& text) {
  std::filesystem::path so_far;
  for (const std::filesystem::path& part : std::filesystem::path(text)) {
    so_far /= part;
    std::error_code ignored;
    if (is_variable(part.string()) && !std::filesystem::exists(so_far, ignored)) return std::nullopt;
  }
  if (text.empty() || text[0] != '~') return text;
  const size_t end = std::min(text.find('/'), text.size());
  const std::string home = home_of(text.substr(1, end - 1));
  return home.empty() ? text : home + text.substr(end);
}

}  // namespace gradstep

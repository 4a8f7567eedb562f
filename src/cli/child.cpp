// no torch
// posix_spawn of /proc/self/exe, and waitpid until it is over.
#include "cli/child.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <fstream>
#include <system_error>
#include <thread>

extern char** environ;

namespace gradstep {
namespace {

constexpr std::chrono::milliseconds kPause{10};
constexpr std::chrono::milliseconds kShortPause{1};  // where a moment must not be missed

void require(int error, const char* what) {
  if (error != 0) throw std::system_error(error, std::generic_category(), what);
}

class SpawnSettings {
 public:
  SpawnSettings() {
    require(posix_spawn_file_actions_init(&actions_), "cannot start a process");
    const int error = posix_spawnattr_init(&attributes_);
    if (error != 0) posix_spawn_file_actions_destroy(&actions_);
    require(error, "cannot start a process");
  }
  ~SpawnSettings() {
    posix_spawnattr_destroy(&attributes_);
    posix_spawn_file_actions_destroy(&actions_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  void open(int fd, const std::string& path, int flags) {
    require(posix_spawn_file_actions_addopen(&actions_, fd, path.c_str(), flags, 0666), path.c_str());
  }
  void own_group() {
    require(posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP), "cannot start a process");
  }
  [[nodiscard]] pid_t spawn(char** arguments) const {
    pid_t pid = 0;
    require(posix_spawn(&pid, "/proc/self/exe", &actions_, &attributes_, arguments, environ),
            "cannot start gradstep once more");
    return pid;
  }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

pid_t start(const ChildOptions& options) {
  SpawnSettings settings;
  settings.open(STDIN_FILENO, "/dev/null", O_RDONLY);
  settings.open(STDOUT_FILENO, options.log_path, O_WRONLY | O_CREAT | O_TRUNC);
  settings.open(STDERR_FILENO, options.log_path + ".err", O_WRONLY | O_CREAT | O_TRUNC);
  settings.own_group();
  std::vector<std::string> words{"gradstep"};
  words.insert(words.end(), options.arguments.begin(), options.arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return settings.spawn(pointers.data());
}

int signal_of(ExitCode reason) { return static_cast<int>(reason) - 128; }

std::string last_line(const std::string& path) {
  constexpr std::string_view kName = "gradstep: ";
  std::ifstream in(path);
  std::string last;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty()) last = line;
  }
  return last.starts_with(kName) ? last.substr(kName.size()) : last;
}

}  // namespace

ChildEnd run_child(const ChildOptions& options, const StopToken& stop) {
  const pid_t pid = start(options);
  ChildEnd end;
  int status = 0;
  bool handed_on = false;
  // Not reaped before waitpid says so: the number is nobody else's meanwhile.
  while (true) {
    const pid_t done = waitpid(pid, &status, WNOHANG);
    if (done == pid) break;
    if (done == -1 && errno != EINTR) require(errno, "cannot wait for a process");
    if (stop.requested() && !handed_on) {
      handed_on = true;
      kill(pid, signal_of(stop.reason()));
    }
    if (!end.killed && options.kill_when && options.kill_when()) {
      end.killed = true;
      kill(pid, SIGKILL);
    }
    std::this_thread::sleep_for(options.kill_when ? kShortPause : kPause);
  }
  end.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  end.killed = end.killed && WIFSIGNALED(status);
  end.error_line = last_line(options.log_path + ".err");
  return end;
}

}  // namespace gradstep

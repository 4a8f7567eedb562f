// no torch
// fork, exec of /proc/self/exe, and waitpid until it is over.
#include "commands/child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fstream>
#include <system_error>
#include <thread>

#include "app/program.h"

namespace gradstep {
namespace {

constexpr std::chrono::milliseconds kPause{10};
constexpr std::chrono::milliseconds kShortPause{1};  // where a moment must not be missed

class OpenFile {
 public:
  OpenFile(const std::string& path, int flags) : fd_(open(path.c_str(), flags | O_CLOEXEC, 0666)) {
    if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "cannot open " + path);
  }
  ~OpenFile() { close(fd_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  [[nodiscard]] int fd() const { return fd_; }

 private:
  const int fd_;
};

// In the new process, between fork and exec: system calls only.
[[noreturn]] void become(char** arguments, const std::array<int, 3>& files, pid_t parent) {
  constexpr int kNotStarted = 127;  // as shells have it
  setpgid(0, 0);
  // The child dies with its parent: nobody would read its results.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) _exit(kNotStarted);
  for (int i = 0; i < 3; ++i) {
    if (dup2(files[static_cast<size_t>(i)], i) < 0) _exit(kNotStarted);
  }
  execv("/proc/self/exe", arguments);
  _exit(kNotStarted);
}

pid_t start(const ChildOptions& options) {
  const OpenFile in("/dev/null", O_RDONLY);
  const OpenFile out(options.log_path, O_WRONLY | O_CREAT | O_TRUNC);
  const OpenFile err(options.log_path + ".err", O_WRONLY | O_CREAT | O_TRUNC);
  std::vector<std::string> words{program().name};
  words.insert(words.end(), options.arguments.begin(), options.arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) become(pointers.data(), {in.fd(), out.fd(), err.fd()}, parent);
  if (pid < 0) throw std::system_error(errno, std::generic_category(), "cannot start the program once more");
  return pid;
}

int signal_of(ExitCode reason) { return static_cast<int>(reason) - 128; }

std::string last_line(const std::string& path) {
  const std::string kName = program().name + ": ";
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
    if (done == -1 && errno != EINTR)
      throw std::system_error(errno, std::generic_category(), "cannot wait for a process");
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

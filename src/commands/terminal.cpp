// Standard streams. Nobody notices lost output unless each write is checked.
// no torch
#include "commands/terminal.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "app/program.h"
#include "commands/spell_flags.h"

namespace gradstep {
namespace {

void refuse_lost_output(int error) {
  if (error == EPIPE) return;
  throw std::system_error(error == 0 ? EIO : error, std::generic_category(),
                          "cannot write the result to stdout");
}

}  // namespace

void write_warning(const std::string& text) { write_error("warning: " + text); }

void write_error(const std::string& text) {
  std::fprintf(stderr, "%s: %s\n", program().name.c_str(), spell_flags(text).c_str());
}

void write_stdout(const std::string& text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size()) return flush_stdout();
  refuse_lost_output(errno);
}

void flush_stdout() {
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) refuse_lost_output(errno);
}

void open_missing_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
    // The lowest free number is fd, since those below it are open by now. Without /dev/null nothing can be
    // done. Writing to stdout fails, so that a result does not vanish.
    if (open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_RDWR) == -1) return;
  }
}

}  // namespace gradstep

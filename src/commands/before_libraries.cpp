// no torch
// What each program that links gradstep::app does before any library starts: it looks whether the libraries
// have room to start, and makes the threads of OpenMP spin briefly.
#include <alloca.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstddef>
#include <string_view>

namespace {

constexpr char kBriefly[] = "GOMP_SPINCOUNT=20000";

[[noreturn]] void leave(std::string_view line, int exit_code) {
  (void)!write(STDERR_FILENO, line.data(), line.size());
  _exit(exit_code);
}

// LibTorch registers its operators when it is loaded, and ends the process with std::bad_alloc if it finds no
// memory for that. Only the limit of virtual memory (ulimit -v) makes that happen.
void require_room_to_start() {
  constexpr rlim_t kNeeded = rlim_t{56} << 20;
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  const int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  char text[64] = "";
  const ssize_t size = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
  if (fd >= 0) close(fd);
  rlim_t pages = 0;  // the whole size comes first
  for (ssize_t i = 0; i < size && text[i] >= '0' && text[i] <= '9'; ++i)
    pages = 10 * pages + static_cast<rlim_t>(text[i] - '0');
  const rlim_t held = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
  if (limit.rlim_cur > held + kNeeded) return;
  constexpr std::string_view kLine =
      "out of memory: the limit of virtual memory (ulimit -v) leaves LibTorch no "
      "room to start; raise it\n";
  constexpr int kOutOfMemory = 6;  // ExitCode::kOutOfMemory
  leave(kLine, kOutOfMemory);
}

bool must_stay(char** environment) {
  for (char** entry = environment; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (text.starts_with("GOMP_SPINCOUNT=") || text.starts_with("OMP_WAIT_POLICY=")) return true;
    // Valgrind does not follow a program that begins anew.
    if (text.starts_with("LD_PRELOAD=") && text.find("vgpreload") != std::string_view::npos) return true;
  }
  return false;
}

// libgomp reads its settings when it is loaded. Its threads wait for each other by spinning, for
// milliseconds: where another process wants a core too, that costs a time slice at the end of each parallel
// piece. A short spin costs 2-5 % on an idle machine and is 20 to 40 times faster on a busy one. A choice of
// the user's wins.
//
// This runs before any library starts, the C library included, which takes its environment from the stack
// afterwards. So nothing that is set here would last, and the program begins anew with the variable: after 10
// milliseconds of the dynamic loader's, whose work comes twice. If that fails, it goes on as it is.
void shorten_spinning(char** arguments, char** environment) {
  if (must_stay(environment)) return;
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  if (length <= 0) return;
  path[length] = '\0';
  // Started as "ld-linux.so PROGRAM": arguments has no ld-linux.so any more.
  const std::string_view file = std::string_view(path).substr(std::string_view(path).rfind('/') + 1);
  if (file.starts_with("ld-") || file.starts_with("ld.so")) return;
  size_t size = 0;
  while (environment[size] != nullptr) ++size;
  auto* const with_spins = static_cast<const char**>(alloca((size + 2) * sizeof(char*)));
  for (size_t i = 0; i < size; ++i) with_spins[i] = environment[i];
  with_spins[size] = static_cast<const char*>(kBriefly);
  with_spins[size + 1] = nullptr;
  execve(static_cast<const char*>(path), arguments, const_cast<char**>(with_spins));
}

// MKL finds its own libraries from there, and ends the process in words of its own.
void require_current_folder() {
  char path[PATH_MAX];
  if (getcwd(path, sizeof path) != nullptr || errno != ENOENT) return;
  constexpr std::string_view kLine = "the current folder is gone; cd to another\n";
  constexpr int kUsage = 2;  // ExitCode::kUsage
  leave(kLine, kUsage);
}

void before_libraries(int /*argc*/, char** arguments, char** environment) {
  require_current_folder();
  require_room_to_start();
  shorten_spinning(arguments, environment);
}

}  // namespace

// Only executables have functions that run before libraries do, so CMakeLists.txt asks for this symbol, and
// thereby for this file, when it links one. A shared library does without.
extern "C" {
extern void (*const gradstep_before_libraries)(int, char**, char**);
__attribute__((section(".preinit_array"),
               used)) void (*const gradstep_before_libraries)(int, char**, char**) = before_libraries;
}

// Placeholders of this working copy only.
#include "cli/env_command.h"
#include "cli/eval_command.h"
#include "cli/fetch_command.h"
#include "cli/train_command.h"
#include <cstdlib>
#include <unistd.h>
#include <cstring>
#include <ctime>
namespace gradstep {
int run_train(const RunConfig& config, StopToken& stop) {
  std::printf("%s", resolved_config_toml(config, "x", "").c_str());
  if (const char* hang = std::getenv("HANG")) {
    std::fflush(stdout);
    if (std::strcmp(hang, "2") == 0) for (;;) { timespec t{0, 10000000}; nanosleep(&t, nullptr); }
    while (!stop.requested()) usleep(1000);
    return static_cast<int>(stop.reason());
  }
  return 0;
}
int run_eval(const EvalOptions&, StopToken&) { return 0; }
int run_env() { return 0; }
int run_fetch(const FetchOptions&, std::FILE*, bool) { return 0; }
}  // namespace gradstep

// gradstep fetch: its flags, and the way to the downloader.
#include "app/program.h"
#include "commands/arguments.h"
#include "commands/terminal.h"
#include "config/flag_table.h"
#include "download/fetch.h"
#include "download/fetch_list.h"
#include "gradstep/base/error.h"
#include "program/recipes.h"

namespace gradstep {
namespace {

constexpr char kGroup[] = "Download";

std::vector<Flag<FetchOptions>> make_fetch_flags() {
  return {
      text_flag({.key = "data_dir",
                 .group = kGroup,
                 .metavar = "DIR",
                 .help = "Folder to put the files in.",
                 .aliases = {"data_path"},
                 .default_text = "data/<name>"},
                &FetchOptions::data_dir),
      text_flag({.key = "base_url",
                 .group = kGroup,
                 .metavar = "URL",
                 .help = "Folder on a server of yours that holds the same files.",
                 .default_text = "the public servers of the data set"},
                &FetchOptions::base_url),
      switch_flag({.key = "quiet", .group = kGroup, .short_name = 'q', .help = "No progress."},
                  &FetchOptions::quiet),
  };
}

// A SIGINT ends a download at once: the next one resumes it.
int run(const Arguments& arguments, bool quiet) {
  FetchOptions options = options_from(arguments, make_fetch_flags());
  options.name = required(command("fetch"), arguments).front();
  options.quiet = options.quiet || quiet;
  return run_fetch(options, stdout, is_terminal(stdout));
}

}  // namespace

void add_fetch(App& app) {
  CommandInfo info{.name = "fetch",
                   .summary = "Download a data set, continue an interrupted download, and check every file.",
                   .positional = "NAME",
                   .examples = {"gradstep fetch mnist", "gradstep fetch cifar10 --data-dir /data/cifar10"},
                   .run = run};
  std::vector<std::string> names;
  for (const FetchList& list : known_fetch_lists()) names.push_back(list.dataset);
  info.positional_help = expectation(names) + ".";
  for (const Flag<FetchOptions>& flag : make_fetch_flags()) info.flags.push_back(flag.info);
  AppAccess::program(app).extra.push_back({.info = std::move(info), .before = "ckpt ls"});
}

}  // namespace gradstep

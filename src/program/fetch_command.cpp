// gradstep fetch: its flags, and the way to the downloader.
#include "app/terminal.h"
#include "config/flag_table.h"
#include "download/fetch.h"
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

ExtraCommand fetch_command() {
  std::vector<FlagInfo> infos;
  for (const Flag<FetchOptions>& flag : make_fetch_flags()) infos.push_back(flag.info);
  return {.info = {.name = "fetch",
                   .summary = "Download a data set, continue an interrupted download, and check every file.",
                   .positional = "NAME",
                   .positional_help = "mnist, fashion-mnist or cifar10.",
                   .flags = infos,
                   .examples = {"gradstep fetch mnist", "gradstep fetch cifar10 --data-dir /data/cifar10"}},
          .before = "ckpt ls",
          .run = run};
}

}  // namespace gradstep

// gradstep fetch: the lines and the bar around http_download and unpack_tar.
// no torch
#include "download/fetch.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/nearest.h"
#include "base/terminal_width.h"
#include "download/fetch_list.h"
#include "gradstep/base/error.h"
#include "io/tar.h"
#include "report/format.h"
#include "report/progress_bar.h"

namespace gradstep {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kBarPause{100};
constexpr std::chrono::seconds kLinePause{10};

double megabytes(uint64_t bytes) { return static_cast<double>(bytes) / 1e6; }

std::string after_comma(const std::string& text) { return text.empty() ? "" : ", " + text; }

// What a person sees of one file on its way. Speed counts the bytes of this call, not resumed ones.
class FileProgress {
 public:
  FileProgress(std::string name, std::FILE* out, bool is_terminal, bool quiet)
      : name_(std::move(name)), out_(out), is_terminal_(is_terminal), quiet_(quiet) {}

  void update(uint64_t done, uint64_t total) {
    const Clock::time_point now = Clock::now();
    if (!first_done_ || done < *first_done_) {
      first_done_ = done;
      start_ = now;
    }
    done_ = done;
    if (quiet_ ||
        now - last_shown_ < (is_terminal_ ? Clock::duration(kBarPause) : Clock::duration(kLinePause)))
      return;
    last_shown_ = now;
    is_terminal_ ? draw(done, total) : line(done, total);
  }

  void retry(const std::string& reason, double pause_seconds) {
    first_done_.reset();
    if (quiet_) return;
    clear();
    std::fprintf(out_, "%s: %s; trying again in %g s\n", name_.c_str(), reason.c_str(), pause_seconds);
    std::fflush(out_);
  }

  void end(bool downloaded) {
    if (quiet_) return;
    clear();
    if (downloaded) {
      std::fprintf(out_, "%s: %.1f MB, done%s\n", name_.c_str(), megabytes(done_),
                   after_comma(speed()).c_str());
    } else {
      std::fprintf(out_, "%s: already there and right\n", name_.c_str());
    }
    std::fflush(out_);
  }

  // Leaves the cursor at the start of an empty line.
  void clear() { std::fputs(bar_.erase().c_str(), out_); }

 private:
  // Bytes; 0 while there is nothing to divide by.
  [[nodiscard]] double bytes_per_second() const {
    const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    return first_done_ && seconds >= 0.05 ? static_cast<double>(done_ - *first_done_) / seconds : 0;
  }

  [[nodiscard]] std::string speed() const {
    const double speed = bytes_per_second();
    return speed > 0 ? fixed_text(speed / 1e6, 1) + " MB/s" : "";
  }

  void draw(uint64_t done, uint64_t total) {
    const double left = static_cast<double>(total - std::min(done, total)) / bytes_per_second();
    const Progress progress{
        .name = name_,
        .done = static_cast<int64_t>(done),
        .total = static_cast<int64_t>(total),
        .seconds_left = left,
        .count = fixed_text(megabytes(done), 1) + " of " + fixed_text(megabytes(total), 1) + " MB",
        .note = speed()};
    std::fputs(bar_.show(bar_text(progress, terminal_width(out_) - 1)).c_str(), out_);
    std::fflush(out_);
  }

  void line(uint64_t done, uint64_t total) {
    std::fprintf(out_, "%s: %.1f of %.1f MB%s\n", name_.c_str(), megabytes(done), megabytes(total),
                 after_comma(speed()).c_str());
    std::fflush(out_);
  }

  const std::string name_;
  std::FILE* const out_;
  const bool is_terminal_;
  const bool quiet_;
  std::optional<uint64_t> first_done_;
  uint64_t done_ = 0;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_shown_ = Clock::now();
  BarLine bar_;
};

// The unpacked files have no published hashes; the archive they came out of was checked.
bool all_unpacked(const FetchList& list, const fs::path& folder) {
  std::error_code error;
  return std::ranges::all_of(list.members, [&](const FetchMember& member) {
    return fs::is_regular_file(folder / member.name, error) &&
           fs::file_size(folder / member.name, error) == member.size;
  });
}

void unpack(const FetchList& list, const fs::path& folder, FileProgress& progress) {
  const std::string archive = (folder / list.files.front().name).string();
  std::vector<TarMember> members;
  for (const FetchMember& member : list.members) {
    members.push_back({member.name_in_archive, (folder / member.name).string(), member.size});
  }
  progress.clear();
  unpack_tar(archive, members);
  fs::remove(archive);
}

}  // namespace

int fetch_files(const FetchList& list, const FetchOptions& options, DownloadOptions download, std::FILE* out,
                bool is_terminal) {
  const fs::path folder =
      options.data_dir.empty() ? fs::path("data") / list.dataset : fs::path(options.data_dir);
  std::string base_url = options.base_url.empty() ? list.base_url : options.base_url;
  if (!base_url.ends_with('/')) base_url += '/';
  if (!list.members.empty() && all_unpacked(list, folder)) {
    for (const FetchMember& member : list.members)
      FileProgress(member.name, out, is_terminal, options.quiet).end(false);
  } else {
    for (const FetchFile& file : list.files) {
      FileProgress progress(file.name, out, is_terminal, options.quiet);
      download.on_progress = [&](uint64_t done, uint64_t total) { progress.update(done, total); };
      download.on_retry = [&](const std::string& reason, double pause) { progress.retry(reason, pause); };
      try {
        progress.end(http_download(
            {base_url + file.name, (folder / file.name).string(), file.size, file.md5, ""}, download));
        if (!list.members.empty()) unpack(list, folder, progress);
      } catch (...) {
        progress.clear();  // the error line begins on a line of its own
        std::fflush(out);
        throw;
      }
    }
  }
  if (!options.quiet) {
    std::fprintf(out, "%s is in %s\n", list.dataset.c_str(), folder.string().c_str());
    std::fflush(out);
  }
  return static_cast<int>(ExitCode::kOk);
}

int run_fetch(const FetchOptions& options, std::FILE* out, bool is_terminal) {
  std::vector<std::string> names;
  for (const FetchList& list : known_fetch_lists()) {
    if (list.dataset == options.name) return fetch_files(list, options, {}, out, is_terminal);
    names.push_back(list.dataset);
  }
  throw ConfigError("fetch " + options.name + ": unknown data set" + known_names(options.name, names));
}

}  // namespace gradstep

// no torch
// Asks statfs and tries one temporary file.
#include "commands/doctor_disk.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "checkpoint/checkpoint_files.h"
#include "checkpoint/disk_room.h"
#include "gradstep/checkpoint/checkpoint.h"
#include "gradstep/io/file_system.h"
#include "io/io_error.h"
#include "report/format.h"

namespace gradstep {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kLittleRoom = 1'000'000'000;
constexpr double kSlowSync = 1.0;  // seconds for one small file

struct DiskKind {
  int64_t type;
  const char* name;
  const char* remark;    // what to know; empty: nothing
  bool forgets = false;  // at a reboot
};
constexpr std::array kKinds{
    DiskKind{0xEF53, "ext4", ""},
    DiskKind{0x58465342, "xfs", ""},
    DiskKind{0x9123683E, "btrfs", ""},
    DiskKind{0x2FC12FC1, "zfs", ""},
    DiskKind{0xF2F52010, "f2fs", ""},
    DiskKind{0x01021994, "tmpfs", "in memory", true},
    DiskKind{0x858458F6, "ramfs", "in memory", true},
    DiskKind{0x794C7630, "overlay", "goes with its container"},
    DiskKind{0x6969, "nfs", "a network disk: locks and times are those of its server"},
    DiskKind{0xFF534D42, "cifs", "a network disk: locks and times are those of its server"},
    DiskKind{0xFE534D42, "smb", "a network disk: locks and times are those of its server"},
    DiskKind{0x00C36400, "ceph", "a network disk"},
    DiskKind{0x0BD00BD0, "lustre", "a network disk: flock needs the mount option flock"},
    DiskKind{0x47504653, "gpfs", "a network disk"},
    DiskKind{0x01021997, "9p", "a folder of the host"},
    DiskKind{0x65735546, "fuse", "served by a program"},
    DiskKind{0x4D44, "vfat", "for memory cards: files of 4 GB at most"},
    DiskKind{0x2011BAB0, "exfat", "for memory cards"},
    DiskKind{0x7366746E, "ntfs", ""},
};

DiskKind kind_of(int64_t type) {
  for (const DiskKind& kind : kKinds) {
    if (kind.type == type) return kind;
  }
  return {type, "a disk of a kind that is not known here", ""};
}

bool is_same_disk(const std::string& a, const std::string& b) {
  struct stat of_a{};
  struct stat of_b{};
  return ::stat(a.c_str(), &of_a) == 0 && ::stat(b.c_str(), &of_b) == 0 && of_a.st_dev == of_b.st_dev;
}

// Writes, syncs and locks a file whose name is gone before anything can go wrong.
void try_file(const std::string& folder, DiskFacts& facts) {
  std::string path = folder + "/.gradstep-doctor-XXXXXX";
  const int fd = ::mkostemp(path.data(), O_CLOEXEC);
  if (fd < 0) {
    facts.not_tried = std::string("locks and syncs not tried, as no file can be made in ") + folder + ": " +
                      std::strerror(errno);
    return;
  }
  ::unlink(path.c_str());
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) facts.lock_error = std::strerror(errno);
  const std::array<char, 4096> bytes{};
  const auto begin = std::chrono::steady_clock::now();
  errno = EFBIG;  // what a write that is cut short means
  const bool written = ::write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  if (!written || ::fsync(fd) != 0) facts.sync_error = std::strerror(errno);
  facts.sync_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  ::close(fd);
}

// What the newest checkpoint takes, for the next one is written before an old one is removed, and model
// files.
uint64_t bytes_of_next_save(const std::string& run) {
  std::error_code ignored;
  const std::vector<int64_t> updates = list_checkpoints(run);
  if (updates.empty()) return 0;
  const auto size = [&](const fs::path& path) {
    const uint64_t bytes = fs::file_size(path, ignored);
    return ignored ? 0 : bytes;
  };
  const fs::path newest = fs::path(checkpoints_dir(run)) / checkpoint_name(updates.back());
  uint64_t bytes = 2 * (size(newest / kModelFile) + size(newest / kEmaFile));  // best and model
  for (const char* name : {kModelFile, kOptimizerFile, kEmaFile, kUserFile, kStateFile})
    bytes += size(newest / name);
  return bytes;
}

void examine_one(const std::string& folder, const std::string& probe_folder, uint64_t needed,
                 const Tell& tell) try {
  DiskFacts facts = disk_facts(folder, probe_folder);
  facts.needed_bytes = needed;
  tell(examine_disk(facts));
} catch (const std::exception&) {
  tell(failed("disk"));
}

}  // namespace

DiskFacts disk_facts(const std::string& folder, const std::string& probe_folder) {
  DiskFacts facts{.folder = folder};
  struct statfs status{};
  if (::statfs(folder.c_str(), &status) != 0) throw_io_error(errno, "look at the disk of", folder);
  facts.type = static_cast<int64_t>(status.f_type) & 0xFFFFFFFF;
  facts.free_bytes = posix_file_system().free_bytes(folder);
  if (probe_folder.empty() || !is_same_disk(folder, probe_folder)) {
    facts.not_tried = "locks and syncs not tried, as it begins at this folder";
  } else {
    try_file(probe_folder, facts);
  }
  return facts;
}

Finding examine_disk(const DiskFacts& facts) {
  const DiskKind kind = kind_of(facts.type);
  const std::string text = facts.folder + ": " + kind.name + ", " + room_text(facts.free_bytes) + " free" +
                           (*kind.remark != '\0' ? std::string(", ") + kind.remark : "");
  if (!facts.sync_error.empty()) {
    return problem("disk",
                   text + ": a file cannot be written durably: " + facts.sync_error +
                       "; free some space or choose another disk",
                   ExitCode::kCheckpoint);
  }
  if (facts.free_bytes < facts.needed_bytes) {
    return problem(
        "disk",
        text + ": the next save of the run needs " + room_text(facts.needed_bytes) + "; free some space",
        ExitCode::kCheckpoint);
  }
  if (!facts.lock_error.empty()) {
    return warning("disk", text + ": it cannot lock files (" + facts.lock_error +
                               "); see to it that no two runs write to one folder");
  }
  if (kind.forgets) return warning("disk", text + ": lost at a reboot; keep runs on another disk");
  if (facts.free_bytes < kLittleRoom)
    return warning("disk", text + ": little; free some space, or lower --keep-checkpoints");
  if (facts.sync_seconds > kSlowSync) {
    return warning("disk", text + ": to sync a small file took " + seconds_text(facts.sync_seconds) +
                               "; saves will be slow, choose another disk or a longer --save-interval");
  }
  // Where a run would be begun; a run that is there has its own folder.
  if (facts.folder == "." && !facts.not_tried.empty())
    return warning("disk",
                   text + ": " + facts.not_tried + "; begin runs in another folder, or give --output-dir");
  return fine("disk", text + ", " + (facts.not_tried.empty() ? "locks and syncs work" : facts.not_tried));
}

void examine_disks(const std::string& run, const Tell& tell) {
  if (run.empty()) return examine_one(".", ".", 0, tell);
  uint64_t needed = 0;
  try {
    needed = bytes_of_next_save(run);
  } catch (const std::exception&) {
    // The check of the checkpoints tells.
  }
  const std::string place = place_of_checkpoints(run);
  const fs::path above = normal_path(run).parent_path();
  examine_one(run, above.string(), place == run ? needed : 0, tell);
  if (place != run) examine_one(place, "", needed, tell);
}

}  // namespace gradstep

// gradstep ckpt ls, verify, diff and export: what lies in the checkpoints of a run, whether it is whole, how
// two of them differ, and their weights as a file for others.
#pragma once

#include <string>

namespace gradstep {

struct CkptLsOptions {
  std::string path{};   // a run, or one checkpoint
  bool verify = false;  // hashes of all files, not only their sizes
  bool json = false;
};

struct CkptVerifyOptions {
  std::string path{};  // a run, or one checkpoint
  bool json = false;
  bool quiet = false;  // the exit code and the error line say it all
};

struct CkptDiffOptions {
  std::string first{};   // a run (its newest that verifies), or a checkpoint
  std::string second{};  // likewise
};

struct CkptExportOptions {
  std::string path{};    // a run, a checkpoint, or a safetensors file
  std::string file{};    // to write
  std::string format{};  // "safetensors", "pt"; empty: by the ending
  bool ema = false;      // the moving averages in place of the parameters
  bool force = false;    // replace a file
  bool quiet = false;
};

// Each prints to stdout and returns the exit code; each throws CheckpointError if there is no checkpoint. ls
// marks a broken checkpoint and goes on.
int run_ckpt_ls(const CkptLsOptions& options);
// Prints a line for each checkpoint, then throws CheckpointError if one is broken.
int run_ckpt_verify(const CkptVerifyOptions& options);
// 0: equal, 1: something differs. Settings that only say where files lie or what is shown do not count.
int run_ckpt_diff(const CkptDiffOptions& options);
// Throws ConfigError for a file that is there already, without averages, and for an unknown ending.
int run_ckpt_export(const CkptExportOptions& options);

}  // namespace gradstep

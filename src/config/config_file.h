// Reads a flat TOML file into (key, text) pairs that remember where they stood. toml++ is used here alone.
#pragma once

#include <string>
#include <vector>

#include "config/flag_table.h"

namespace gradstep {

// One setting from anywhere, with words for complaints.
struct GivenSetting {
  std::string key;    // canonical: "batch_size"
  std::string text;   // as a flag would have it
  std::string where;  // "--batch-size", "GRADSTEP_BATCH_SIZE", "job.toml, line 3, column 14: batch_size"
};

// -c/--config of train, the only one of its flags that is no setting.
[[nodiscard]] const FlagInfo& config_flag();

// Keys are those of `flags`, or their aliases, with _ or -. Throws ConfigError with file, line and column for
// a file that cannot be read or is not TOML, a table, an array, a date, an unknown key (naming the nearest),
// and a key given twice.
[[nodiscard]] std::vector<GivenSetting> read_config_file(const std::string& path,
                                                         const std::vector<FlagInfo>& flags);

}  // namespace gradstep

// EventFile: a file of checksummed records, as TensorBoard reads it, in a folder with those of earlier
// starts.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/append_file.h"

namespace gradstep {

class EventFile {
 public:
  // Creates the folder if needed, and a new file in it whose name sorts after all others, since TensorBoard
  // reads in this order. Throws std::system_error with the path, as does flush().
  explicit EventFile(const std::string& folder);
  // Adds a record. It is in the file after flush() at the latest.
  void append(std::string_view record);
  // Throws, too, if somebody has removed the file or cut it short: points of the run are missing then.
  void flush();

 private:
  AppendFile file_;
  std::string buffer_;  // whole records
  int64_t num_written_ = 0;
};

// Paths of the event files in a folder, in the order in which TensorBoard reads them.
[[nodiscard]] std::vector<std::string> event_files(const std::string& folder);

// Calls `each` for the records of a file in their order, up to the first that is cut short or fails its
// checks, such as the last one of a killed process. A file that cannot be read has none.
void for_each_record(const std::string& path, const std::function<void(std::string_view)>& each);

}  // namespace gradstep

// JsonObject: an object of a JSON file that nobody trusts, read key by key, complaining in terms of file and
// key.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gradstep {

// Every call throws CheckpointError, one line naming file and key, for a key that is missing, of another type
// or out of range. Keys that nobody asks for are ignored.
class JsonObject {
 public:
  // `file` is for messages. Refuses text that is not JSON, that nests deeper than 8, in which a key is given
  // twice, or that is no object.
  [[nodiscard]] static JsonObject parse(const std::string& file, std::string_view text);

  [[nodiscard]] bool has(const std::string& key) const;
  // In alphabetical order.
  [[nodiscard]] std::vector<std::string> keys() const;
  [[nodiscard]] int64_t integer(const std::string& key, int64_t min = 0,
                                int64_t max = std::numeric_limits<int64_t>::max()) const;
  // Exact, all 64 bits.
  [[nodiscard]] uint64_t unsigned_integer(const std::string& key) const;
  // Also "NaN", "Infinity" and "-Infinity".
  [[nodiscard]] double real(const std::string& key) const;
  // Finite, and at least `min`.
  [[nodiscard]] double finite(const std::string& key, double min = 0) const;
  [[nodiscard]] bool boolean(const std::string& key) const;
  [[nodiscard]] std::string text(const std::string& key) const;
  [[nodiscard]] JsonObject object(const std::string& key) const;
  // Nothing for null, which must be there.
  [[nodiscard]] std::optional<JsonObject> object_or_null(const std::string& key) const;
  [[nodiscard]] std::vector<JsonObject> objects(const std::string& key) const;
  [[nodiscard]] std::vector<int64_t> integers(const std::string& key) const;  // each at least 0
  [[nodiscard]] std::vector<double> finites(const std::string& key) const;
  [[nodiscard]] std::vector<std::string> text_list(const std::string& key) const;
  // An object of texts.
  [[nodiscard]] std::map<std::string, std::string> texts(const std::string& key) const;

  // "<file>: <key>: <what>; ..."
  [[noreturn]] void fail(const std::string& key, const std::string& what) const;

 private:
  JsonObject(std::string file, std::string place, std::shared_ptr<const void> value)
      : file_(std::move(file)), place_(std::move(place)), value_(std::move(value)) {}

  std::string file_;
  std::string place_;                  // "" or "engine."
  std::shared_ptr<const void> value_;  // the parsed object; keeps the whole document
};

}  // namespace gradstep

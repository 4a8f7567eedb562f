// no torch
// JsonObject: nlohmann's parser, with checks of depth, keys, types and ranges.
#include "checkpoint/json_object.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/number_text.h"
#include "gradstep/base/error.h"

namespace gradstep {
namespace {

using nlohmann::json;

constexpr size_t kMaxDepth = 8;
constexpr const char* kCure = "; damaged, or not of a gradstep checkpoint: use another one";

// Names come from the file: shown short and without control characters, so that the message stays one line.
std::string shown(std::string_view name) {
  std::string text = "\"";
  for (const char letter : name.substr(0, 60)) text += letter >= ' ' && letter <= '~' ? letter : '?';
  return text + (name.size() > 60 ? "...\"" : "\"");
}

[[noreturn]] void refuse(const std::string& file, const std::string& what) {
  throw CheckpointError(file + ": " + what + kCure);
}

const json& value_of(const std::shared_ptr<const void>& value) {
  return *static_cast<const json*>(value.get());
}

// Counts depth and keys while the parser runs; it stops by an exception.
class Watch {
 public:
  explicit Watch(const std::string& file) : file_(file) {}
  bool operator()(json::parse_event_t event, const json& parsed) {
    using Event = json::parse_event_t;
    if (event == Event::object_start || event == Event::array_start) {
      if (keys_.size() == kMaxDepth)
        refuse(file_, "nested deeper than " + std::to_string(kMaxDepth) + " levels");
      keys_.emplace_back();
    } else if (event == Event::object_end || event == Event::array_end) {
      keys_.pop_back();
    } else if (event == Event::key && !keys_.back().insert(parsed.get_ref<const std::string&>()).second) {
      refuse(file_, "key " + shown(parsed.get_ref<const std::string&>()) + " is given twice");
    }
    return true;
  }

 private:
  const std::string& file_;
  std::vector<std::set<std::string>> keys_;
};

std::string kind_of(const json& value) {
  if (value.is_number_integer()) return "the whole number " + shown(value.dump());
  if (value.is_number()) return "the number " + shown(value.dump());
  if (value.is_string()) return "the text " + shown(value.get_ref<const std::string&>());
  if (value.is_boolean()) return "true or false";
  if (value.is_null()) return "null";
  return value.is_array() ? "a list" : "an object";
}

const json& member(const JsonObject& self, const json& object, const std::string& key) {
  const auto found = object.find(key);
  if (found == object.end()) self.fail(key, "is missing");
  return *found;
}

int64_t to_integer(const JsonObject& self, const std::string& key, const json& value, int64_t min,
                   int64_t max) {
  const bool fits = value.is_number_unsigned()
                        ? value.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())
                        : value.is_number_integer();
  if (!fits || value.get<int64_t>() < min || value.get<int64_t>() > max) {
    const std::string end = max == std::numeric_limits<int64_t>::max() ? " on" : " to " + std::to_string(max);
    self.fail(key, "expected a whole number from " + std::to_string(min) + end + ", found " + kind_of(value));
  }
  return value.get<int64_t>();
}

double to_finite(const JsonObject& self, const std::string& key, const json& value, double min) {
  const double number = value.is_number() ? value.get<double>() : std::nan("");
  if (!std::isfinite(number) || number < min) {
    const std::string bound = std::isfinite(min) ? " of at least " + json(min).dump() : "";
    self.fail(key, "expected a number" + bound + ", found " + kind_of(value));
  }
  return number;
}

}  // namespace

void JsonObject::fail(const std::string& key, const std::string& what) const {
  refuse(file_, place_ + (key.size() > 60 ? shown(key) : key) + ": " + what);
}

JsonObject JsonObject::parse(const std::string& file, std::string_view text) {
  auto document = std::make_shared<json>();
  Watch watch(file);
  try {
    *document = json::parse(
        text, [&](int /*depth*/, json::parse_event_t event, json& parsed) { return watch(event, parsed); });
  } catch (const json::parse_error& error) {
    refuse(file, "at byte " + std::to_string(error.byte) + ": expected JSON, found something else");
  } catch (const json::exception&) {
    refuse(file, "not JSON with numbers that can be held");
  }
  if (!document->is_object()) refuse(file, "expected an object, found " + kind_of(*document));
  return {file, "", std::move(document)};
}

bool JsonObject::has(const std::string& key) const { return value_of(value_).contains(key); }

std::vector<std::string> JsonObject::keys() const {
  std::vector<std::string> names;
  for (const auto& entry : value_of(value_).items()) names.push_back(entry.key());
  return names;
}

int64_t JsonObject::integer(const std::string& key, int64_t min, int64_t max) const {
  return to_integer(*this, key, member(*this, value_of(value_), key), min, max);
}

uint64_t JsonObject::unsigned_integer(const std::string& key) const {
  const json& value = member(*this, value_of(value_), key);
  if (!value.is_number_unsigned()) fail(key, "expected a whole number from 0 on, found " + kind_of(value));
  return value.get<uint64_t>();
}

double JsonObject::real(const std::string& key) const {
  const json& value = member(*this, value_of(value_), key);
  if (value.is_number()) return value.get<double>();
  using Limits = std::numeric_limits<double>;
  for (const double other : {Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity()}) {
    if (value == json(not_finite_text(other))) return other;
  }
  fail(key, "expected a number, found " + kind_of(value));
}

double JsonObject::finite(const std::string& key, double min) const {
  return to_finite(*this, key, member(*this, value_of(value_), key), min);
}

bool JsonObject::boolean(const std::string& key) const {
  const json& value = member(*this, value_of(value_), key);
  if (!value.is_boolean()) fail(key, "expected true or false, found " + kind_of(value));
  return value.get<bool>();
}

std::string JsonObject::text(const std::string& key) const {
  const json& value = member(*this, value_of(value_), key);
  if (!value.is_string()) fail(key, "expected a text, found " + kind_of(value));
  return value.get<std::string>();
}

JsonObject JsonObject::object(const std::string& key) const {
  const json& value = member(*this, value_of(value_), key);
  if (!value.is_object()) fail(key, "expected an object, found " + kind_of(value));
  return {file_, place_ + key + ".", {value_, &value}};
}

std::optional<JsonObject> JsonObject::object_or_null(const std::string& key) const {
  if (member(*this, value_of(value_), key).is_null()) return std::nullopt;
  return object(key);
}

std::vector<JsonObject> JsonObject::objects(const std::string& key) const {
  const json& list = member(*this, value_of(value_), key);
  if (!list.is_array()) fail(key, "expected a list, found " + kind_of(list));
  std::vector<JsonObject> result;
  for (const json& item : list) {
    const std::string place = key + "[" + std::to_string(result.size()) + "]";
    if (!item.is_object()) fail(place, "expected an object, found " + kind_of(item));
    result.push_back({file_, place_ + place + ".", {value_, &item}});
  }
  return result;
}

std::vector<int64_t> JsonObject::integers(const std::string& key) const {
  const json& list = member(*this, value_of(value_), key);
  if (!list.is_array()) fail(key, "expected a list, found " + kind_of(list));
  std::vector<int64_t> result;
  for (const json& item : list) {
    result.push_back(to_integer(*this, key, item, 0, std::numeric_limits<int64_t>::max()));
  }
  return result;
}

std::vector<double> JsonObject::finites(const std::string& key) const {
  const json& list = member(*this, value_of(value_), key);
  if (!list.is_array()) fail(key, "expected a list, found " + kind_of(list));
  std::vector<double> result;
  for (const json& item : list) {
    result.push_back(to_finite(*this, key, item, -std::numeric_limits<double>::infinity()));
  }
  return result;
}

std::vector<std::string> JsonObject::text_list(const std::string& key) const {
  const json& list = member(*this, value_of(value_), key);
  if (!list.is_array()) fail(key, "expected a list, found " + kind_of(list));
  std::vector<std::string> result;
  for (const json& item : list) {
    if (!item.is_string()) fail(key, "expected texts, found " + kind_of(item));
    result.push_back(item.get<std::string>());
  }
  return result;
}

std::map<std::string, std::string> JsonObject::texts(const std::string& key) const {
  const JsonObject inner = object(key);
  std::map<std::string, std::string> result;
  for (const auto& [name, value] : value_of(inner.value_).items()) {
    if (!value.is_string()) inner.fail(name, "expected a text, found " + kind_of(value));
    result[name] = value.get<std::string>();
  }
  return result;
}

}  // namespace gradstep

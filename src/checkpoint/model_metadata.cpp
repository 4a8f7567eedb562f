// Metadata keys begin with "gradstep."; every value is text, as the format demands.
// no torch
#include "checkpoint/model_metadata.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/number_text.h"
#include "base/utf8.h"
#include "gradstep/base/error.h"
#include "gradstep/base/version.h"
#include "io/safetensors_header.h"

namespace gradstep {
namespace {

using Metadata = std::map<std::string, std::string>;

const std::string kPrefix = "gradstep.";
constexpr std::array<const char*, 8> kFileKeys{"version", "git_commit", "precision", "matmul",
                                               "update",  "train_data", "eval_data", "black_box"};

// Reads one metadata value after the other, and complains in terms of the file.
class MetadataReader {
 public:
  MetadataReader(const std::string& path, const Metadata& metadata) : path_(path), metadata_(metadata) {}

  std::string text(const std::string& key) const {
    const auto found = metadata_.find(kPrefix + key);
    if (found != metadata_.end()) return found->second;
    throw CheckpointError(
        path_ + ": no \"gradstep." + key +
        "\" in its metadata: not a model file of gradstep; give the model.safetensors of a run");
  }
  template <typename Number>
  Number number(const std::string& key) const {
    const std::string value = text(key);
    Number result{};
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
    if (error == std::errc() && end == value.data() + value.size()) return result;
    throw CheckpointError(path_ + ": metadata gradstep." + key + " is \"" + value + "\", not a number");
  }

 private:
  std::string path_;
  const Metadata& metadata_;
};

}  // namespace

std::optional<int64_t> exported_update(const std::string& path) {
  try {
    return model_info(path, read_safetensors_header(path).metadata).update;
  } catch (const CheckpointError&) {
    return std::nullopt;
  }
}

bool is_file_key(const std::string& key) { return std::ranges::count(kFileKeys, key) > 0; }

void check_model_settings(const std::map<std::string, std::string>& settings) {
  for (const auto& [key, text] : settings) {
    const std::string name = "model setting '" + to_utf8(key) + "': ";
    if (is_file_key(key)) throw ConfigError(name + "model files have this key for themselves; rename it");
    if (!is_utf8(key)) throw ConfigError(name + "its key is not UTF-8; rename it");
  }
}

std::map<std::string, std::string> model_metadata(const ModelInfo& info) {
  check_model_settings(info.settings);
  Metadata metadata = info.settings;
  metadata["version"] = version();
  metadata["git_commit"] = git_commit();
  metadata["precision"] = to_string(info.precision);
  metadata["matmul"] = to_string(info.matmul);
  metadata["update"] = std::to_string(info.update);
  if (!info.train_data.empty()) metadata["train_data"] = info.train_data;
  if (!info.eval_data.empty()) metadata["eval_data"] = info.eval_data;
  Metadata prefixed;
  for (const auto& [key, value] : metadata) prefixed[kPrefix + key] = to_utf8(value);
  return prefixed;
}

ModelInfo model_info(const std::string& path, const std::map<std::string, std::string>& metadata) {
  const MetadataReader reader(path, metadata);
  ModelInfo info;
  for (const auto& [key, value] : metadata) {
    if (key.starts_with(kPrefix)) info.settings[key.substr(kPrefix.size())] = value;
  }
  try {
    info.precision = parse_precision(reader.text("precision"));
    info.matmul = parse_matmul(reader.text("matmul"));
  } catch (const ConfigError& error) {
    throw CheckpointError(path + ": its metadata is wrong: " + error.what());
  }
  info.update = reader.number<int64_t>("update");
  if (info.update < 0)
    throw CheckpointError(path + ": metadata gradstep.update is out of range; use another file");
  // Files of the first version lack these two.
  info.train_data = info.settings["train_data"];
  info.eval_data = info.settings["eval_data"];
  for (const char* own : kFileKeys) info.settings.erase(own);
  return info;
}

ModelInfo model_info_or_none(const std::string& path, const std::map<std::string, std::string>& metadata) {
  const auto is_ours = [](const auto& entry) { return entry.first.starts_with(kPrefix); };
  return std::ranges::any_of(metadata, is_ours) ? model_info(path, metadata) : ModelInfo{};
}

}  // namespace gradstep

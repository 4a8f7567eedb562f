// Metadata keys begin with "gradstep."; every value is text, as the format demands.
// no torch
#include "run/model_metadata.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "base/number_text.h"
#include "gradstep/base/error.h"
#include "gradstep/base/version.h"
#include "io/safetensors_header.h"

namespace gradstep {
namespace {

using Metadata = std::map<std::string, std::string>;

// The format holds UTF-8 only. A path that is not loses the bytes at fault; the weights must not be lost with
// it.
std::string utf8(const std::string& text) {
  using nlohmann::json;
  return json::parse(json(text).dump(-1, ' ', false, json::error_handler_t::replace)).get<std::string>();
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t size : shape) text += (text.empty() ? "" : "x") + std::to_string(size);
  return text;
}

// Reads one metadata value after the other, and complains in terms of the file.
class MetadataReader {
 public:
  MetadataReader(const std::string& path, const Metadata& metadata) : path_(path), metadata_(metadata) {}

  std::string text(const std::string& key) const {
    const auto found = metadata_.find("gradstep." + key);
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
  std::vector<int64_t> shape(const std::string& key) const {
    std::istringstream parts(text(key));
    std::vector<int64_t> sizes;
    int64_t numel = 1;
    for (std::string part; std::getline(parts, part, 'x');) {
      int64_t size = 0;
      const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), size);
      if (error != std::errc() || end != part.data() + part.size() || size < 1 || size > kMaxInputs / numel) {
        throw CheckpointError(path_ + ": metadata gradstep." + key + " is \"" + text(key) +
                              "\", not a shape");
      }
      numel *= size;
      sizes.push_back(size);
    }
    return sizes;
  }

 private:
  static constexpr int64_t kMaxInputs = int64_t{1} << 28;
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

std::map<std::string, std::string> model_metadata(const ModelInfo& info) {
  if (info.dataset.num_classes == 0) return {};
  Metadata metadata{{"version", std::string(version())},
                    {"git_commit", std::string(git_commit())},
                    {"model", info.model.name},
                    {"hidden", std::to_string(info.model.hidden)},
                    {"dropout", shortest(info.model.dropout)},
                    {"label_smoothing", shortest(info.model.label_smoothing)},
                    {"dataset", info.dataset.name},
                    {"data_dir", utf8(info.data_dir)},
                    {"input_shape", shape_text(info.dataset.input_shape)},
                    {"input", "((byte / 255) - 0.5) / 0.5, flattened"},
                    {"num_classes", std::to_string(info.dataset.num_classes)},
                    {"val_fraction", shortest(info.val_fraction)},
                    {"seed", std::to_string(info.seed)},
                    {"precision", to_string(info.precision)},
                    {"matmul", to_string(info.matmul)},
                    {"update", std::to_string(info.update)}};
  Metadata prefixed;
  for (const auto& [key, value] : metadata) prefixed["gradstep." + key] = value;
  return prefixed;
}

namespace {

// What the program could not have written makes no model and no data set. NaN fails each comparison.
void check_ranges(const std::string& path, const ModelInfo& info) {
  constexpr int64_t kMaxWidth = int64_t{1} << 24;
  const std::vector<std::pair<const char*, bool>> checks{
      {"hidden", info.model.hidden >= 1 && info.model.hidden <= kMaxWidth},
      {"dropout", info.model.dropout >= 0 && info.model.dropout < 1},
      {"label_smoothing", info.model.label_smoothing >= 0 && info.model.label_smoothing <= 1},
      {"num_classes", info.dataset.num_classes >= 1 && info.dataset.num_classes <= kMaxWidth},
      {"val_fraction", info.val_fraction >= 0 && info.val_fraction < 1},
      {"update", info.update >= 0}};
  for (const auto& [key, good] : checks) {
    if (!good)
      throw CheckpointError(path + ": metadata gradstep." + key + " is out of range; use another file");
  }
}

}  // namespace

ModelInfo model_info(const std::string& path, const std::map<std::string, std::string>& metadata) {
  const MetadataReader reader(path, metadata);
  ModelInfo info;
  info.model = {.name = reader.text("model"),
                .hidden = reader.number<int64_t>("hidden"),
                .dropout = reader.number<double>("dropout"),
                .label_smoothing = reader.number<double>("label_smoothing")};
  info.dataset = {reader.text("dataset"), reader.shape("input_shape"), reader.number<int64_t>("num_classes")};
  info.data_dir = reader.text("data_dir");
  info.val_fraction = reader.number<double>("val_fraction");
  info.seed = reader.number<uint64_t>("seed");
  try {
    info.precision = parse_precision(reader.text("precision"));
    info.matmul = parse_matmul(reader.text("matmul"));
  } catch (const ConfigError& error) {
    throw CheckpointError(path + ": its metadata is wrong: " + error.what());
  }
  info.update = reader.number<int64_t>("update");
  check_ranges(path, info);
  return info;
}

ModelInfo model_info_or_none(const std::string& path, const std::map<std::string, std::string>& metadata) {
  const auto is_ours = [](const auto& entry) { return entry.first.starts_with("gradstep."); };
  return std::ranges::any_of(metadata, is_ours) ? model_info(path, metadata) : ModelInfo{};
}

}  // namespace gradstep

// Metadata keys begin with "gradstep."; every value is text, as the format demands.
#include "gradstep/run/model_file.h"

#include <torch/torch.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <set>

#include "base/number_text.h"
#include "gradstep/base/error.h"
#include "gradstep/base/version.h"

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

Metadata to_metadata(const ModelInfo& info) {
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

ModelInfo from_metadata(const std::string& path, const Metadata& metadata) {
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

// Sizes in the metadata are not trusted: the module is built only when the file holds as many numbers as its
// two matrices have, so that a small file cannot ask for much memory.
void check_sizes(const std::string& path, const ModelInfo& info, const SafetensorsFile& file) {
  int64_t num_inputs = 1;
  for (const int64_t size : info.dataset.input_shape) num_inputs *= size;
  int64_t file_elements = 0;
  std::set<const void*> counted;  // second names of one tensor hold nothing new
  for (const auto& [name, tensor] : file.tensors) {
    if (counted.insert(tensor.const_data_ptr()).second) file_elements += tensor.numel();
  }
  // Products stay below 2^53: each factor is checked before.
  if (info.model.hidden * (num_inputs + info.dataset.num_classes) > file_elements) {
    throw CheckpointError(
        path + ": holds fewer numbers than a model of the sizes in its metadata has; use another file");
  }
}

void copy_state(const std::string& path, const SafetensorsFile& file, const torch::nn::Module& module) {
  const at::NoGradGuard no_grad;
  std::map<std::string, at::Tensor> stored(file.tensors.begin(), file.tensors.end());
  for (auto& [name, tensor] : model_tensors(module)) {
    const auto found = stored.find(name);
    if (found == stored.end()) throw CheckpointError(path + ": tensor " + name + " is missing");
    if (found->second.sizes() != tensor.sizes() || found->second.scalar_type() != tensor.scalar_type()) {
      std::ostringstream text;
      text << path << ": tensor " << name << " is " << found->second.scalar_type() << " "
           << found->second.sizes() << ", the model needs " << tensor.scalar_type() << " " << tensor.sizes();
      throw CheckpointError(text.str());
    }
    tensor.copy_(found->second);
    stored.erase(found);
  }
  if (!stored.empty())
    throw CheckpointError(path + ": tensor " + stored.begin()->first + " is not of this model");
}

}  // namespace

NamedTensors model_tensors(const torch::nn::Module& module) {
  NamedTensors state;
  for (const auto& item : module.named_parameters()) state.emplace_back(item.key(), item.value().detach());
  for (const auto& item : module.named_buffers()) state.emplace_back(item.key(), item.value().detach());
  return state;
}

void save_model(FileSystem& file_system, const std::string& path, const torch::nn::Module& module,
                const ModelInfo& info) {
  write_safetensors(file_system, path, model_tensors(module), to_metadata(info));
}

LoadedModel load_model(const std::string& path) {
  const SafetensorsFile file = read_safetensors(path);
  LoadedModel loaded{from_metadata(path, file.metadata), {}};
  check_sizes(path, loaded.info, file);
  try {
    loaded.task = make_task(loaded.info.model, loaded.info.dataset);
  } catch (const ConfigError& error) {
    throw CheckpointError(path + ": " + error.what());
  }
  copy_state(path, file, *loaded.task.module);
  return loaded;
}

}  // namespace gradstep

// safetensors: tensors to bytes and back, around the header's writer and reader.
#include "gradstep/io/safetensors.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <set>
#include <system_error>
#include <tuple>
#include <unordered_map>

#include "gradstep/base/error.h"
#include "io/atomic_write.h"
#include "io/read_file.h"
#include "io/safetensors_header.h"
#include "io/safetensors_image.h"
#include "io/same_view.h"

namespace gradstep {
namespace {

constexpr std::string_view kAliasPrefix = "alias:";

constexpr std::array<std::pair<at::ScalarType, std::string_view>, 16> kTypes = {
    {{at::kBool, "BOOL"},
     {at::kByte, "U8"},
     {at::kChar, "I8"},
     {at::kFloat8_e5m2, "F8_E5M2"},
     {at::kFloat8_e4m3fn, "F8_E4M3"},
     {at::kShort, "I16"},
     {at::kUInt16, "U16"},
     {at::kHalf, "F16"},
     {at::kBFloat16, "BF16"},
     {at::kInt, "I32"},
     {at::kUInt32, "U32"},
     {at::kFloat, "F32"},
     {at::kComplexFloat, "C64"},
     {at::kDouble, "F64"},
     {at::kLong, "I64"},
     {at::kUInt64, "U64"}}};

at::ScalarType scalar_type(std::string_view dtype) {
  return std::ranges::find(kTypes, dtype, &std::pair<at::ScalarType, std::string_view>::second)->first;
}

// What is to be stored, with its bytes in one piece on the CPU.
struct Stored {
  SafetensorsEntry entry;
  at::Tensor bytes;
};

// Drops second names of one tensor, recording them in the metadata, and sorts as Python's writer does.
std::vector<Stored> arrange(const NamedTensors& tensors, std::map<std::string, std::string>& metadata) {
  std::vector<Stored> stored;
  std::unordered_map<const void*, std::vector<const std::pair<std::string, at::Tensor>*>> by_memory;
  std::set<std::string_view> names;
  for (const auto& named : tensors) {
    const auto& [name, tensor] = named;
    TORCH_CHECK(names.insert(name).second && name != "__metadata__", "two tensors are named ", name,
                ", or it is reserved");
    TORCH_CHECK(tensor.defined() && tensor.layout() == at::kStrided, "tensor ", name,
                " is undefined or not dense");
    auto& others = by_memory[tensor.const_data_ptr()];
    const auto first =
        std::ranges::find_if(others, [&](const auto* other) { return same_view(other->second, tensor); });
    if (first != others.end()) {
      metadata[std::string(kAliasPrefix) + name] = (*first)->first;
      continue;
    }
    if (tensor.numel() > 0) others.push_back(&named);  // those without memory share none
    stored.push_back({{name, safetensors_dtype(name, tensor.scalar_type()), tensor.sizes().vec(), 0, 0},
                      tensor.detach().resolve_conj().resolve_neg().to(at::kCPU).contiguous()});
  }
  std::ranges::sort(stored, [](const Stored& a, const Stored& b) {
    return std::tuple(-safetensors_dtype_rank(a.entry.dtype), std::string_view(a.entry.name)) <
           std::tuple(-safetensors_dtype_rank(b.entry.dtype), std::string_view(b.entry.name));
  });
  return stored;
}

void add_aliases(const std::string& path, SafetensorsFile& file) {
  std::map<std::string, at::Tensor> by_name(file.tensors.begin(), file.tensors.end());
  for (auto entry = file.metadata.begin(); entry != file.metadata.end();) {
    if (!entry->first.starts_with(kAliasPrefix)) {
      ++entry;
      continue;
    }
    const std::string alias = entry->first.substr(kAliasPrefix.size());
    const auto target = by_name.find(entry->second);
    if (target == by_name.end() || by_name.contains(alias)) {
      throw CheckpointError(path +
                            ": metadata: an alias of no tensor, or of the name of another; use another file");
    }
    file.tensors.emplace_back(alias, target->second);
    entry = file.metadata.erase(entry);
  }
}

}  // namespace

std::string safetensors_dtype(at::ScalarType type) {
  const auto* const found =
      std::ranges::find(kTypes, type, &std::pair<at::ScalarType, std::string_view>::first);
  return found == kTypes.end() ? std::string() : std::string(found->second);
}

std::string safetensors_dtype(const std::string& tensor_name, at::ScalarType type) {
  std::string name = safetensors_dtype(type);
  if (!name.empty()) return name;
  throw CheckpointError("tensor " + tensor_name + ": type " + c10::toString(type) +
                        " cannot be stored in a safetensors file; convert it first");
}

SafetensorsImage::SafetensorsImage(const NamedTensors& tensors,
                                   const std::map<std::string, std::string>& metadata) {
  SafetensorsHeader header{.entries = {}, .metadata = metadata};
  header.metadata.emplace("format", "pt");
  std::vector<Stored> stored = arrange(tensors, header.metadata);
  uint64_t offset = 0;
  for (Stored& each : stored) {
    each.entry.begin = offset;
    each.entry.end = offset += each.bytes.nbytes();
    header.entries.push_back(std::move(each.entry));
    tensors_.push_back(std::move(each.bytes));
  }
  head_ = format_safetensors_header(header);
  bytes_ = head_.size() + offset;
  pieces_.emplace_back(head_);
  for (const at::Tensor& tensor : tensors_) {
    pieces_.emplace_back(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes());
  }
}

uint64_t write_safetensors(FileSystem& file_system, const std::string& path, const NamedTensors& tensors,
                           const std::map<std::string, std::string>& metadata) {
  const SafetensorsImage image(tensors, metadata);
  try {
    atomic_write(file_system, path, image.pieces());
    return image.bytes();
  } catch (const std::system_error& error) {
    throw CheckpointError(std::string(error.what()) + " (" + std::to_string(image.bytes()) +
                          " bytes in all); make room or rights, or choose another folder");
  }
}

SafetensorsFile read_safetensors(const std::string& path) {
  const ReadFile file(path);
  const std::string json = read_safetensors_json(path, file);
  const uint64_t data_begin = 8 + json.size();
  SafetensorsHeader header = parse_safetensors_header(path, json, file.size() - data_begin);
  SafetensorsFile result;
  result.metadata = std::move(header.metadata);
  for (SafetensorsEntry& entry : header.entries) {
    at::Tensor tensor = at::empty(entry.shape, scalar_type(entry.dtype));
    file.read(tensor.mutable_data_ptr(), entry.end - entry.begin, data_begin + entry.begin);
    result.tensors.emplace_back(std::move(entry.name), std::move(tensor));
  }
  add_aliases(path, result);
  return result;
}

}  // namespace gradstep

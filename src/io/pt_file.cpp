// A .pt file: a zip archive with the pickled dict in data.pkl and the bytes of each tensor in data/<number>,
// made by LibTorch in memory. Its own writer to a file ends the process where the disk is full.
#include "io/pt_file.h"

#include <ATen/ATen.h>
#include <ATen/core/Dict.h>
#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/serialization/pickler.h>

#include <algorithm>
#include <array>
#include <set>
#include <system_error>
#include <unordered_map>
#include <unordered_set>

#include "base/utf8.h"
#include "gradstep/base/error.h"
#include "io/atomic_write.h"
#include "io/same_view.h"

namespace gradstep {
namespace {

using NamedTensor = std::pair<std::string, at::Tensor>;
using TensorDict = c10::Dict<std::string, at::Tensor>;

// Those that have a class of storage in Python; others are pickled in ways that LibTorch does not write.
constexpr std::array kTypes = {at::kFloat, at::kDouble, at::kHalf,         at::kBFloat16,
                               at::kByte,  at::kChar,   at::kShort,        at::kInt,
                               at::kLong,  at::kBool,   at::kComplexFloat, at::kComplexDouble};
constexpr uint64_t kAlignment = 64;  // of each record's bytes in the file
// For the records of the archive: the order and the alignment of the storages, as torch.save notes them.
constexpr std::string_view kFormatVersion = "1";
constexpr std::string_view kByteOrder = "little";

void check(const NamedTensor& named, std::set<std::string_view>& names) {
  const auto& [name, tensor] = named;
  TORCH_CHECK(names.insert(name).second, "two tensors are named ", name);
  TORCH_CHECK(tensor.defined() && tensor.layout() == at::kStrided, "tensor ", name,
              " is undefined or not dense");
  if (!is_utf8(name)) throw CheckpointError("a tensor's name, '" + name + "', is not UTF-8; rename it");
  if (std::ranges::find(kTypes, tensor.scalar_type()) != kTypes.end()) return;
  throw CheckpointError("tensor " + name + ": type " + c10::toString(tensor.scalar_type()) +
                        " cannot be stored in a .pt file; convert it, or write a .safetensors file");
}

// Contiguous, on the CPU, and alone in its memory. The pickler writes whole storages, and each one once, as
// the type that it saw first.
at::Tensor standalone(const at::Tensor& tensor, std::unordered_set<const void*>& used_storages) {
  at::Tensor result = tensor.detach().resolve_conj().resolve_neg().to(at::kCPU).contiguous();
  const bool is_part = result.storage().nbytes() != result.nbytes();
  if (is_part || used_storages.contains(result.storage().unsafeGetStorageImpl())) {
    result = result.clone(at::MemoryFormat::Contiguous);
  }
  used_storages.insert(result.storage().unsafeGetStorageImpl());
  return result;
}

TensorDict arrange(const std::vector<NamedTensor>& tensors) {
  TensorDict dict;
  std::set<std::string_view> names;
  std::unordered_map<const void*, std::vector<const NamedTensor*>> by_memory;
  std::unordered_set<const void*> used_storages;
  for (const NamedTensor& named : tensors) {
    check(named, names);
    auto& others = by_memory[named.second.const_data_ptr()];
    const auto first = std::ranges::find_if(
        others, [&](const auto* other) { return same_view(other->second, named.second); });
    if (first != others.end()) {
      dict.insert(named.first, dict.at((*first)->first));
    } else {
      if (named.second.numel() > 0) others.push_back(&named);  // those without memory share none
      dict.insert(named.first, standalone(named.second, used_storages));
    }
  }
  return dict;
}

// data.pkl; `storages` gets a tensor for each storage that it refers to by number.
std::string pickled(const TensorDict& dict, std::vector<at::Tensor>& storages) {
  std::string text;
  torch::jit::Pickler pickler([&text](const char* bytes, size_t size) { text.append(bytes, size); }, nullptr,
                              nullptr, nullptr, nullptr, /*tag_aggregates=*/false);
  pickler.protocol();
  pickler.pushIValue(dict);
  pickler.stop();
  storages = pickler.tensorData();
  return text;
}

std::string archive_of(const TensorDict& dict) {
  std::vector<at::Tensor> storages;
  const std::string pickle = pickled(dict, storages);
  std::string archive;
  size_t total = pickle.size() + 4096;
  for (const at::Tensor& tensor : storages) total += tensor.storage().nbytes() + 256;
  archive.reserve(total);
  caffe2::serialize::PyTorchStreamWriter writer(
      [&archive](const void* bytes, size_t size) {
        archive.append(static_cast<const char*>(bytes), size);
        return size;
      },
      /*compute_crc32=*/true, kAlignment);
  const auto write = [&writer](const std::string& name, std::string_view bytes) {
    writer.writeRecord(name, bytes.data(), bytes.size());
  };
  write("data.pkl", pickle);
  write(".format_version", kFormatVersion);
  write(".storage_alignment", std::to_string(kAlignment));
  write("byteorder", kByteOrder);
  for (size_t i = 0; i < storages.size(); ++i) {
    const at::Storage& storage = storages[i].storage();
    write("data/" + std::to_string(i), {static_cast<const char*>(storage.data()), storage.nbytes()});
  }
  writer.writeEndOfFile();
  return archive;
}

}  // namespace

void write_pt(FileSystem& file_system, const std::string& path, const std::vector<NamedTensor>& tensors) {
  const std::string archive = archive_of(arrange(tensors));
  try {
    atomic_write(file_system, path, {archive});
  } catch (const std::system_error& error) {
    throw CheckpointError(std::string(error.what()) + " (" + std::to_string(archive.size()) +
                          " bytes in all); make room or rights, or choose another folder");
  }
}

}  // namespace gradstep

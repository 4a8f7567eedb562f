// SafetensorsImage: a safetensors file as it will lie on the disk, in pieces that are not copied together.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gradstep/io/safetensors.h"

namespace gradstep {

// Holds the tensors it was made of: where they are contiguous on the CPU their own memory is what is written
// later, else a copy. Synchronises the device.
class SafetensorsImage {
 public:
  // As write_safetensors describes; throws CheckpointError for what the format cannot hold.
  SafetensorsImage(const NamedTensors& tensors, const std::map<std::string, std::string>& metadata);
  SafetensorsImage(const SafetensorsImage&) = delete;
  SafetensorsImage& operator=(const SafetensorsImage&) = delete;

  // Views of this object; header first.
  [[nodiscard]] const std::vector<std::string_view>& pieces() const { return pieces_; }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }

 private:
  std::string head_;
  std::vector<at::Tensor> tensors_;
  std::vector<std::string_view> pieces_;
  uint64_t bytes_ = 0;
};

// "F32" and so on: the name of the type in the format; empty if the format lacks it.
[[nodiscard]] std::string safetensors_dtype(at::ScalarType type);

// The same. Throws CheckpointError, naming the tensor, for a type that the format lacks.
[[nodiscard]] std::string safetensors_dtype(const std::string& tensor_name, at::ScalarType type);

}  // namespace gradstep

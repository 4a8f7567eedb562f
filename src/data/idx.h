// IDX: the file format of MNIST and Fashion-MNIST, plain or gzipped.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>

#include "gradstep/data/dataset.h"

namespace gradstep {

// Reads a file of unsigned bytes with `num_dims` dimensions (3: pictures, 1: labels) -> uint8 tensor of its
// shape. gzip is recognised by its first bytes, not by the name. Throws DataError with file, offset, expected
// and found (empty, short, long, wrong magic, wrong number of dimensions).
[[nodiscard]] at::Tensor read_idx(const std::string& path, int64_t num_dims);

// The folder holds {train,t10k}-{images-idx3,labels-idx1}-ubyte, each with or without .gz.
[[nodiscard]] std::shared_ptr<const Dataset> load_idx_dataset(const std::string& name,
                                                              const std::string& data_dir, Split split);

}  // namespace gradstep

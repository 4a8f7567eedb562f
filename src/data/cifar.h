// CIFAR-10 in its binary form: records of one label byte and 3072 pixel bytes (3, 32, 32).
#pragma once

#include <memory>
#include <string>

#include "gradstep/data/dataset.h"

namespace gradstep {

// The folder holds data_batch_1.bin .. data_batch_5.bin and test_batch.bin, or the folder
// cifar-10-batches-bin with them. Throws DataError with file, offset, expected and found.
[[nodiscard]] std::shared_ptr<const Dataset> load_cifar10(const std::string& data_dir, Split split);

}  // namespace gradstep

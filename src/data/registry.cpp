// The data sets known by name: where they lie, how they are read, and how to get them.
#include <filesystem>
#include <functional>

#include "base/nearest.h"
#include "data/cifar.h"
#include "data/idx.h"
#include "data/missing.h"
#include "gradstep/base/error.h"
#include "gradstep/data/dataset.h"

namespace gradstep {
namespace {

namespace fs = std::filesystem;

struct KnownDataset {
  std::string name;
  std::string package_dir;  // of a Debian package; empty: none
  std::string cure;
  std::function<std::shared_ptr<const Dataset>(const std::string& data_dir, Split split)> load;
};

const std::vector<KnownDataset>& known_datasets() {
  static const std::vector<KnownDataset> known = {
      {"fashion-mnist", "/usr/share/datasets/fashion-mnist",
       "run 'apt-get install dataset-fashion-mnist' or 'gradstep fetch fashion-mnist'",
       [](const std::string& dir, Split split) { return load_idx_dataset("fashion-mnist", dir, split); }},
      {"mnist", "", "run 'gradstep fetch mnist'",
       [](const std::string& dir, Split split) { return load_idx_dataset("mnist", dir, split); }},
      {"cifar10", "", "run 'gradstep fetch cifar10'",
       [](const std::string& dir, Split split) { return load_cifar10(dir, split); }},
  };
  return known;
}

const KnownDataset* find_known(const std::string& name) {
  for (const KnownDataset& known : known_datasets()) {
    if (known.name == name) return &known;
  }
  return nullptr;
}

const KnownDataset& require_known(const std::string& name) {
  if (const KnownDataset* const known = find_known(name)) return *known;
  throw ConfigError("`dataset` " + name + ": unknown data set" + known_names(name, dataset_names()));
}

}  // namespace

std::vector<std::string> dataset_names() {
  std::vector<std::string> names;
  for (const KnownDataset& known : known_datasets()) names.push_back(known.name);
  return names;
}

std::string default_data_dir(const std::string& name) {
  const KnownDataset* const known = find_known(name);
  std::error_code ignored;
  if (known != nullptr && !known->package_dir.empty() && fs::is_directory(known->package_dir, ignored)) {
    return known->package_dir;
  }
  return "data/" + name;
}

DataError missing_data(const std::string& name, const std::string& data_dir, const std::string& file) {
  const KnownDataset* const known = find_known(name);
  const std::string cure =
      known != nullptr ? known->cure + ", or give its folder with `data_dir`" : "correct the folder";
  std::error_code ignored;
  if (!fs::is_directory(data_dir, ignored)) {
    return DataError("data set " + name + ": there is no folder " + data_dir + "; " + cure);
  }
  return DataError("data set " + name + ": folder " + data_dir + " has no file " + file + "; " + cure);
}

std::shared_ptr<const Dataset> load_dataset(const std::string& name, const std::string& data_dir,
                                            Split split) {
  const KnownDataset& known = require_known(name);
  return known.load(data_dir.empty() ? default_data_dir(name) : data_dir, split);
}

}  // namespace gradstep

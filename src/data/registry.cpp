// The data sets known by name: where they lie, how they are read, and how to get them.
#include <algorithm>
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

// ", but a, b, c and 4 more": what a user may have meant.
std::string content_of(const std::string& folder) {
  constexpr size_t kMostShown = 4;
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    std::error_code ignored;
    names.push_back(entry.path().filename().string() + (entry.is_directory(ignored) ? "/" : ""));
  }
  if (names.empty()) return ", it is empty";
  std::ranges::sort(names);
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kMostShown); ++i)
    text += (i == 0 ? ", but " : ", ") + names[i];
  return names.size() <= kMostShown ? text
                                    : text + " and " + std::to_string(names.size() - kMostShown) + " more";
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

bool is_data_file(const std::string& name, const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() != fs::file_type::none && status.type() != fs::file_type::unknown)
    return fs::is_regular_file(status);
  throw DataError("data set " + name + ": cannot look at " + path.string() + ": " + error.message() +
                  "; check the rights of the folders on the way");
}

DataError missing_data(const std::string& name, const std::string& data_dir, const std::string& file) {
  const KnownDataset* const known = find_known(name);
  const std::string cure =
      known != nullptr ? known->cure + ", or give its folder with `data_dir`" : "correct the folder";
  std::error_code ignored;
  if (!fs::is_directory(data_dir, ignored)) {
    const bool is_file = fs::exists(data_dir, ignored);
    return DataError("data set " + name + ": " +
                     (is_file ? data_dir + " is no folder" : "there is no folder " + data_dir) + "; " + cure);
  }
  return DataError("data set " + name + ": folder " + data_dir + " has no file " + file +
                   content_of(data_dir) + "; " + cure);
}

std::shared_ptr<const Dataset> load_dataset(const std::string& name, const std::string& data_dir,
                                            Split split) {
  const KnownDataset& known = require_known(name);
  return known.load(data_dir.empty() ? default_data_dir(name) : data_dir, split);
}

}  // namespace gradstep

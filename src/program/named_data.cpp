// The data sets that load_dataset() knows by name, each in a folder.
#include "program/recipes.h"

namespace gradstep {
namespace {

class NamedData final : public DataRecipe {
 public:
  explicit NamedData(std::string name) : name_(std::move(name)) {}
  void flags(Flags& flags) override;
  [[nodiscard]] std::shared_ptr<const Dataset> load(Split part) override;
  [[nodiscard]] std::string folder() const override;

 private:
  std::string name_;
  std::string data_dir_{};  // empty: default_data_dir(name)
};

void NamedData::flags(Flags& flags) {
  flags.add("data_dir", data_dir_, "Folder with the files of the data set.")
      .alias("data_path")
      .metavar("DIR")
      .path()
      .default_text("the Debian package's folder for fashion-mnist, else data/<name>")
      .on_resume(OnResume::kFree);
}

std::shared_ptr<const Dataset> NamedData::load(Split part) { return load_dataset(name_, data_dir_, part); }

std::string NamedData::folder() const { return data_dir_.empty() ? default_data_dir(name_) : data_dir_; }

}  // namespace

void add_named_data(App& app) {
  for (const std::string& name : dataset_names()) app.dataset<NamedData>(name, name);
}

}  // namespace gradstep

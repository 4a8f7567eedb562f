// Data sets by name, each in a folder.
#include <filesystem>

#include "program/recipes.h"

namespace gradstep {

void NamedData::flags(Flags& flags) {
  flags.add("data_dir", data_dir, "Folder with the files of the data set.")
      .alias("data_path")
      .metavar("DIR")
      .default_text("the Debian package's folder for fashion-mnist, else data/<name>")
      .on_resume(OnResume::kFree);
}

std::shared_ptr<const Dataset> NamedData::load(Split part) { return load_dataset(name_, data_dir, part); }

std::string NamedData::folder() const { return data_dir.empty() ? default_data_dir(name_) : data_dir; }

void NamedData::restored() {
  std::error_code ignored;
  if (!std::filesystem::is_directory(data_dir, ignored)) data_dir.clear();
}

}  // namespace gradstep

// Flags: how a recipe describes its options. Each becomes a flag, a variable GRADSTEP_*, a key of the config
// file, a line of the help, and a setting that a resume compares.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <vector>

#include "gradstep/base/setting.h"

namespace gradstep {

/// What kind of value a flag takes.
enum class ValueKind {
  kSwitch,   ///< none; --flag=false turns it off
  kInteger,  ///< a whole number
  kReal,     ///< a number
  kText      ///< any text
};

/// What a reader sees of a flag, whatever it fills.
struct FlagInfo {
  std::string key{};  ///< "batch_size": the key of the config file; the flag is --batch-size
  OnResume on_resume = OnResume::kRefused;  ///< what a changed value means
  std::string group{};                      ///< heading in the help
  char short_name = 0;                      ///< 'b'; 0: none
  std::string metavar{};                    ///< "N"; empty: a switch
  std::string help{};                       ///< one or two sentences without the default
  std::vector<std::string> aliases{};       ///< other keys: "learning_rate"
  std::string default_text{};               ///< shown as the default; empty: the value at the start
  ValueKind kind = ValueKind::kText;        ///< what it takes
  std::string expects{};      ///< "a whole number of at least 1": follows "must be" in error lines
  bool is_path = false;       ///< a file or folder, which runs record as an absolute path
  bool of_one_start = false;  ///< it belongs to one start, so that the config.toml of a run leaves it out

  /// True if the flag takes no value.
  [[nodiscard]] bool is_switch() const { return kind == ValueKind::kSwitch; }
};

/// A flag tied to the value that it fills.
struct BoundFlag {
  FlagInfo info{};  ///< what a reader sees
  /// Sets the value from text. Returns false, and sets nothing, if the text is not what info.expects says.
  std::function<bool(const std::string& text)> set{};
  std::function<std::string()> get{};  ///< gives the value as text that set() takes
  std::function<bool()> valid{};       ///< true if the value is what info.expects says
};

/// The options of a recipe. Its flags() adds them.
class Flags {
 public:
  /// One flag, while it is described. Every call returns the same flag, so that calls can be chained.
  class Entry {
   public:
    /// Flags::add() makes entries.
    explicit Entry(BoundFlag flag) : flag_(std::move(flag)) {}
    /// For numbers: the smallest and the largest value allowed, both included.
    Entry& range(double min, double max);
    /// For real numbers: values from 0 up to, but not including, `limit` are allowed.
    Entry& below(double limit);
    /// For texts: the texts allowed.
    Entry& choices(std::vector<std::string> texts);
    /// The heading under which the help has the flag.
    Entry& group(std::string heading);
    /// Another key for the same value.
    Entry& alias(std::string key);
    /// For texts: the text is the path of a file or folder. A ~ at its start is the home folder, also where
    /// no shell replaces it. A part that begins with $ is refused, unless a file of that name is there.
    Entry& path();
    /// What the help calls the value: "FILE".
    Entry& metavar(std::string name);
    /// What the help shows as the default if the value says little, such as "" for a folder that is looked
    /// for.
    Entry& default_text(std::string text);
    /// What a changed value means for a resumed run. By default it is another run, and refused.
    Entry& on_resume(OnResume rule);
    /// The flag as described so far.
    [[nodiscard]] const BoundFlag& flag() const { return flag_; }

   private:
    BoundFlag flag_;
  };

  /// Adds a flag for a whole number. `key` has only lower-case letters, digits and _: "seq_length" is
  /// --seq-length. `value` has the default, receives what the user gives, and must outlive the flags. Throws
  /// std::logic_error for a key that is given twice or badly spelt. Three more mistakes end the program in
  /// the same way at its start: a key or an alias that every program has already, such as "lr", its alias
  /// "learning_rate" or "num_classes", which describes the data in model files; a default that the flag does
  /// not take itself; and another kind of value than the flag of this key has in another recipe. Recipes may
  /// share a key otherwise: default, range and rule of the chosen recipe hold.
  Entry& add(const std::string& key, int64_t& value, const std::string& help);
  /// The same for a real number.
  Entry& add(const std::string& key, double& value, const std::string& help);
  /// The same for a switch.
  Entry& add(const std::string& key, bool& value, const std::string& help);
  /// The same for a text.
  Entry& add(const std::string& key, std::string& value, const std::string& help);

  /// All flags, in the order of add().
  [[nodiscard]] std::vector<BoundFlag> bound() const;

 private:
  Entry& keep(BoundFlag flag);
  std::list<Entry> entries_;
};

}  // namespace gradstep

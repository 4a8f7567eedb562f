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

enum class ValueKind { kSwitch, kInteger, kReal, kText };

/// What a reader sees of a flag, whatever it fills.
struct FlagInfo {
  std::string key{};  ///< "batch_size": the key of the config file; the flag is --batch-size
  OnResume on_resume = OnResume::kRefused;
  std::string group{};                 ///< heading in the help
  char short_name = 0;                 ///< 'b'; 0: none
  std::string metavar{};               ///< "N"; empty: a switch
  std::string help{};                  ///< one or two sentences without the default
  std::vector<std::string> aliases{};  ///< other keys: "learning_rate"
  std::string default_text{};          ///< shown as the default; empty: the value at the start
  ValueKind kind = ValueKind::kText;
  std::string expects{};  ///< "a whole number of at least 1": behind "must be" in complaints

  [[nodiscard]] bool is_switch() const { return kind == ValueKind::kSwitch; }
};

/// A flag tied to the value that it fills.
struct BoundFlag {
  FlagInfo info{};
  /// False, and nothing set: the text is not what info.expects says.
  std::function<bool(const std::string& text)> set{};
  std::function<std::string()> get{};  ///< text that set() takes back
  std::function<bool()> valid{};       ///< the value is what info.expects says
};

class Flags {
 public:
  /// One flag, while it is described. Every call returns the same flag, so that calls can be chained.
  class Entry {
   public:
    explicit Entry(BoundFlag flag) : flag_(std::move(flag)) {}
    /// Smallest and largest value allowed, both included. For numbers.
    Entry& range(double min, double max);
    /// From 0 up to, but not including, `limit`. For real numbers.
    Entry& below(double limit);
    /// The texts allowed. For texts.
    Entry& choices(std::vector<std::string> texts);
    Entry& group(std::string heading);
    Entry& alias(std::string key);
    Entry& metavar(std::string name);
    /// In place of the value, where that says little ("" for a folder that is found).
    Entry& default_text(std::string text);
    /// What a changed value means for a run that goes on. By default it is another run, and refused.
    Entry& on_resume(OnResume rule);
    [[nodiscard]] const BoundFlag& flag() const { return flag_; }

   private:
    BoundFlag flag_;
  };

  /// `key` has letters, digits and _ only: "seq_length" is --seq-length. `value` holds the default, receives
  /// what the user gives, and must outlive the flags. Throws std::logic_error for a key given twice or badly
  /// spelt.
  Entry& add(const std::string& key, int64_t& value, const std::string& help);
  Entry& add(const std::string& key, double& value, const std::string& help);
  Entry& add(const std::string& key, bool& value, const std::string& help);
  Entry& add(const std::string& key, std::string& value, const std::string& help);

  /// In the order of add().
  [[nodiscard]] std::vector<BoundFlag> bound() const;

 private:
  Entry& keep(BoundFlag flag);
  std::list<Entry> entries_;
};

}  // namespace gradstep

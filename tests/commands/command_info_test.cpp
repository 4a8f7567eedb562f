// The tables of the subcommands.
#include "commands/command_info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>

#include "app/run_settings.h"

namespace gradstep::testing {
namespace {

class OneFlag final : public ModelRecipe {
 public:
  explicit OneFlag(std::string name) : name_(std::move(name)) {}
  void flags(Flags& flags) override { flags.add(name_, value_, "A number."); }
  Task task(const DatasetSpec& /*spec*/) override { return {}; }

 private:
  std::string name_;
  int64_t value_ = 0;
};

// eval and replay take the flags of recipes beside their own.
TEST(CommandInfo, ARecipeMayNotTakeAFlagOfEvalOrReplay) {
  std::vector<std::string> taken;
  for (const auto& flag : eval_flags()) taken.push_back(flag.info.key);
  for (const auto& flag : replay_flags()) taken.push_back(flag.info.key);
  for (const std::string& name : taken) {
    Catalog catalog;
    catalog.add_model("mine", [name] { return std::make_unique<OneFlag>(name); });
    EXPECT_THROW(RunSettings{catalog}, std::logic_error) << name;
  }
}

}  // namespace
}  // namespace gradstep::testing

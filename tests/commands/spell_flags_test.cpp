// Options that the library names by their keys become the flags of the program, and nothing else changes.
// no torch
#include "commands/spell_flags.h"

#include <gtest/gtest.h>

#include "support/gradstep_program.h"

namespace gradstep::testing {
namespace {

TEST(SpellFlags, AKeyInBackticksBecomesItsFlag) {
  EXPECT_EQ(spell_flags("lower `lr`, or allow more with `max_rollbacks`"),
            "lower --lr, or allow more with --max-rollbacks");
  EXPECT_EQ(spell_flags("`output_dir` runs/a: holds a run; resume it with `resume` auto"),
            "--output-dir runs/a: holds a run; resume it with --resume auto");
}

TEST(SpellFlags, RecipesAndCommandsHaveFlagsToo) {
  EXPECT_EQ(spell_flags("`hidden` `predictions`"), "--hidden --predictions");
}

TEST(SpellFlags, EverythingElseStays) {
  for (const char* text : {"", "lr", "`", "``", "`lr", "lr`", "`fnord`", "` lr`", "it's `not a flag` at all"})
    EXPECT_EQ(spell_flags(text), text);
  EXPECT_EQ(spell_flags("`fnord`lr`eps"), "`fnord--lreps");
}

}  // namespace
}  // namespace gradstep::testing

// Arguments of a subcommand: the forms that are taken, and one line for each that is not.
// no torch
#include "commands/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gradstep/base/error.h"
#include "support/gradstep_program.h"

namespace gradstep::testing {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<std::string>;
using Flags = std::vector<std::pair<std::string, std::string>>;

Flags parsed(const Words& words) { return parse_arguments(command("train"), words).flags; }

Words positionals(const std::string& name, const Words& words) {
  return parse_arguments(command(name), words).positionals;
}

std::string refusal(const Words& words, const std::string& name = "train") {
  try {
    (void)parse_arguments(command(name), words);
    return "";
  } catch (const ConfigError& error) {
    const std::string what = error.what();
    EXPECT_EQ(what.find('\n'), std::string::npos) << what;
    return what;
  }
}

TEST(Arguments, TakesEachForm) {
  const Flags sixty_four{{"batch_size", "64"}};
  for (const Words& words : {Words{"--batch-size", "64"}, Words{"--batch-size=64"}, Words{"-b", "64"},
                             Words{"-b64"}, Words{"--batch_size", "64"}, Words{"--batch_size=64"}}) {
    EXPECT_EQ(parsed(words), sixty_four) << words[0];
  }
  EXPECT_EQ(parsed({}), Flags{});
}

TEST(Arguments, TakesTheAliases) {
  EXPECT_EQ(parsed({"--learning-rate", "1"}), (Flags{{"lr", "1"}}));
  EXPECT_EQ(parsed({"--wd", "1"}), (Flags{{"weight_decay", "1"}}));
  EXPECT_EQ(parsed({"--optimizer", "sgd"}), (Flags{{"opt", "sgd"}}));
  EXPECT_EQ(parsed({"--gradient-accumulation-steps", "2"}), (Flags{{"grad_accum_steps", "2"}}));
  EXPECT_EQ(parsed({"--gradient_accumulation_steps=2"}), (Flags{{"grad_accum_steps", "2"}}));
  EXPECT_EQ(parsed({"--num-workers", "2"}), (Flags{{"workers", "2"}}));
  EXPECT_EQ(parsed({"-j", "2"}), (Flags{{"workers", "2"}}));
  EXPECT_EQ(parsed({"--max-grad-norm", "1"}), (Flags{{"clip_grad", "1"}}));
  EXPECT_EQ(parsed({"--data-path", "/a_b"}), (Flags{{"data_dir", "/a_b"}}));
  EXPECT_EQ(parsed({"-o", "run_1"}), (Flags{{"output_dir", "run_1"}}));
  EXPECT_EQ(parsed({"-c", "a_b.toml"}), (Flags{{"config", "a_b.toml"}}));
}

TEST(Arguments, Switches) {
  EXPECT_EQ(parsed({"--nesterov"}), (Flags{{"nesterov", "true"}}));
  EXPECT_EQ(parsed({"--nesterov=false"}), (Flags{{"nesterov", "false"}}));
  EXPECT_EQ(parsed({"--dry-run", "-q"}), (Flags{{"quiet", "true"}, {"dry_run", "true"}}));
}

TEST(Arguments, TheLastOneGivenWins) {
  EXPECT_EQ(parsed({"--lr", "1", "--learning-rate", "2", "--lr=3"}), (Flags{{"lr", "3"}}));
}

TEST(Arguments, ValuesMayBeginWithADash) { EXPECT_EQ(parsed({"--lr", "-1"}), (Flags{{"lr", "-1"}})); }

TEST(Arguments, UnknownFlagsNameTheNearest) {
  EXPECT_EQ(refusal({"--bacth-size", "3"}),
            "unknown flag --bacth-size; did you mean --batch-size? See gradstep train --help");
  EXPECT_EQ(refusal({"--bacth_size=3"}),
            "unknown flag --bacth-size; did you mean --batch-size? See gradstep train --help");
  EXPECT_EQ(refusal({"-lr", "1"}), "unknown flag -lr; did you mean --lr? See gradstep train --help");
  EXPECT_EQ(refusal({"--"}), "unknown flag --; see gradstep train --help");
  EXPECT_EQ(refusal({"-z"}), "unknown flag -z; see gradstep train --help");
  EXPECT_EQ(refusal({"--foo"}, "env"), "unknown flag --foo; see gradstep env --help");
}

TEST(Arguments, FlagsOfFeaturesThatAreNotThereAreUnknown) {
  for (const char* flag : {"--shard", "--n-layer", "--seq-len"}) {
    EXPECT_THAT(refusal({flag, "1"}), HasSubstr("unknown flag " + std::string(flag)));
  }
}

TEST(Arguments, MissingValues) {
  EXPECT_EQ(refusal({"--lr"}), "--lr needs a value; see gradstep train --help");
  EXPECT_EQ(refusal({"-b"}), "-b needs a value; see gradstep train --help");
  EXPECT_EQ(refusal({"--lr=", "3"}), "--lr needs a value; see gradstep train --help");
  EXPECT_EQ(refusal({"--output-dir", "--epochs", "3"}),
            "--output-dir needs a value, but --epochs follows; see gradstep train --help");
}

TEST(Arguments, SeveralPositionalsInTheirOrder) {
  EXPECT_EQ(positional_names(command("ckpt export")), (Words{"PATH", "FILE"}));
  EXPECT_EQ(positional_names(command("env")), Words{});
  EXPECT_EQ(positionals("ckpt export", {"a", "--ema", "b.pt"}), (Words{"a", "b.pt"}));
  EXPECT_EQ(positionals("ckpt export", {"--format", "pt", "--", "-a", "--ema"}), (Words{"-a", "--ema"}));
  EXPECT_EQ(positionals("ckpt diff", {"a"}), Words{"a"});
  EXPECT_EQ(refusal({"a", "b", "c"}, "ckpt diff"), "unexpected argument 'c'; see gradstep ckpt diff --help");
}

TEST(Arguments, WhatStandsBehindTwoDashesIsTheRestAsItIs) {
  const Words words{"--more", "3", "--", "--foo_bar", "-x", "--", "y"};
  const Arguments found = parse_arguments(command("verify-resume"), words);
  EXPECT_EQ(found.flags, (Flags{{"more", "3"}}));
  EXPECT_EQ(found.rest, (Words{"--foo_bar", "-x", "--", "y"}));
  EXPECT_EQ(parse_arguments(command("verify-resume"), {"--"}).rest, Words{});
  EXPECT_EQ(refusal({"--more", "--", "3"}, "verify-resume"),
            "--more needs a value; see gradstep verify-resume --help");
  EXPECT_EQ(refusal({"--lr", "3"}, "verify-resume"),
            "unknown flag --lr; flags of train go after --. See gradstep verify-resume --help");
}

TEST(Arguments, PositionalOnlyWhereThereIsOne) {
  EXPECT_EQ(positionals("eval", {"runs/first", "--threads", "2"}), Words{"runs/first"});
  EXPECT_EQ(positionals("eval", {"--threads", "2", "runs/first"}), Words{"runs/first"});
  EXPECT_EQ(positionals("eval", {}), Words{});
  EXPECT_EQ(refusal({"foo"}), "unexpected argument 'foo'; see gradstep train --help");
  EXPECT_THAT(refusal({"a", "b"}, "eval"), HasSubstr("unexpected argument 'b'"));
}

}  // namespace
}  // namespace gradstep::testing

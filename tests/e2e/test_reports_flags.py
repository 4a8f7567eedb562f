"""Faults that were reported on flags, settings and folders of version 0.1, by their numbers."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from program import ProgramTest, rows, run  # noqa: E402


class Settings(ProgramTest):
    def without_warmup(self, *arguments, name="run"):
        words = self.small(*arguments, name=name)
        place = words.index("--warmup-steps")
        return words[:place] + words[place + 2 :]

    def test_r1_a_window_that_no_checkpoint_can_hold_is_refused(self):
        result = run(*self.small("--grad-accum-steps", 1_000_000_000, "--stop-after", 1))
        self.check_refusal(result, 2, "--batch-size 4 x --grad-accum-steps 1000000000", "2147483648")

    def test_r3_what_belongs_to_one_start_is_not_repeated(self):
        first = self.small(
            "--max-steps", 8, "--stop-after", 3, "--resume", "auto", "--max-time", "1h", "--accept-drift"
        )
        self.done(run(*first))
        config = self.folder / "run/config.toml"
        for key in ("resume", "accept_drift", "stop_after", "max_time", "dry_run"):
            self.assertNotRegex(config.read_text(), rf"(?m)^{key} =")
        self.done(run("train", "-c", config, "-o", self.folder / "again"))
        self.assertEqual(rows(self.folder / "again")[-1]["update"], 8)
        # Another seed is another run, as it was before.
        words = ("train", "-c", config, "--seed", 7, "-o", self.folder / "run", "--resume", "auto")
        self.check_refusal(run(*words), 2, "seed was 0, is 7")

    def test_r13_paths_that_no_shell_has_read(self):
        home = self.folder / "home"
        home.mkdir()
        config = self.folder / "c.toml"
        config.write_text('output_dir = "~/from_config"\n')
        words = self.small("--stop-after", 1)[:-4] + ["--stop-after", "1"]  # without -o
        for env, extra, folder in (
            ({"HOME": str(home)}, ["--output-dir=~/from_flag"], home / "from_flag"),
            ({"HOME": str(home), "GRADSTEP_OUTPUT_DIR": "~/from_variable"}, [], home / "from_variable"),
            ({"HOME": str(home)}, ["-c", str(config)], home / "from_config"),
        ):
            with self.subTest(folder=folder.name):
                self.done(run(*words, *extra, env=env, cwd=self.folder))
                self.assertTrue((folder / "model.safetensors").exists())
        self.assertFalse((self.folder / "~").exists())
        for text in ("$HOME/r", "${SCRATCH}/r", "runs/$USER"):
            self.check_refusal(run(*words, f"--output-dir={text}", cwd=self.folder), 2, text, "only a shell replaces")
        (self.folder / "$odd").mkdir()  # a name that is really meant
        self.done(run(*words, "-o", "$odd/r", cwd=self.folder))

    def test_r14_an_empty_value_is_refused_and_its_place_named(self):
        for arguments in (["-o", ""], ["--output-dir="], ["--output-dir", ""], ["--data-dir="], ["--accept-drift="]):
            with self.subTest(arguments=arguments):
                self.check_refusal(run(*self.small(*arguments)), 2, arguments[0].rstrip("="))
        for name in ("GRADSTEP_DATA_DIR", "GRADSTEP_BATCH_SIZE", "GRADSTEP_OUTPUT_DIR", "GRADSTEP_DETERMINISTIC"):
            with self.subTest(name=name):
                self.check_refusal(run(*self.small(), env={name: ""}), 2, name + " is empty")
        config = self.folder / "c.toml"
        config.write_text('output_dir = ""\n')
        self.check_refusal(run(*self.small("-c", config)), 2, "line 1", "output_dir is empty")
        self.check_refusal(run("eval", self.folder, "--predictions", ""), 2, "--predictions needs a value")
        self.assertFalse((self.folder / "run").exists())

    def test_r27_a_seed_that_the_generator_cannot_take_is_refused(self):
        self.check_refusal(run(*self.small("--seed", 1 << 32)), 2, "--seed '4294967296'", "4294967295")
        self.done(run(*self.small("--seed", (1 << 32) - 1, "--stop-after", 1)))

    def test_r28_a_warmup_that_nobody_gave_gives_way(self):
        plan = self.done(run(*self.without_warmup("--max-steps", 10))).stdout
        self.assertIn("1 warm-up update (a tenth of the run)", plan)
        self.assertEqual([row["lr"] for row in rows(self.folder / "run") if "lr" in row][0], 1e-3)
        long = self.done(run(*self.without_warmup("--max-steps", 5000, "--dry-run", name="long"))).stdout
        self.assertIn("cosine, 100 warm-up updates, peak", long)
        self.check_refusal(run(*self.without_warmup("--max-steps", 10, "--warmup-steps", 11)), 2, "--warmup-steps 11")
        # The config file of a run does not make the number a given one.
        self.done(run("train", "-c", self.folder / "run/config.toml", "--max-steps", 5, "-o", self.folder / "short"))

    def test_r29_the_cure_that_is_printed_works(self):
        words = self.without_warmup("--max-time", "1s")
        self.check_refusal(run(*words), 2, "--sched constant")
        self.done(run(*words, "--sched", "constant"))

    def test_r30_what_is_asked_for_and_switched_off_at_once_is_refused(self):
        self.check_refusal(
            run(*self.small("--on-spike", "stop", "--spike-zscore", 0)), 2, "--spike-zscore 0", "--on-spike"
        )

    def test_r30_flags_without_effect_are_told(self):
        for flags, words in (
            (["--momentum", 0.5], ["--momentum has no effect with --opt adamw"]),
            (["--beta1", 0.5, "--opt", "sgd"], ["--beta1 has no effect with --opt sgd"]),
            (["--sched", "constant", "--min-lr", "1e-5"], ["--min-lr has no effect with --sched constant"]),
            (["--spike-window", 5], ["--spike-window has no effect without --on-spike"]),
            (["--max-rollbacks", 5], ["--max-rollbacks has no effect unless"]),
        ):
            with self.subTest(flags=flags):
                result = run(*self.small("--dry-run", *flags))
                self.assertEqual(result.returncode, 0, result.stderr)
                for word in words:
                    self.assertIn("warning: " + word, result.stderr)
        self.done(run(*self.small("--dry-run", "--momentum", 0.5, "--opt", "sgd")))
        config = self.folder / "c.toml"
        config.write_text("momentum = 0.5\n")  # files have all keys
        self.done(run(*self.small("--dry-run", "-c", config)))

    def test_r31_a_number_that_is_0_in_fp32_is_refused(self):
        self.check_refusal(run(*self.small("--eps", "1e-46")), 2, "--eps '1e-46'")

    def test_r26_deterministic_runs_choose_nothing_by_a_stopwatch(self):
        words = self.small("--dry-run", "--deterministic", "--precision", "auto", "--matmul", "auto")
        for _ in range(3):
            plan = self.done(run(*words)).stdout
            self.assertIn("fp32, matrix products by torch: not measured, since the run is deterministic", plan)

    def test_r32_the_threads_that_a_scheduler_sets_count(self):
        words = self.small("--dry-run")
        place = words.index("--threads")
        words = words[:place] + words[place + 2 :]
        for text, threads in (("1", "1 thread"), ("3", "3 threads"), ("1,2", "1 thread")):
            self.assertIn(f"cpu, {threads}\n", self.done(run(*words, env={"OMP_NUM_THREADS": text})).stdout)
        plan = self.done(run(*words, "--threads", 2, env={"OMP_NUM_THREADS": "1"})).stdout
        self.assertIn("cpu, 2 threads\n", plan)

    def test_r33_what_is_out_of_memory_names_the_limit_that_is_in_the_way(self):
        # 4 x 4 pixels into a million: 17 million numbers, twice for the copy.
        result = run(*self.small("--hidden", 1_000_000, "--memory-limit", "50m"))
        self.check_refusal(result, 6, "--memory-limit is 52.4 MB; raise it")

    def test_r61_evaluations_that_follow_the_clock_are_refused_by_the_proof(self):
        words = self.small("--epochs", 9, "--eval-interval", "0.05s")[1:]
        place = words.index("-o")
        words = words[:place] + words[place + 2 :]
        result = run("verify-resume", "--updates", 5, "--more", 5, "--", *words)
        self.check_refusal(result, 2, "--eval-interval 0.05s", "give updates or epochs")

    def test_r63_what_is_echoed_is_shortened(self):
        config = self.folder / "c.toml"
        config.write_text("x" * 900_000 + " = 1\n")
        result = run(*self.small("-c", config), timeout=10)
        self.check_refusal(result, 2, "unknown key xxx", "(900000 bytes)")
        self.assertLess(len(result.stderr), 1000)
        result = run(*self.small("--lr=" + "9" * 100_000 + "x"), timeout=10)
        self.check_refusal(result, 2, "--lr '999", "bytes)")
        self.assertLess(len(result.stderr), 1000)
        config.write_text('data_dir = "a\\u0000b"\n')
        self.check_refusal(run(*self.small("-c", config)), 2, "NUL", "data_dir")


if __name__ == "__main__":
    unittest.main()

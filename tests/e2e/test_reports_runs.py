"""Faults that were reported on runs of version 0.1, by their numbers: other data at a resume or an evaluation, stops
that come at a bad time, a machine that becomes slow, and messages without a remedy."""

import os
import pathlib
import resource
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from program import PROGRAM, ProgramTest, finish, rows, run, start, wait_for, wait_for_content, write_idx  # noqa: E402


def events(folder, name):
    return [row for row in rows(folder) if row.get("event") == name]


class Data(ProgramTest):
    def test_r17_data_that_have_grown_are_no_measure_of_a_held_out_part(self):
        self.done(run(*self.small("--epochs", 1, "--val-fraction", 0.2)))
        self.done(run("eval", self.folder / "run"))
        write_idx(self.folder / "data", num_train=90)
        self.check_refusal(
            run("eval", self.folder / "run"), 5, "validation part of the training set", "trained on", "--data-dir"
        )
        accepted = run("eval", self.folder / "run", "--force")
        self.assertEqual(accepted.returncode, 0)
        self.assertIn("warning: the samples are not those", accepted.stderr)

    def test_r17_another_test_set_is_told(self):
        self.done(run(*self.small("--max-steps", 2, "--stop-after", 1)))
        write_idx(self.folder / "data", num_test=30)
        result = run("eval", self.folder / "run")
        self.assertEqual(result.returncode, 0)
        self.assertIn("warning: the samples are not those that the run of", result.stderr)
        result = run(*self.small("--max-steps", 2, "--resume", "auto"))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("evaluation data was ", result.stderr)

    def test_r24_the_learning_rate_gets_to_its_end_after_drift(self):
        self.done(run(*self.small("--epochs", 3, "--stop-after", 10, "--min-lr", 1e-5)))
        more = self.small("--epochs", 3, "--min-lr", 1e-5, "--resume", "auto", "--accept-drift")
        more[more.index("--grad-accum-steps") + 1] = 1
        result = run(*more)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("the learning rate falls over", result.stderr)
        rates = [row["lr"] for row in rows(self.folder / "run") if "lr" in row]
        self.assertEqual(rates[-1], 1e-5)
        self.assertEqual(rates[10:], sorted(rates[10:], reverse=True))

    def test_r24_a_warm_up_that_nobody_gave_is_not_begun_again(self):
        words = self.small("--epochs", 40, "--stop-after", 40)
        at = words.index("--warmup-steps")
        del words[at : at + 2]
        self.done(run(*words))
        for flag, value in (("-b", 1), ("--grad-accum-steps", 1), ("--stop-after", 5)):
            words[words.index(flag) + 1] = value
        result = run(*words, "--resume", "auto", "--accept-drift")
        self.assertEqual(result.returncode, 0, result.stderr)
        rates = [row["lr"] for row in rows(self.folder / "run") if "lr" in row]
        self.assertGreater(rates[40], 0.99 * rates[39])
        self.assertEqual(rates[40:], sorted(rates[40:], reverse=True))
        warning = next(line for line in result.stderr.splitlines() if "the learning rate" in line)
        now, before = warning.split(" is ")[-1].split(", not ")
        self.assertNotEqual(now, before)

    def test_r24_a_warm_up_that_is_over_does_not_refuse_fewer_updates(self):
        words = self.small("--epochs", 4, "--stop-after", 25)
        words[words.index("--warmup-steps") + 1] = 20
        self.done(run(*words))
        for flag, value in (("-b", 60), ("--grad-accum-steps", 1)):
            words[words.index(flag) + 1] = value
        result = run(*words, "--resume", "auto", "--accept-drift")
        self.assertEqual(result.returncode, 0, result.stderr)


class Stops(ProgramTest):
    def wide(self, *flags):
        """A run whose window takes minutes."""
        words = self.small("--max-steps", 3, *flags)
        for flag, value in (("--hidden", 8192), ("-b", 1)):
            words[words.index(flag) + 1] = value
        words[words.index("--grad-accum-steps") : words.index("--grad-accum-steps") + 2] = []
        return words

    def test_r36_a_window_longer_than_the_grace_is_given_up(self):
        write_idx(self.folder / "data", num_train=60_000)
        process = start(*self.wide("--global-batch-size", 60_000, "--grace", "1s"))
        wait_for(lambda: (self.folder / "run/metrics.jsonl").exists())
        time.sleep(1)
        begin = time.monotonic()
        process.send_signal(signal.SIGTERM)
        result = finish(process)
        self.assertEqual(result.returncode, 143, result.stderr)
        self.assertLess(time.monotonic() - begin, 10)
        self.assertIn("was given up", result.stdout + result.stderr)
        self.assertEqual(len(list((self.folder / "run/checkpoints").glob("step-*"))), 1)

    def test_r36_the_probe_ends_with_a_stop(self):
        write_idx(self.folder / "data", num_train=60_000)
        words = self.wide("-o", self.folder / "run")
        for flag, value in (("--hidden", 8_000), ("-b", 20_000), ("--precision", "auto"), ("--matmul", "auto")):
            words[words.index(flag) + 1] = value
        process = start(*words)
        wait_for(lambda: (self.folder / "run").exists())
        time.sleep(2)
        process.send_signal(signal.SIGTERM)
        result = finish(process)
        self.assertEqual(result.returncode, 143, result.stderr)
        self.assertIn("nothing was trained", result.stderr)


class Machine(ProgramTest):
    def test_r55_a_run_that_becomes_slow_says_so_once(self):
        shown = self.folder / "shown"  # a pipe that nobody reads would fill
        words = self.small("--max-steps", 100_000_000, "--save-interval", 0, "--eval-interval", 0)
        with open(shown, "w") as out:
            process = start(*words, stdout=out)
        wait_for_content(self.folder / "run/metrics.jsonl")
        time.sleep(3)
        end = time.monotonic() + 30
        while "slower than it was" not in shown.read_text()[-10_000:] and time.monotonic() < end:
            process.send_signal(signal.SIGSTOP)
            time.sleep(0.3)
            process.send_signal(signal.SIGCONT)
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        result = finish(process)
        self.assertEqual(result.returncode, 143, result.stderr)
        found = events(self.folder / "run", "slowed down")
        self.assertEqual(len(found), 1)
        self.assertIn("times slower than it was", found[0]["what"])
        self.assertIn("times slower than it was", shown.read_text())

    def test_r55_threads_are_measured_and_a_resume_keeps_them(self):
        words = self.small("--max-steps", 4, "--stop-after", 2)
        del words[words.index("--threads") : words.index("--threads") + 2]
        result = self.done(run(*words))
        self.assertRegex((self.folder / "run/config.toml").read_text(), r"\nthreads = [1-9]\d*\n")
        if len(os.sched_getaffinity(0)) > 1:
            self.assertIn("measured a micro-batch", result.stdout)
        again = self.done(run(*words, "--resume", "auto"))
        self.assertIn("as before", again.stdout)

    def test_r62_little_address_space_is_one_line(self):
        for kilobytes in (380_000, 400_000, 440_000):
            limit = (kilobytes << 10, kilobytes << 10)
            result = run(
                "train", "--help", preexec_fn=lambda limit=limit: resource.setrlimit(resource.RLIMIT_AS, limit)
            )
            self.assertEqual(result.returncode, 6, (kilobytes, result.stderr))
            self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
            self.assertIn("out of memory", result.stderr)


class Messages(ProgramTest):
    def test_r64_a_current_folder_that_is_gone_is_told(self):
        gone = self.folder / "gone"
        gone.mkdir()
        result = subprocess.run(
            ["sh", "-c", f"cd '{gone}' && rmdir '{gone}' && exec '{PROGRAM}' --version"], capture_output=True, text=True
        )
        self.assertEqual((result.returncode, result.stderr), (2, "the current folder is gone; cd to another\n"))

    def test_r64_paths_that_cannot_be_are_told_with_a_remedy(self):
        loop = self.folder / "loop"
        loop.symlink_to("loop")
        for path in (loop, "x" * 300, loop / "x"):
            for words in (
                ("ckpt", "ls", path),
                ("ckpt", "verify", path),
                ("ckpt", "diff", path, path),
                ("ckpt", "export", path, "a.pt"),
                ("eval", path),
                ("replay", path),
                ("train", "-o", path),
                ("train", "--config", path),
                ("train", "--resume", path),
                ("train", "--dataset", "mnist", "--data-dir", path),
                ("fetch", "mnist", "--data-dir", path, "--base-url", "http://127.0.0.1:9/"),
                ("verify-resume", "-o", path),
            ):
                result = run(*words)
                self.assertIn(result.returncode, (2, 4, 5), (words, result.stderr))
                last = result.stderr.splitlines()[-1]
                self.assertNotIn("filesystem error", last)
                self.assertRegex(last, r"; |give|choose", words)


if __name__ == "__main__":
    unittest.main()

"""Runs in trouble: numbers that go wrong, memory that runs out, disks that fill up, signals while it saves."""

import os
import pathlib
import random
import re
import resource
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from program import ProgramTest, rows, run, start, write_idx  # noqa: E402
from soak import checkpoints, first_difference, kill_at_random, newest_update, numbers, tensor_files  # noqa: E402


def events(folder, name):
    return [row for row in rows(folder) if row.get("event") == name]


class Numbers(ProgramTest):
    # Ordinary losses count as spikes: rollbacks on demand, and equal ones in each run.
    spikes = [
        "--epochs",
        "4",
        "--dropout",
        "0.1",
        "--save-interval",
        "3",
        "--spike-zscore",
        "2",
        "--spike-window",
        "6",
        "--max-rollbacks",
        "100",
    ]
    bad = ["--max-steps", "100", "--opt", "sgd", "--sched", "constant", "--lr", "1e38"]

    def train(self, name, *arguments):
        return run(*self.small(*self.spikes, *arguments, name=name))

    def test_a_spike_is_skipped(self):
        self.done(self.train("run", "--on-spike", "skip"))
        windows = [row for row in rows(self.folder / "run") if "loss" in row]
        self.assertEqual([row["window"] for row in windows], list(range(1, 33)))
        spikes = [row for row in windows if "spike" in row]
        self.assertTrue(spikes)
        self.assertTrue(all(row["skipped"] for row in spikes))
        self.assertEqual(len(events(self.folder / "run", "spike")), len(spikes))

    def test_a_spike_stops(self):
        result = self.train("run", "--on-spike", "stop")
        self.check_refusal(result, 3, "stopped at window", "deviations above the mean")

    def test_a_rollback_steps_over_the_window_and_each_window_has_one_row(self):
        self.done(self.train("whole", "--on-spike", "rollback"))
        whole = self.folder / "whole"
        windows = [row for row in rows(whole) if "loss" in row]
        self.assertEqual([row["window"] for row in windows], list(range(1, 33)))
        self.assertTrue(events(whole, "rollback"))
        self.assertEqual(sum(row["skipped"] for row in windows), windows[-1]["skipped_total"])
        self.assertGreater(windows[-1]["skipped_total"], 0)
        self.done(self.train("again", "--on-spike", "rollback"))
        self.assertEqual(first_difference(self.folder / "again", whole), "")
        kill_at_random(
            self.small(*self.spikes, "--on-spike", "rollback", name="killed"), self.folder / "killed", 6, 3, seed=2
        )
        self.assertEqual(first_difference(self.folder / "killed", whole), "")

    def test_rollbacks_have_a_limit(self):
        result = self.train("run", "--on-spike", "rollback", "--max-rollbacks", 1)
        self.check_refusal(result, 3, "after 1 rollbacks", "--max-rollbacks")
        before = checkpoints(self.folder / "run")
        self.assertTrue(before)
        self.done(run("ckpt", "verify", self.folder / "run"))

    def test_not_finite_stops_and_saves_nothing_of_it(self):
        result = run(*self.small(*self.bad, "--on-nonfinite", "stop"))
        self.check_refusal(result, 3, "stopped at window 2", "first in ", "--lr")
        self.assertFalse((self.folder / "run/checkpoints").exists())

    def test_a_rollback_without_a_checkpoint_says_what_to_do(self):
        result = run(*self.small(*self.bad, "--on-nonfinite", "rollback", "--save-interval", 0, "--eval-interval", 0))
        self.check_refusal(result, 3, "no checkpoint to roll back to", "--save-interval")

    def test_the_black_box_is_replayed(self):
        for precision in ("fp32", "bf16"):
            with self.subTest(precision):
                name = precision
                run(*self.small(*self.bad, "--precision", precision, "--threads", 2, name=name))
                boxes = sorted((self.folder / name).glob("blackbox-*.safetensors"))
                self.assertEqual([box.name for box in boxes], ["blackbox-00000002.safetensors"])
                result = self.done(run("replay", boxes[0]))
                self.assertIn("same as recorded", result.stdout)
                self.assertRegex(result.stdout, r"(?m)^module +forward norm")
                self.assertIn("fc2", result.stdout)
                data = bytearray(boxes[0].read_bytes())
                data[200] ^= 0xFF
                broken = self.folder / "broken.safetensors"
                broken.write_bytes(data)
                self.check_refusal(run("replay", broken), 4, "broken.safetensors")
                other = write_idx(self.folder / "other", num_train=64)
                self.assertNotEqual(run("replay", boxes[0], "--data-dir", other).returncode, 0)


class Memory(ProgramTest):
    flags = [
        "--hidden",
        "256",
        "-b",
        "2000",
        "--grad-accum-steps",
        "1",
        "--warmup-steps",
        "0",
        "--precision",
        "fp32",
        "--matmul",
        "torch",
        "--threads",
        "1",
        "--epochs",
        "3",
    ]

    def train(self, name, *arguments):
        data = self.folder / "wide"
        if not data.exists():
            write_idx(data, num_train=4000, num_test=100, side=16)
        return run("train", "--dataset", "mnist", "--data-dir", data, *self.flags, "-o", self.folder / name, *arguments)

    def test_the_micro_batch_is_halved_kept_and_stored(self):
        self.done(self.train("free", "--memory-limit", "none"))
        self.done(self.train("tight", "--memory-limit", "8m", "--stop-after", 2))
        tight = self.folder / "tight"
        halved = events(tight, "out of memory")
        self.assertEqual(len(halved), 1)
        size = int(halved[0]["micro_batch"])
        self.assertLess(size, 2000)
        state = (tight / "checkpoints" / checkpoints(tight)[-1] / "state.json").read_text()
        self.assertIn(f'"micro_batch":{size}', state)
        self.done(self.train("tight", "--memory-limit", "8m", "--resume", "auto"))
        self.assertEqual(len(events(tight, "out of memory")), 1)  # none again
        for ours, free in zip(numbers(tight), numbers(self.folder / "free"), strict=True):
            self.assertEqual(ours.get("samples"), free.get("samples"))
            if "loss" in free:
                self.assertAlmostEqual(ours["loss"], free["loss"], places=4)

    def test_too_little_for_one_sample(self):
        result = self.train("run", "--memory-limit", "1m")
        self.check_refusal(result, 6, "out of memory")


class Disk(ProgramTest):
    def mount(self, options):
        if os.geteuid() != 0:
            self.skipTest("only root may mount")
        target = self.folder / "disk"
        target.mkdir()
        if (
            subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", target], capture_output=True).returncode
            != 0
        ):
            self.skipTest("mounting is not allowed here")
        self.addCleanup(subprocess.run, ["umount", target], check=False)
        return target

    def fill(self, disk):
        with open(disk / "rest", "wb", buffering=0) as rest:
            try:
                while True:
                    rest.write(bytes(4096))
            except OSError:
                pass

    def test_f2_a_disk_that_fills_up_between_two_starts(self):
        flags = ["--epochs", 3, "--hidden", 64, "--save-interval", 4, "--eval-interval", 0]
        self.done(run(*self.small(*flags, name="whole")))
        disk = self.mount("size=1m")
        arguments = self.small(*flags, "-o", disk / "run")
        self.done(run(*arguments, "--stop-after", 6))
        before = tensor_files(disk / "run")
        self.fill(disk)
        self.check_refusal(run(*arguments, "--resume", "auto"), 4, str(disk / "run"))
        self.assertEqual(tensor_files(disk / "run"), before)
        (disk / "rest").unlink()
        self.done(run(*arguments, "--resume", "auto"))
        self.assertEqual(first_difference(disk / "run", self.folder / "whole"), "")

    def test_saves_that_fail_may_be_passed_over_but_not_the_last(self):
        for policy, lines in (("stop", 1), ("continue", 1)):
            with self.subTest(policy):
                folder = self.folder / policy
                # A file in the way of the folder of checkpoints; the output folder counts as that of a run.
                folder.mkdir()
                (folder / "config.toml").write_text("")
                (folder / "checkpoints").write_text("in the way")
                arguments = self.small("--epochs", 2, "--save-interval", 2, "--resume", "auto", name=policy)
                result = run(*arguments, "--on-save-error", policy)
                self.check_refusal(result, 4, "checkpoints")
                self.assertEqual(result.stderr.count("\n"), lines)

    def test_a_limit_on_the_size_of_files(self):
        arguments = self.small("--epochs", 2, "--hidden", 2000)
        limit = 100_000  # the model alone has 216 kB
        result = run(
            *arguments, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        )
        self.check_refusal(result, 4, "checkpoints" if "checkpoints" in result.stderr else "safetensors")


class Signals(ProgramTest):
    """Saves after each update, large enough that most signals meet one."""

    flags = [
        "--max-steps",
        "60",
        "--hidden",
        "3000",
        "--save-interval",
        "1",
        "--eval-interval",
        "7",
        "--keep-checkpoints",
        "2",
        "--dropout",
        "0.1",
    ]

    def setUp(self):
        super().setUp()
        self.done(run(*self.small(*self.flags, name="whole")))

    def go_on_until_done(self, name):
        self.done(run(*self.small(*self.flags, "--resume", "auto", name=name)))
        self.assertEqual(first_difference(self.folder / name, self.folder / "whole"), "")

    def wait_for_update(self, folder, update, process):
        end = time.monotonic() + 60
        while newest_update(folder) < update and process.poll() is None and time.monotonic() < end:
            time.sleep(0.001)

    def test_each_signal_while_it_saves(self):
        random.seed(4)
        for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGUSR1, 138)):
            with self.subTest(number.name):
                name = number.name
                process = start(*self.small(*self.flags, name=name))
                self.wait_for_update(self.folder / name, random.randrange(1, 20), process)
                time.sleep(random.uniform(0, 0.01))
                process.send_signal(number)
                _, err = process.communicate(timeout=60)
                self.assertEqual((process.returncode, err), (code, ""))
                last = [row for row in rows(self.folder / name) if "loss" in row][-1]["update"]
                self.assertEqual(newest_update(self.folder / name), last)
                self.go_on_until_done(name)

    def test_a_second_interrupt_leaves_at_once_and_harms_nothing(self):
        random.seed(5)
        for i in range(4):
            name = f"run{i}"
            process = start(*self.small(*self.flags, name=name))
            self.wait_for_update(self.folder / name, 3 + i, process)
            process.send_signal(signal.SIGINT)
            time.sleep(random.uniform(0, 0.004))
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
            self.assertEqual(process.returncode, 130)
            self.go_on_until_done(name)

    def test_a_short_grace_is_told_at_the_start(self):
        result = run(*self.small(*self.flags, "--grace", "0.000001s", "--stop-after", 2, name="grace"))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr, r"(?m)^gradstep: warning: --grace .* is too short: a save of .* takes about ")

    def test_limits_of_time_need_an_end_or_a_constant_rate(self):
        arguments = [word for word in map(str, self.small(name="timed"))]
        self.check_refusal(run(*arguments, "--max-time", "1s"), 2, "--max-time", "--sched constant")
        result = self.done(run(*arguments, "--max-time", "1s", "--sched", "constant"))
        self.assertTrue(re.search(r"not finished: update \d+ \(--max-time\)", result.stdout), result.stdout[-300:])


if __name__ == "__main__":
    unittest.main()

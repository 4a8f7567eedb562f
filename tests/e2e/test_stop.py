"""Signals and limits of time in a run that saves nearly always: it ends in order, and goes on as if nothing had happened."""

import pathlib
import random
import re
import signal
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from program import SIGNALS, ProgramTest, finish, rows, run, start, wait_for, write_idx  # noqa: E402
from soak import checkpoints, first_difference, newest_update  # noqa: E402


class StopTest(ProgramTest):
    # Each update is followed by a save that takes longer than the update.
    flags = (
        "--hidden",
        8000,
        "--save-interval",
        1,
        "--eval-interval",
        7,
        "--log-interval",
        0,
        "--dropout",
        0.1,
        "--ema",
        0.9,
    )
    updates = 40

    def saving(self, *arguments, name="run"):
        return self.small(*self.flags, "--max-steps", self.updates, *arguments, name=name)

    def wait_for_update(self, process, folder, update):
        wait_for(lambda: newest_update(folder) >= update or process.poll() is not None)

    def check_newest_is_last_row(self, folder):
        windows = [row for row in rows(folder) if "loss" in row]
        self.assertEqual([row["window"] for row in windows], list(range(1, len(windows) + 1)))
        self.assertEqual(checkpoints(folder)[-1], f"step-{windows[-1]['update']:08}" if windows else "step-00000000")

    def check_ends_as_unbroken(self, name):
        self.done(run(*self.saving("--resume", "auto", name=name)))
        self.done(run(*self.saving("--resume", "auto", name="whole")))
        self.assertEqual(first_difference(self.folder / name, self.folder / "whole"), "")
        left = [path.name for path in (self.folder / name).rglob("*") if re.search(r"[.](tmp|old)-", path.name)]
        self.assertEqual(left, [])


class Signals(StopTest):
    def test_any_signal_at_any_moment(self):
        draw = random.Random(11)
        name = "run"
        folder = self.folder / name
        for i in range(8):
            number, code = draw.choice(sorted(SIGNALS.items()))
            process = start(*self.saving("--resume", "auto", name=name))
            self.wait_for_update(process, folder, newest_update(folder) + draw.choice([1, 2, 3]))
            time.sleep(draw.uniform(0, 0.02))
            process.send_signal(number)
            result = finish(process)
            with self.subTest(i=i, number=number):
                self.assertEqual((result.returncode, result.stderr), (code, ""))
                self.check_newest_is_last_row(folder)
                end = rows(folder)[-1]
                self.assertEqual((end["event"], end["reason"]), ("end", number.name))
        self.check_ends_as_unbroken(name)

    def test_in_the_midst_of_an_evaluation(self):
        """What was cut short is done again, after the same update, when the run is taken up."""
        write_idx(self.folder / "data", num_test=2000)
        self.flags = (*self.flags, "--eval-interval", 2, "--save-interval", 3, "--keep-checkpoints", 2)
        draw = random.Random(15)
        folder = self.folder / "run"
        for i in range(8):
            process = start(*self.saving("--resume", "auto"))
            self.wait_for_update(process, folder, newest_update(folder) + 1)
            time.sleep(draw.uniform(0, 0.05))
            process.send_signal(signal.SIGTERM)
            result = finish(process)
            with self.subTest(i=i):
                self.assertEqual((result.returncode, result.stderr), (143, ""))
                self.check_newest_is_last_row(folder)
        self.check_ends_as_unbroken("run")

    def terminated_within(self, seconds, name="run"):
        """A start that goes on, sent SIGTERM after so long: before the handlers it kills; on a fast machine the run may be done already."""
        process = start(*self.saving("--resume", "auto", name=name))
        time.sleep(seconds)
        process.send_signal(signal.SIGTERM)
        return finish(process)

    def test_while_it_is_taken_up(self):
        """Between the first instruction and the first update of a start that resumes."""
        draw = random.Random(12)
        folder = self.folder / "run"
        self.done(run(*self.saving("--stop-after", 5)))
        for i in range(8):
            result = self.terminated_within(draw.uniform(0, 0.6))
            with self.subTest(i=i):
                self.assertIn(result.returncode, (0, 143, -signal.SIGTERM))
                if result.returncode == 143:
                    self.assertEqual(result.stderr, "")
                    self.check_newest_is_last_row(folder)
        self.check_ends_as_unbroken("run")

    def test_a_signal_before_the_first_update(self):
        draw = random.Random(13)
        for i in range(6):
            name = f"run{i}"
            result = self.terminated_within(draw.uniform(0, 0.5), name=name)
            with self.subTest(i=i):
                self.assertIn(result.returncode, (0, 143, -signal.SIGTERM))
                if result.returncode == 143:
                    self.check_newest_is_last_row(self.folder / name)
                again = run(*self.saving("--resume", "auto", "--stop-after", 2, name=name))
                self.assertEqual((again.returncode, again.stderr), (0, ""))
        self.check_ends_as_unbroken("run0")

    def test_two_interrupts_leave_at_once_with_the_old_files_whole(self):
        draw = random.Random(14)
        folder = self.folder / "run"
        for i in range(8):
            process = start(*self.saving("--resume", "auto"))
            self.wait_for_update(process, folder, newest_update(folder) + 2)
            process.send_signal(signal.SIGINT)
            time.sleep(draw.choice([0, 0.002, 0.01]))
            process.send_signal(signal.SIGINT)
            result = finish(process)
            with self.subTest(i=i):
                self.assertEqual((result.returncode, result.stderr), (130, ""))
        self.check_ends_as_unbroken("run")

    def test_a_mixture_of_signals(self):
        process = start(*self.saving())
        self.wait_for_update(process, self.folder / "run", 2)
        for number in (signal.SIGUSR1, signal.SIGTERM, signal.SIGINT):
            process.send_signal(number)
        result = finish(process)
        self.assertIn(result.returncode, SIGNALS.values())  # whichever came first to the program
        self.check_newest_is_last_row(self.folder / "run")
        self.check_ends_as_unbroken("run")

    def test_a_folder_with_what_a_killed_start_left(self):
        for name, resume in (("auto", "auto"), ("new", "none")):
            folder = self.folder / name
            folder.mkdir()
            for left in (".config.toml.tmp-12-0", ".rate.tmp-12", ".gradstep.lock"):
                (folder / left).write_text("half")
            self.done(run(*self.saving("--resume", resume, "--stop-after", 1, name=name)))
            self.assertEqual([path.name for path in folder.iterdir() if path.name.startswith(".")], [])
        (self.folder / "mine").mkdir()
        (self.folder / "mine/.config.toml").write_text("mine")
        self.done(run(*self.saving("--resume", "auto", "--stop-after", 1, name="mine")))
        self.assertEqual((self.folder / "mine/.config.toml").read_text(), "mine")


class Limits(StopTest):
    def test_a_grace_that_is_too_short_is_told_at_the_start(self):
        process = start(*self.saving("--grace", "0.0001s"))
        self.wait_for_update(process, self.folder / "run", 3)
        process.terminate()
        result = finish(process)
        self.assertEqual(result.returncode, 143)
        self.assertEqual(result.stderr, "")
        self.assertRegex(
            result.stdout,
            r"warning: --grace 0.1 ms is too short: a save of \S+ MB takes about [1-9]\S* (s|ms) here, and one may be under way; .*\n",
        )
        self.check_newest_is_last_row(self.folder / "run")

    def test_max_time_ends_in_time_and_in_pieces_the_run_is_the_same(self):
        self.updates = 10_000
        self.flags = (*self.flags[2:], "--hidden", 8, "--save-interval", 3000, "--eval-interval", 2500)
        for _ in range(20):
            began = time.monotonic()
            result = self.done(run(*self.saving("--resume", "auto", "--max-time", "2s")))
            self.assertLess(time.monotonic() - began, 4)
            if "done: " in result.stdout:
                break
            self.assertRegex(result.stdout, r"not finished: update \d+ of 10000 \(--max-time\)")
            self.check_newest_is_last_row(self.folder / "run")
        self.check_ends_as_unbroken("run")

    def test_max_time_alone_needs_a_schedule_without_an_end(self):
        arguments = self.small("--max-time", "2s")
        self.check_refusal(run(*arguments), 2, "--max-time", "--sched constant")
        self.assertFalse((self.folder / "run").exists())
        began = time.monotonic()
        result = self.done(run(*arguments, "--sched", "constant", "--log-interval", 0))
        self.assertLess(time.monotonic() - began, 4)
        self.assertRegex(result.stdout, r"not finished: update \d+ \(--max-time\)")
        self.check_newest_is_last_row(self.folder / "run")


if __name__ == "__main__":
    unittest.main()

"""Numbers that go wrong: what a run does about them, and what it leaves to look at. One bright picture among dull ones makes the logits
overflow in the one window of each epoch that has it, as soon as the weights are very large."""

import pathlib
import random
import shutil
import signal
import struct
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from program import ProgramTest, rows, run, start, write_idx  # noqa: E402
from soak import checkpoints, first_difference, kill_at_random, newest_update, numbers, unbroken  # noqa: E402

BRIGHT = 37  # the sample
BAD = [7, 13, 23, 31, 37]  # the window of each epoch that has it, from 1


def windows(folder):
    return [row for row in rows(folder) if "loss" in row]


def events(folder, name):
    return [row for row in rows(folder) if row.get("event") == name]


def black_boxes(folder):
    return sorted(pathlib.Path(folder).glob("blackbox-*.safetensors"))


def write_bright(folder, num_train=60, num_test=20, side=4, bright=(BRIGHT,)):
    """Pixels near the mean, which become numbers near 0; but one picture is white."""
    write_idx(folder, num_train, num_test, side)
    for part, count in (("train", num_train), ("t10k", num_test)):
        pixels = bytearray(33 + (17 * i + 31 * p) % 3 for i in range(count) for p in range(side * side))
        for i in bright if part == "train" else ():
            pixels[i * side * side : (i + 1) * side * side] = bytes([255]) * side * side
        header = struct.pack(">IIII", 0x803, count, side, side)
        (folder / f"{part}-images-idx3-ubyte").write_bytes(header + pixels)


class BrightTest(ProgramTest):
    def setUp(self):
        super().setUp()
        write_bright(self.folder / "data")

    def bright(self, *arguments, name="run"):
        flags = "--lr 1e18 --weight-decay 0 --epochs 5 --save-interval 4 --keep-checkpoints 0 --log-interval 0"
        return self.small(*flags.split(), *arguments, name=name)

    def check_each_window_once(self, folder, count):
        self.assertEqual([row["window"] for row in windows(folder)], list(range(1, count + 1)))


class NonFinite(BrightTest):
    def test_skip_loses_those_windows_and_nothing_else(self):
        self.done(run(*self.bright()))
        folder = self.folder / "run"
        self.check_each_window_once(folder, 40)
        self.assertEqual([row["window"] for row in windows(folder) if row["skipped"]], BAD)
        self.assertEqual([path.name for path in black_boxes(folder)], ["blackbox-00000007.safetensors"])
        self.assertEqual([row["window"] for row in events(folder, "black box")], ["7"])

    def test_stop_leaves_the_older_checkpoints_and_resumable(self):
        self.done(run(*self.bright(name="skip")))
        stopped = run(*self.bright("--on-nonfinite", "stop"))
        folder = self.folder / "run"
        self.check_refusal(stopped, 3, "window 7", "fc2", "--lr")
        self.check_each_window_once(folder, 7)
        self.assertEqual(checkpoints(folder), ["step-00000004"])
        for path in (folder / "checkpoints/step-00000004").glob("*.safetensors"):
            same = self.folder / "skip/checkpoints/step-00000004" / path.name
            self.assertEqual(same.read_bytes(), path.read_bytes(), path.name)
        self.assertFalse((folder / "model.safetensors").exists())
        self.assertEqual(len(black_boxes(folder)), 1)
        again = run(*self.bright("--on-nonfinite", "stop", "--resume", "auto"))
        self.check_refusal(again, 3, "window 7")
        self.check_each_window_once(folder, 7)
        went_on = run(*self.bright("--resume", "auto"))
        self.assertEqual(went_on.returncode, 0, went_on.stderr)
        self.assertIn("on_nonfinite was stop, is skip", went_on.stderr)
        self.assertEqual(first_difference(folder, self.folder / "skip"), "")

    def test_rollback_steps_over_those_windows(self):
        for name in ("run", "again"):
            self.done(run(*self.bright("--on-nonfinite", "rollback", "--max-rollbacks", 5, name=name)))
        folder = self.folder / "run"
        self.check_each_window_once(folder, 40)
        self.assertEqual([row["window"] for row in windows(folder) if row["skipped"]], BAD)
        self.assertEqual(windows(folder)[-1]["skipped_total"], 5)
        self.assertEqual(first_difference(folder, self.folder / "again"), "")
        self.assertEqual([int(row["window"]) for row in events(folder, "rollback")], BAD)
        self.assertEqual([row["window"] for row in events(folder, "black box")], ["7"])
        last = events(folder, "rollback")[-1]
        self.assertEqual((last["window"], pathlib.Path(last["to"]).name), ("37", "step-00000032"))

    def test_a_rollback_names_a_broken_checkpoint_and_takes_the_one_before(self):
        flags = ["--on-nonfinite", "rollback", "--max-rollbacks", 5]
        self.done(run(*self.bright(*flags, "--stop-after", 5)))
        folder = self.folder / "run"
        (folder / "checkpoints/step-00000005/optimizer.safetensors").unlink()
        result = run(*self.bright(*flags, "--resume", "auto", "--stop-after", 4))
        self.assertEqual(result.returncode, 0, result.stderr)
        back = events(folder, "rollback")[0]
        self.assertEqual((back["window"], pathlib.Path(back["to"]).name), ("7", "step-00000004"))
        broken = events(folder, "broken checkpoint")  # at the start and by the rollback
        self.assertEqual(["step-00000005" in row["what"] for row in broken], [True, True])
        self.assertEqual(len(events(folder, "resume")), 1)

    def test_so_many_rollbacks_and_no_more(self):
        self.done(run(*self.bright("--on-nonfinite", "rollback", "--max-rollbacks", 5, name="whole")))
        flags = ["--on-nonfinite", "rollback", "--max-rollbacks"]
        for allowed, window in ((0, 7), (2, 23)):
            with self.subTest(allowed=allowed):
                result = run(*self.bright(*flags, allowed, name=f"run{allowed}"))
                self.check_refusal(result, 3, f"window {window} after {allowed} rollbacks", "--max-rollbacks")
                self.check_each_window_once(self.folder / f"run{allowed}", window)
                again = run(*self.bright(*flags, allowed, "--resume", "auto", name=f"run{allowed}"))
                self.check_refusal(again, 3, f"window {window} after {allowed} rollbacks")
                self.done(run(*self.bright(*flags, 5, "--resume", "auto", name=f"run{allowed}")))
                self.assertEqual(first_difference(self.folder / f"run{allowed}", self.folder / "whole"), "")

    def test_no_checkpoint_to_roll_back_to(self):
        result = run(*self.bright("--on-nonfinite", "rollback", "--save-interval", 0))
        self.check_refusal(result, 3, "window 7", "no checkpoint", "--save-interval")
        self.assertEqual(checkpoints(self.folder / "run"), [])

    def test_killed_between_rollbacks_the_end_is_the_same(self):
        flags = ["--on-nonfinite", "rollback", "--max-rollbacks", 100, "--epochs", 25]
        flags += ["--keep-checkpoints", 2, "--dropout", 0.1]
        unbroken(self.bright(*flags, name="whole"))
        kills = kill_at_random(self.bright(*flags, name="killed"), self.folder / "killed", 8, 4, seed=3)
        self.assertGreaterEqual(kills, 4)
        self.assertGreaterEqual(len([row for row in windows(self.folder / "whole") if row["skipped"]]), 10)
        self.check_each_window_once(self.folder / "killed", 200)
        self.assertEqual(first_difference(self.folder / "killed", self.folder / "whole"), "")

    def test_numbers_of_an_evaluation_that_are_not_finite_are_never_the_best(self):
        for part in ("images-idx3", "labels-idx1"):
            shutil.copy(self.folder / f"data/train-{part}-ubyte", self.folder / f"data/t10k-{part}-ubyte")
        result = run(*self.bright("--lr", 3e18, "--best-metric", "val_loss", "--eval-interval", 3))
        self.assertEqual(result.returncode, 0, result.stderr)
        evals = [row for row in rows(self.folder / "run") if "val_loss" in row]
        best = [row for row in evals if row["best"]]
        self.assertEqual({row["val_loss"] for row in evals}, {"NaN"})
        self.assertEqual(best, [])
        self.assertFalse((self.folder / "run/best.safetensors").exists())


class Spikes(ProgramTest):
    """A low limit makes spikes of ordinary windows."""

    flags = ("--epochs", 5, "--lr", 0.01, "--save-interval", 4, "--keep-checkpoints", 0)
    limits = ("--spike-window", 4, "--spike-zscore", 3)

    def spiky(self, *arguments, name="run"):
        return self.small(*self.flags, *self.limits, "--log-interval", 0, *arguments, name=name)

    def test_skip_stop_and_rollback(self):
        self.done(run(*self.spiky("--on-spike", "skip", name="skip")))
        skipped = [row["window"] for row in windows(self.folder / "skip") if row["skipped"]]
        self.assertTrue(1 < len(skipped) < 20 and skipped[0] > 5, skipped)
        self.assertEqual([int(row["window"]) for row in events(self.folder / "skip", "spike")], skipped)
        self.assertTrue(all("spike" in row for row in windows(self.folder / "skip") if row["skipped"]))

        stopped = run(*self.spiky("--on-spike", "stop", name="stop"))
        self.check_refusal(stopped, 3, f"window {skipped[0]}", "deviations above the mean")
        self.assertFalse((self.folder / "stop/model.safetensors").exists())

        for name in ("back", "again"):
            self.done(run(*self.spiky("--on-spike", "rollback", "--max-rollbacks", 40, name=name)))
        over = [row for row in windows(self.folder / "back") if row["skipped"]]
        self.assertEqual(over[0]["window"], skipped[0])
        self.assertEqual([row["window"] for row in windows(self.folder / "back")], list(range(1, 41)))
        self.assertEqual(first_difference(self.folder / "back", self.folder / "again"), "")
        self.assertEqual(numbers(self.folder / "back")[0], numbers(self.folder / "skip")[0])

    def test_rollback_killed_and_taken_up(self):
        flags = ["--on-spike", "rollback", "--max-rollbacks", 200, "--epochs", 25, "--ema", 0.9, "--precision", "bf16"]
        unbroken(self.spiky(*flags, name="whole"))
        self.assertTrue([row for row in windows(self.folder / "whole") if row["skipped"]])
        kill_at_random(self.spiky(*flags, name="killed"), self.folder / "killed", 6, 4, seed=4)
        self.assertEqual(first_difference(self.folder / "killed", self.folder / "whole"), "")

    def test_rollback_stopped_and_taken_up(self):
        """SIGTERM saves between the planned saves, so that the run goes back to other checkpoints than the unbroken one."""
        flags = ["--on-spike", "rollback", "--max-rollbacks", 200, "--epochs", 25, "--save-interval", 5, "--ema", 0.9]
        unbroken(self.spiky(*flags, name="whole"))
        self.assertGreater(len([row for row in windows(self.folder / "whole") if row["skipped"]]), 3)
        draw = random.Random(6)
        folder = self.folder / "stopped"
        for _ in range(60):
            process = start(*self.spiky(*flags, "--resume", "auto", name="stopped"), stdout=subprocess.DEVNULL)
            goal = newest_update(folder) + draw.choice([1, 5, 11])
            while newest_update(folder) < goal and process.poll() is None:
                time.sleep(0.001)
            time.sleep(draw.uniform(0, 0.01))
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=60)
            self.assertIn((process.returncode, err), ((143, ""), (0, ""), (-signal.SIGTERM, "")))
            if process.returncode == 0:
                break
        self.done(run(*self.spiky(*flags, "--resume", "auto", name="stopped")))
        self.assertEqual(first_difference(folder, self.folder / "whole"), "")

    def test_too_many(self):
        result = run(*self.spiky("--on-spike", "rollback", "--max-rollbacks", 1, "--spike-zscore", 1))
        self.check_refusal(result, 3, "after 1 rollbacks", "deviations")


class BlackBox(BrightTest):
    def box(self, *arguments, name="run"):
        self.done(run(*self.bright(*arguments, name=name)))
        return black_boxes(self.folder / name)[0]

    def test_replay_prints_the_same_table(self):
        for name, extra in {
            "plain": [],
            "threads": ["--threads", 2, "--dropout", 0.2],
            "onednn": ["--matmul", "onednn"],
            "rollback": ["--on-nonfinite", "rollback", "--max-rollbacks", 5],
            "pieces": ["-b", 3, "--grad-accum-steps", 3],
        }.items():
            with self.subTest(name):
                result = self.done(run("replay", self.box(*extra, name=name)))
                self.assertIn("same as recorded", result.stdout)
                for word in ("fc1", "fc2", "forward", "backward"):
                    self.assertIn(word, result.stdout)

    def test_of_a_spike_in_bf16(self):
        flags = "--precision bf16 --lr 0.001 --on-spike skip --spike-window 4 --spike-zscore 1 --threads 2 --hidden 300"
        self.assertIn("same as recorded", self.done(run("replay", self.box(*flags.split()))).stdout)

    def test_after_a_resume(self):
        self.done(run(*self.bright("--stop-after", 5)))
        self.done(run(*self.bright("--resume", "auto")))
        (path,) = black_boxes(self.folder / "run")
        again = self.done(run("replay", path)).stdout
        self.assertEqual(again, self.done(run("replay", self.box(name="whole"))).stdout)

    def test_other_data_are_refused(self):
        path = self.box()
        other = write_idx(self.folder / "other")
        self.check_refusal(run("replay", path, "--data-dir", other), 5, str(other), "--data-dir")
        shutil.rmtree(self.folder / "data")
        self.check_refusal(run("replay", path), 5)
        write_bright(self.folder / "elsewhere")
        self.done(run("replay", path, "--data-dir", self.folder / "elsewhere"))

    def test_a_broken_file_is_one_line(self):
        path = self.box()
        whole = path.read_bytes()
        size = struct.unpack("<Q", whole[:8])[0]
        key = whole.index(b"gradstep.black_box")
        for place in (0, 3, 9, 8 + size // 2, key + 2, key + 30):
            with self.subTest(place=place):
                broken = bytearray(whole)
                broken[place] ^= 0x81
                path.write_bytes(broken)
                self.check_refusal(run("replay", path), 4, str(path))
        for length in (0, 7, 8 + size, len(whole) - 1):
            with self.subTest(length=length):
                path.write_bytes(whole[:length])
                self.check_refusal(run("replay", path), 4, str(path))
        self.check_refusal(run("replay", self.folder / "run/model.safetensors"), 4, "not a black box")
        self.check_refusal(run("replay", self.folder / "absent"), 4, "absent")


if __name__ == "__main__":
    unittest.main()

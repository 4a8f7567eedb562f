"""--report-to tensorboard, read back by TensorBoard itself: its curves are the rows of metrics.jsonl, each update once."""

import pathlib
import shutil
import signal
import sys
import time
import unittest

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from program import ProgramTest, rows, run, start, wait_for  # noqa: E402
from soak import first_difference, kill_at_random, newest_update, unbroken  # noqa: E402

WINDOW_TAGS = {"train/loss": "loss", "train/lr": "lr", "train/grad_norm": "grad_norm"}
EVAL_TAGS = {"val/loss": "val_loss", "val/acc": "val_acc", "val_ema/loss": "ema_val_loss", "val_ema/acc": "ema_val_acc"}


def shown(folder):
    """Everything that TensorBoard loads of a run."""
    accumulator = EventAccumulator(str(folder / "tensorboard"), size_guidance={"scalars": 0, "tensors": 0})
    accumulator.Reload()
    return accumulator


class TensorBoard(ProgramTest):
    def curve(self, board, tag):
        if tag not in board.Tags()["scalars"]:
            return {}
        points = board.Scalars(tag)
        steps = [point.step for point in points]
        self.assertEqual(steps, sorted(set(steps)), f"{tag} goes back or has a step twice")
        return {point.step: point.value for point in points}

    def check_curves(self, folder, num_missing=0):
        """The curves are the rows; at most `num_missing` points that were still in memory at a kill are not there."""
        board = shown(folder)
        applied = {row["update"]: row for row in rows(folder) if "loss" in row and not row["skipped"]}
        evals = {row["update"]: row for row in rows(folder) if "val_loss" in row}
        for tags, expected in ((WINDOW_TAGS, applied), (EVAL_TAGS, evals)):
            for tag, key in tags.items():
                curve = self.curve(board, tag)
                steps = [step for step, row in expected.items() if key in row]
                self.assertLessEqual(set(curve), set(steps), tag)
                self.assertLessEqual(len(steps) - len(curve), num_missing, tag)
                for step, value in curve.items():
                    self.assertAlmostEqual(value, float(expected[step][key]), delta=1e-6 * abs(value), msg=(tag, step))
        return board

    def test_curves_and_texts_of_a_run(self):
        flags = "--epochs 9 --eval-interval 5 --ema 0.9 --lr 0.003 --report-to tensorboard"
        self.done(run(*self.small(*flags.split())))
        board = self.check_curves(self.folder / "run")
        self.assertEqual(len(self.curve(board, "perf/samples_per_s")), 72)
        self.assertEqual(len(self.curve(board, "val/acc")), 15)
        self.assertNotIn("train/loss_scale", board.Tags()["scalars"])
        texts = {tag: board.Tensors(tag)[0].tensor_proto.string_val[0].decode() for tag in board.Tags()["tensors"]}
        self.assertEqual(sorted(texts), ["plan", "settings"])
        self.assertIn("| lr | 0.003 |\n", texts["settings"])
        self.assertIn("    optimizer", texts["plan"])
        for tag in texts:
            self.assertEqual(board.SummaryMetadata(tag).plugin_data.plugin_name, "text")

    def test_nothing_of_the_run_changes(self):
        for name, report in (("with", "tensorboard"), ("without", "none")):
            unbroken(self.small("--max-steps", 100, "--eval-interval", 30, "--report-to", report, name=name))
        self.assertEqual(first_difference(self.folder / "with", self.folder / "without"), "")
        self.assertFalse((self.folder / "without/tensorboard").exists())

    def test_k1_killed_many_times(self):
        flags = "--max-steps 3000 --save-interval 20 --eval-interval 30 --ema 0.9 --hidden 128 --report-to tensorboard"
        kills = kill_at_random(self.small(*flags.split()), self.folder / "run", 20, 20, seed=8)
        self.assertEqual(kills, 20, "the run ended before it was killed often")
        # A point goes to the file a moment after its update; a kill may come between.
        self.check_curves(self.folder / "run", num_missing=20)

    def test_k1_evaluations_that_come_again(self):
        """The last evaluation is made after the checkpoint of its update, and again by each start that a kill robs of the next one."""
        flags = ["--eval-interval", 0, "--report-to", "tensorboard", "--resume", "auto", "--accept-drift"]
        checkpoints = self.folder / "run/checkpoints"
        self.done(run(*self.small(*flags, "--max-steps", 60, "--stop-after", 40)))
        shutil.copytree(checkpoints, self.folder / "before")
        for _ in range(3):
            shutil.rmtree(checkpoints)
            shutil.copytree(self.folder / "before", checkpoints)
            self.assertEqual(run(*self.small(*flags, "--max-steps", 40)).returncode, 0)
        board = self.check_curves(self.folder / "run")
        self.assertEqual(sorted(self.curve(board, "val/loss")), [40])

    def test_a_report_that_is_lost_on_the_way_is_told(self):
        """By the console, and on stderr if that is silent."""
        for i, quiet in enumerate(([], ["-q"])):
            flags = ["--max-steps", 20000, "--log-interval", 0, "--report-to", "tensorboard", *quiet]
            process = start(*self.small(*flags, "--eval-interval", 0, name=f"run{i}"))
            board = self.folder / f"run{i}/tensorboard"
            wait_for(lambda: board.exists() and any(each.stat().st_size > 0 for each in board.iterdir()))  # noqa: B023
            shutil.rmtree(board)
            out, err = process.communicate(timeout=120)
            self.assertEqual(process.returncode, 0, err)
            self.assertIn("tensorboard", err if quiet else out)

    def test_k1_stopped_and_taken_up(self):
        flags = ["--epochs", 200, "--save-interval", 50, "--report-to", "tensorboard"]
        for _ in range(5):
            process = start(*self.small(*flags, "--resume", "auto"))
            goal = newest_update(self.folder / "run") + 60
            wait_for(lambda: newest_update(self.folder / "run") >= goal or process.poll() is not None)  # noqa: B023
            time.sleep(0.01)
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)
        self.done(run(*self.small(*flags, "--resume", "auto")))
        self.check_curves(self.folder / "run")

    def test_skips_and_rollbacks(self):
        limits = ["--spike-window", 4, "--spike-zscore", 3]
        spikes = ["--epochs", 5, "--lr", 0.01, "--save-interval", 4, *limits, "--report-to", "tensorboard"]
        for what, more in (("skip", []), ("rollback", ["--max-rollbacks", 40])):
            with self.subTest(what):
                self.done(run(*self.small(*spikes, "--on-spike", what, *more, name=what)))
                self.assertTrue(any(row.get("skipped") for row in rows(self.folder / what)))
                self.check_curves(self.folder / what)

    def test_the_loss_scale_of_fp16(self):
        flags = ["--epochs", 2, "--precision", "fp16", "--report-to", "tensorboard"]
        self.assertEqual(run(*self.small(*flags)).returncode, 0)
        board = self.check_curves(self.folder / "run")
        self.assertTrue(all(value > 1 for value in self.curve(board, "train/loss_scale").values()))
        self.assertIn("train/loss_scale", board.Tags()["scalars"])

    def test_a_folder_that_takes_nothing_costs_a_warning_only(self):
        flags = ["--epochs", 2]
        unbroken(self.small(*flags, name="whole"))
        self.done(run(*self.small(*flags, "--stop-after", 3)))
        (self.folder / "run/tensorboard").write_text("a file, not a folder")
        result = run(*self.small(*flags, "--resume", "auto", "--report-to", "tensorboard"))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(first_difference(self.folder / "run", self.folder / "whole"), "")
        said = result.stdout + result.stderr + str(rows(self.folder / "run"))
        self.assertIn("tensorboard: cannot", said)
        self.assertIn("the run goes on without it", said)

    def test_an_unknown_report_is_refused(self):
        for name in ("wandb", "tensorboard,wandb"):
            result = run(*self.small("--report-to", name))
            self.check_refusal(result, 2, "--report-to", "none or tensorboard")


if __name__ == "__main__":
    unittest.main()

"""Runs the program and the PyTorch reference with the same settings and compares them row by row.

The program is $GRADSTEP, or gradstep in $GRADSTEP_BUILD_DIR, or build/gradstep. Both run on one thread, side by side.
"""

import contextlib
import dataclasses
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import safetensors.torch
import torch
from reference import Settings, evaluate, read_part, train

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD_DIR = pathlib.Path(os.environ.get("GRADSTEP_BUILD_DIR", ROOT / "build"))
PROGRAM = os.environ.get("GRADSTEP", str(BUILD_DIR / "gradstep"))
DATA_DIR = os.environ.get("GRADSTEP_PARITY_DATA", Settings.data_dir)

LOSS_RELATIVE_FP32 = 2e-6
LOSS_RELATIVE_REDUCED = 2e-3
NORM_RELATIVE_FP32 = 2e-5
NORM_RELATIVE_REDUCED = 2e-2
LR_RELATIVE = 1e-12
VAL_ACC = 0.002
PROGRAM_TIMEOUT_SECONDS = 300

_parts = {}


def part(name):
    """The data set, read once for all cases."""
    if name not in _parts:
        _parts[name] = read_part(DATA_DIR, name)
    return _parts[name]


def flags_of(settings):
    """The reference's settings as flags of `gradstep train`; all are given, so no default can hide a difference."""
    flags = []
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        flag = "--" + field.name.replace("_", "-")
        if isinstance(value, bool):
            flags += [flag] if value else []
        elif value is not None:
            flags += [flag, repr(value) if isinstance(value, float) else str(value)]
    return flags


def number(value):
    """A number of a row; not finite ones are strings there."""
    return float(value.replace("Infinity", "inf")) if isinstance(value, str) else value


@dataclasses.dataclass
class Run:
    """What a run of the program left behind."""

    rows: list
    val_loss: float
    val_acc: float
    weights: dict


@contextlib.contextmanager
def program(settings, *extra, matmul="torch"):
    """Starts `gradstep train` with these settings; yields a function that waits for it and returns its Run."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GRADSTEP_")}
    with tempfile.TemporaryDirectory(prefix="gradstep-parity-") as folder:
        output = pathlib.Path(folder) / "run"
        command = [PROGRAM, "train", "--dataset", "fashion-mnist", "--model", "mlp", "--device", "cpu"]
        command += ["--workers", "1", "--eval-interval", "0", "--matmul", matmul, *flags_of(settings), *extra]
        process = subprocess.Popen(
            [*command, "-o", str(output)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

        def finish():
            out, err = process.communicate(timeout=PROGRAM_TIMEOUT_SECONDS)
            if process.returncode != 0:
                raise AssertionError(f"exit {process.returncode}: {' '.join(command)}\n{out}{err}")
            return read_run(output)

        try:
            yield finish
        finally:
            if process.poll() is None:
                process.kill()
                process.communicate()


def read_run(output):
    lines = [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]
    rows = [line for line in lines if "loss" in line]
    last = [line for line in lines if "val_acc" in line][-1]
    weights = safetensors.torch.load_file(output / "model.safetensors")
    return Run(rows, last["val_loss"], last["val_acc"], weights)


def relative(one, other):
    """Relative difference; 0 for equal values, infinities included, and infinity where only one is finite."""
    if one == other or (math.isnan(one) and math.isnan(other)):
        return 0.0
    if not (math.isfinite(one) and math.isfinite(other)):
        return math.inf
    return abs(one - other) / max(abs(one), abs(other))


class Parity(unittest.TestCase):
    """Each case is a set of flags; what must agree is the same in all."""

    @classmethod
    def setUpClass(cls):
        if not os.access(PROGRAM, os.X_OK):
            raise FileNotFoundError(f"{PROGRAM}: no such program. Build it, or name it in GRADSTEP")

    def run_both(self, settings):
        settings = dataclasses.replace(settings, data_dir=DATA_DIR)
        with program(settings) as finish:
            expected = train(settings, part("train"), part("t10k"))
            return finish(), expected

    def compare(self, settings, *, loss=LOSS_RELATIVE_FP32, norm=NORM_RELATIVE_FP32, num_rows=None):
        """Row by row; prints the largest relative differences. Returns (program's run, reference's result)."""
        actual, expected = self.run_both(settings)
        self.assertEqual(len(actual.rows), len(expected.rows))
        if num_rows is not None:
            self.assertEqual(len(actual.rows), num_rows)
        worst = {"loss": 0.0, "grad_norm": 0.0, "lr": 0.0}
        bounds = {"loss": loss, "grad_norm": norm, "lr": LR_RELATIVE}
        for mine, theirs in zip(actual.rows, expected.rows):
            where = f"window {theirs['window']}"
            for key in ("window", "update", "epoch", "skipped", "skipped_total", "divisor", "loss_scale"):
                self.assertEqual(mine[key], theirs[key], f"{key} of {where}")
            for key, bound in bounds.items():
                difference = relative(number(mine[key]), theirs[key])
                worst[key] = max(worst[key], difference)
                message = f"{key} of {where}: gradstep {mine[key]}, reference {theirs[key]}, relative {difference:.3g}"
                self.assertLessEqual(difference, bound, message)
        texts = [f"{key} {'bit-equal' if value == 0 else format(value, '.2g')}" for key, value in worst.items()]
        print(
            f"{self._testMethodName}: {len(actual.rows)} rows, largest differences: {', '.join(texts)}", file=sys.stderr
        )
        return actual, expected

    def test_fp32_reference_job(self):
        self.compare(Settings(max_steps=300), num_rows=300)

    def test_fp32_window_in_one_piece(self):
        self.compare(Settings(max_steps=300, batch_size=128, grad_accum_steps=1, seed=3), num_rows=300)

    def test_fp32_clipping(self):
        actual, _ = self.compare(Settings(max_steps=300, clip_grad=0.5), num_rows=300)
        clipped = sum(row["grad_norm"] > 0.5 for row in actual.rows)
        self.assertGreater(clipped, 100, "the bound was hardly ever reached: this case shows nothing")

    def test_fp32_ragged_last_window(self):
        # 60,000 = 153 x 392 + 24: window 154 has one micro-batch of 24, and the runs go on into the second epoch.
        actual, _ = self.compare(Settings(max_steps=300, batch_size=56, grad_accum_steps=7), num_rows=300)
        self.assertEqual([row["divisor"] for row in actual.rows[152:155]], [392, 24, 392])
        self.assertEqual([row["epoch"] for row in actual.rows[152:155]], [0, 0, 1])

    def test_fp32_sgd_linear_epochs(self):
        # 60,000 = 58 x 1024 + 608: each epoch ends in a short window of 9.5 micro-batches.
        settings = Settings(
            epochs=5, batch_size=64, grad_accum_steps=16, opt="sgd", lr=0.05, min_lr=1e-3, weight_decay=5e-4,
            nesterov=True, sched="linear", warmup_steps=20, label_smoothing=0.1, seed=11,
        )  # fmt: skip
        actual, _ = self.compare(settings, num_rows=295)
        self.assertEqual([row["divisor"] for row in actual.rows[58::59]], [608] * 5)
        self.assertEqual(actual.rows[-1]["lr"], 1e-3)

    def test_fp32_sgd_plain_constant(self):
        settings = Settings(
            max_steps=100, batch_size=50, grad_accum_steps=3, opt="sgd", lr=0.1, momentum=0.0, sched="constant",
            warmup_steps=0, decay_all=True, weight_decay=1e-2, seed=5,
        )  # fmt: skip
        self.compare(settings, num_rows=100)

    def test_fp32_epochs_and_max_steps(self):
        # Whichever ends first: here max_steps, in the second of three epochs, and the schedule is as long as the run.
        settings = Settings(epochs=3, max_steps=80, batch_size=512, grad_accum_steps=2, warmup_steps=10)
        actual, _ = self.compare(settings, num_rows=80)
        self.assertEqual(actual.rows[-1]["lr"], 0.0)

    def test_bf16(self):
        settings = Settings(max_steps=300, precision="bf16")
        self.compare(settings, loss=LOSS_RELATIVE_REDUCED, norm=NORM_RELATIVE_REDUCED, num_rows=300)

    def test_fp16_with_overflow(self):
        # Windows of one sample overflow at the first scale of 65536, so that the scale moves and an update is skipped.
        settings = Settings(max_steps=40, precision="fp16", batch_size=1, grad_accum_steps=1, hidden=32, warmup_steps=9)
        actual, _ = self.compare(settings, loss=LOSS_RELATIVE_REDUCED, norm=NORM_RELATIVE_REDUCED)
        self.assertGreater(actual.rows[-1]["skipped_total"], 0, "nothing overflowed: this case shows nothing")

    def test_fp16_accumulated(self):
        settings = Settings(
            max_steps=10, precision="fp16", batch_size=6, grad_accum_steps=3, hidden=32, clip_grad=1.0, warmup_steps=4
        )  # fmt: skip
        self.compare(settings, loss=LOSS_RELATIVE_REDUCED, norm=NORM_RELATIVE_REDUCED)

    def test_whole_epoch_and_model_file(self):
        settings = dataclasses.replace(Settings(epochs=1), data_dir=DATA_DIR)
        actual, expected = self.compare(settings, num_rows=469)
        self.assertAlmostEqual(actual.val_acc, expected.val_acc, delta=VAL_ACC)
        self.assertLess(relative(actual.val_loss, expected.val_loss), 1e-4)
        self.assertGreater(actual.val_acc, 0.82)

        # The file is a PyTorch state_dict, and PyTorch reaches with it what the program said.
        shapes = {name: tuple(value.shape) for name, value in actual.weights.items()}
        self.assertEqual(
            shapes, {"fc1.weight": (256, 784), "fc1.bias": (256,), "fc2.weight": (10, 256), "fc2.bias": (10,)}
        )
        self.assertEqual({value.dtype for value in actual.weights.values()}, {torch.float32})
        expected.module.load_state_dict(actual.weights)
        val_loss, val_acc = evaluate(expected.module, *part("t10k"), settings)
        self.assertAlmostEqual(val_acc, actual.val_acc, delta=1e-4)  # a picture on the edge may fall to either side
        self.assertLess(relative(val_loss, actual.val_loss), 1e-5)

    def test_fastest_kernels_reach_the_same_accuracy(self):
        # All else here uses PyTorch's own kernels; this one what the program chooses for itself, on all cores.
        settings = dataclasses.replace(Settings(epochs=1), data_dir=DATA_DIR)
        own = dataclasses.replace(settings, threads=len(os.sched_getaffinity(0)))
        with program(own, matmul="auto") as finish:
            expected = train(settings, part("train"), part("t10k"))
            actual = finish()
        self.assertEqual(len(actual.rows), len(expected.rows))
        self.assertAlmostEqual(actual.val_acc, expected.val_acc, delta=VAL_ACC)
        first = relative(actual.rows[0]["loss"], expected.rows[0]["loss"])
        self.assertLess(first, 1e-5)

    def test_initial_weights(self):
        # A learning rate this small moves no weight but an exact zero, so the file holds the weights as constructed.
        for seed in (0, 7, 2**31 + 5):
            with self.subTest(seed=seed):
                settings = Settings(max_steps=1, lr=1e-30, sched="constant", warmup_steps=0, seed=seed)
                actual, expected = self.run_both(settings)
                self.assertEqual(actual.weights.keys(), expected.initial.keys())
                for name, value in expected.initial.items():
                    self.assertTrue(torch.equal(actual.weights[name], value), name)


if __name__ == "__main__":
    unittest.main()

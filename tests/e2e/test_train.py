"""The main job, small: rows, model file, resolved settings, plan; and that what was logged adds up."""

import math
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from program import ProgramTest, rows, run  # noqa: E402
from safetensors import safe_open  # noqa: E402

WINDOW_KEYS = [
    "window",
    "update",
    "epoch",
    "loss",
    "lr",
    "grad_norm",
    "loss_scale",
    "skipped",
    "skipped_total",
    "samples",
    "divisor",
    "samples_per_s",
    "time_data",
    "time_step",
    "memory",
]


class Train(ProgramTest):
    def test_the_main_job(self):
        folder = self.folder / "first"
        result = self.done(run("train", "--max-steps", 30, "--warmup-steps", 5, "-o", folder))
        self.assertEqual(
            sorted(path.name for path in folder.iterdir()),
            ["best.safetensors", "checkpoints", "config.toml", "metrics.jsonl", "model.safetensors"],
        )
        self.check_rows(rows(folder))
        self.check_model(folder)
        lines = result.stdout.splitlines()
        self.assertRegex(result.stdout, r"(?m)^Epoch 1 \| Window 20 \| loss \d\.\d{4} \| lr \S+ \| \d+ samples/s$")
        self.assertRegex(
            lines[-1], r"^done: 30 updates, 3840 samples in .* val_acc 0\.[5-9]\d{3} \| .*model\.safetensors$"
        )
        self.assertNotIn("\r", result.stdout)  # no bar in a pipe

    def check_rows(self, all_rows):
        windows = [row for row in all_rows if "loss" in row]
        evals = [row for row in all_rows if "val_acc" in row]
        self.assertEqual([row["event"] for row in all_rows if "event" in row], ["end"])
        self.assertEqual(len(windows), 30)
        self.assertEqual(len(evals), 1)
        for i, row in enumerate(windows, 1):
            self.assertEqual(list(row), WINDOW_KEYS)
            self.assertEqual((row["window"], row["update"], row["epoch"]), (i, i, 0))
            self.assertEqual((row["samples"], row["divisor"]), (128 * i, 128))
            self.assertEqual((row["skipped"], row["skipped_total"]), (False, 0))
            lr = 1e-3 * i / 5 if i <= 5 else 1e-3 * (1 + math.cos(math.pi * (i - 5) / 25)) / 2
            self.assertAlmostEqual(row["lr"], lr, delta=1e-12)
            self.assertGreater(row["samples_per_s"], 0)
            self.assertGreater(row["memory"], 1 << 20)
            self.assertGreaterEqual(min(row["time_data"], row["time_step"]), 0)
        self.assertLess(windows[-1]["loss"], windows[0]["loss"])
        self.assertEqual(evals[0]["update"], 30)
        self.assertEqual(evals[0]["val_samples"], 10000)
        self.assertNotIn("lr", evals[0])
        self.assertEqual(all_rows[-1]["reason"], "done")

    def check_model(self, folder):
        with safe_open(folder / "model.safetensors", framework="pt") as file:
            self.assertEqual(
                {name: list(file.get_tensor(name).shape) for name in file.keys()},
                {"fc1.weight": [256, 784], "fc1.bias": [256], "fc2.weight": [10, 256], "fc2.bias": [10]},
            )
            self.assertEqual(file.metadata()["gradstep.update"], "30")
            self.assertIn(file.metadata()["gradstep.precision"], ("fp32", "bf16"))
            self.assertTrue(all(bool(file.get_tensor(name).isfinite().all()) for name in file.keys()))

    def test_the_resolved_settings_repeat_the_run(self):
        # What was measured for "auto" is part of the settings: another measurement might choose differently.
        self.done(
            run(
                *self.small(
                    "--epochs",
                    2,
                    "--seed",
                    5,
                    "--dropout",
                    0.25,
                    "--eval-interval",
                    "3",
                    "--precision",
                    "auto",
                    "--matmul",
                    "auto",
                    name="one",
                )
            )
        )
        self.assertNotIn('precision = "auto"', (self.folder / "one/config.toml").read_text())
        self.done(run("train", "-c", self.folder / "one/config.toml", "-o", self.folder / "two"))
        for name in ("model.safetensors", "best.safetensors"):
            self.assertEqual((self.folder / "one" / name).read_bytes(), (self.folder / "two" / name).read_bytes(), name)
        settings = [
            [line for line in (self.folder / name / "config.toml").read_text().splitlines() if "output_dir" not in line]
            for name in ("one", "two")
        ]
        self.assertEqual(*settings)
        timed = ("samples_per_s", "time_data", "time_step", "memory", "time_eval", "seconds", "model")
        untimed = [
            [{key: value for key, value in row.items() if key not in timed} for row in rows(self.folder / name)]
            for name in ("one", "two")
        ]
        self.assertEqual(*untimed)

    def test_a_dry_run_prints_the_plan_and_writes_nothing(self):
        result = self.done(run(*self.small("--max-steps", 7, "--dry-run")))
        self.assertEqual([path.name for path in self.folder.iterdir()], ["data"])
        for words in ("7", "mlp 16-8-10", "fp32", "mnist in", "after 7 updates"):
            self.assertIn(words, result.stdout)
        quiet = self.done(run(*self.small("--max-steps", 7, "--dry-run", "--quiet"))).stdout
        self.assertIn("after 7 updates", quiet)  # it is what was asked for

    def test_the_plan_heads_the_run(self):
        self.assertIn("after 7 updates", self.done(run(*self.small("--max-steps", 7))).stdout)
        quiet = self.done(run(*self.small("--max-steps", 7, "--quiet", name="quiet"))).stdout
        self.assertEqual(quiet.count("\n"), 1)
        self.assertIn("val_acc", quiet)

    def test_without_an_output_dir_the_run_lies_under_runs(self):
        arguments = self.small("--max-steps", 2)
        del arguments[arguments.index("-o") : arguments.index("-o") + 2]
        self.done(run(*arguments, cwd=self.folder))
        (folder,) = (self.folder / "runs").iterdir()
        self.assertRegex(folder.name, r"^mnist-mlp-\d{8}-\d{6}$")
        self.assertTrue((folder / "model.safetensors").exists())

    def test_two_runs_of_one_second_do_not_meet(self):
        arguments = self.small("--max-steps", 2)
        del arguments[arguments.index("-o") : arguments.index("-o") + 2]
        for _ in range(3):
            self.done(run(*arguments, cwd=self.folder))
        self.assertEqual(len(list((self.folder / "runs").iterdir())), 3)

    def test_workers_and_interval_of_lines_change_nothing(self):
        files = []
        for i, extra in enumerate((["-j", "0"], ["-j", "3", "--log-interval", "0"], ["-j", "8", "--quiet"])):
            self.done(run(*self.small("--epochs", 2, *extra, name=f"run{i}")))
            files.append((self.folder / f"run{i}" / "model.safetensors").read_bytes())
        self.assertEqual(len(set(files)), 1)

    def test_skips_show_in_their_rows(self):
        result = run(*self.small("--epochs", 1, "--opt", "sgd", "--sched", "constant", "--lr", "1e38"))
        self.done(result)
        windows = [row for row in rows(self.folder / "run") if "loss" in row]
        self.assertEqual([row["skipped"] for row in windows], [False] + 7 * [True])
        self.assertIn(windows[1]["loss"], ("NaN", "Infinity"))
        self.assertIn("first_non_finite", windows[1])
        self.assertIn("7 skipped", result.stdout.splitlines()[-1])
        self.assertFalse((self.folder / "run/best.safetensors").exists())


if __name__ == "__main__":
    unittest.main()

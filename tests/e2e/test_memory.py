"""Memory that runs out in an update: the micro-batch is halved and the window done again, or the run ends with what it has."""

import json
import pathlib
import shutil
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from program import ProgramTest, rows, run, write_idx  # noqa: E402
from soak import checkpoints, first_difference, numbers  # noqa: E402

# Weights, moments and their copy take 1.3 MB, gradients 0.2 MB, and 400 samples some 7 MB more.
SHAPE = {
    "--hidden": 2000,
    "-b": 400,
    "--grad-accum-steps": 1,
    "--warmup-steps": 0,
    "--workers": 0,
    "--precision": "fp32",
    "--matmul": "torch",
    "--threads": 1,
    "--epochs": 2,
    "--eval-interval": 0,
}


class Memory(ProgramTest):
    def setUp(self):
        super().setUp()
        self.data = write_idx(self.folder / "data", num_train=1200)

    def train(self, name, *arguments, limit="none", **shape):
        shape = {**SHAPE, **{"--" + key.replace("_", "-"): value for key, value in shape.items()}}
        flags = [word for pair in shape.items() for word in pair]
        data = ["--dataset", "mnist", "--data-dir", self.data, "--memory-limit", limit]
        return run("train", *data, *flags, "-o", self.folder / name, *arguments)

    def halvings(self, name):
        """(window, new size) of each."""
        found = [row for row in rows(self.folder / name) if row.get("event") == "out of memory"]
        return [(int(row["window"]), int(row["micro_batch"])) for row in found]

    def stored(self, name):
        folder = self.folder / name / "checkpoints"
        return json.loads((folder / checkpoints(self.folder / name)[-1] / "state.json").read_text())

    def check_same_training(self, name, reference):
        ours, theirs = numbers(self.folder / name), numbers(self.folder / reference)
        for a, b in zip(ours, theirs, strict=True):
            for key in ("window", "update", "samples", "divisor", "lr", "skipped"):
                self.assertEqual(a.get(key), b.get(key))
            if "loss" in b:
                self.assertAlmostEqual(a["loss"], b["loss"], places=4)
                self.assertAlmostEqual(a["grad_norm"], b["grad_norm"], places=4)

    def test_halved_as_far_as_it_takes_and_the_training_is_the_same(self):
        self.done(self.train("free"))
        self.assertEqual(self.halvings("free"), [])
        sizes = []
        for limit in ("8m", "5m", "3m", "2m"):
            with self.subTest(limit):
                self.done(self.train(limit, limit=limit))
                first = self.halvings(limit)[0]
                self.assertEqual(first[0], 1)
                sizes.append(self.halvings(limit)[-1][1])
                self.assertEqual(self.stored(limit)["engine"]["micro_batch"], sizes[-1])
                self.check_same_training(limit, "free")
        self.assertEqual(sizes, sorted(set(sizes), reverse=True))
        self.assertLess(sizes[-1], 100)

    def test_the_halved_size_is_kept_on_resume(self):
        self.done(self.train("whole", limit="5m"))
        ((_, size),) = self.halvings("whole")
        for name, limit in (("same", "5m"), ("freed", "none")):
            with self.subTest(limit):
                self.done(self.train(name, "--stop-after", 2, limit="5m"))
                self.done(self.train(name, "--resume", "auto", limit=limit))
                self.assertEqual(self.halvings(name), [(1, size)])
                self.assertEqual(self.stored(name)["engine"]["micro_batch"], size)
                self.assertEqual(first_difference(self.folder / name, self.folder / "whole"), "")

    def test_another_batch_size_on_resume_begins_with_that(self):
        self.done(self.train("run", "--stop-after", 2, limit="5m"))
        result = self.train("run", "--resume", "auto", "-b", 300, "--grad-accum-steps", 4 / 3, limit="none")
        self.assertEqual(result.returncode, 2)  # another global batch is no matter of memory
        shape = {"grad_accum_steps": 2}
        result = self.train("run", "--resume", "auto", "-b", 200, limit="none", **shape)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("batch_size was 400, is 200", result.stderr)
        self.assertEqual(self.stored("run")["engine"]["micro_batch"], 200)

    def test_no_memory_for_a_single_sample_leaves_the_last_whole_window(self):
        self.done(self.train("whole", limit="5m"))
        self.done(self.train("begun", "--stop-after", 2, limit="5m"))
        for limit in range(1500, 0, -50):  # kB; the first of them that is too little
            shutil.copytree(self.folder / "begun", self.folder / "run")
            result = self.train("run", "--resume", "auto", limit=f"{limit}k")
            if result.returncode != 0:
                break
            shutil.rmtree(self.folder / "run")
        self.check_refusal(result, 6, "out of memory in window ", "with a micro-batch of 1:")
        last = [row for row in rows(self.folder / "run") if "loss" in row][-1]["window"]
        self.assertEqual(self.stored("run")["engine"]["windows"], last)
        self.done(self.train("run", "--resume", "auto", limit="5m"))
        self.check_same_training("run", "whole")

    def test_too_little_for_a_start_is_one_line(self):
        for limit in ("1m", "500k", "100k", "1"):
            with self.subTest(limit):
                self.check_refusal(self.train("run" + limit, limit=limit), 6, "out of memory")


if __name__ == "__main__":
    unittest.main()

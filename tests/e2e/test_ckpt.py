"""gradstep ckpt on checkpoints of a run: what Python finds in the exports, and what becomes of flipped, cut and missing files."""

import json
import os
import pathlib
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import torch  # noqa: E402
from program import ProgramTest, run  # noqa: E402
from safetensors import safe_open  # noqa: E402
from safetensors.torch import load_file  # noqa: E402


def same(a, b):
    return (
        a.dtype == b.dtype
        and a.shape == b.shape
        and torch.equal(a.flatten().view(torch.uint8), b.flatten().view(torch.uint8))
    )


class Ckpt(ProgramTest):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory(prefix="gradstep-test-")
        cls.addClassCleanup(temporary.cleanup)
        cls.trained = pathlib.Path(temporary.name) / "run"

    def setUp(self):
        super().setUp()
        self.run_folder = self.folder / "run"
        flags = ["--max-steps", 20, "--save-interval", 5, "--keep-checkpoints", 0, "--eval-interval", 5, "--ema", 0.9]
        arguments = self.small(*flags)  # makes the data, too
        if not self.trained.exists():
            self.done(run(*arguments))
            shutil.copytree(self.run_folder, self.trained)
        else:
            shutil.copytree(self.trained, self.run_folder)

    def checkpoint(self, update):
        return self.run_folder / f"checkpoints/step-{update:08}"

    def flip(self, update, name):
        path = self.checkpoint(update) / name
        whole = bytearray(path.read_bytes())
        whole[-1] ^= 1
        path.write_bytes(whole)

    def check_same(self, found, expected):
        self.assertEqual(found.keys(), expected.keys())
        for name, tensor in expected.items():
            self.assertTrue(same(found[name], tensor), name)

    def test_exports_are_what_python_loads_bit_for_bit(self):
        for flags, stored in ([], "model.safetensors"), (["--ema"], "ema.safetensors"):
            with self.subTest(stored):
                expected = load_file(self.checkpoint(20) / stored)
                for ending in "safetensors", "pt":
                    self.done(run("ckpt", "export", self.run_folder, self.folder / f"{stored}.{ending}", *flags))
                self.check_same(load_file(self.folder / f"{stored}.safetensors"), expected)
                found = torch.load(self.folder / f"{stored}.pt")
                self.assertIs(type(found), dict)
                self.check_same(found, expected)
                self.assertEqual(list(found), ["fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"])
        self.assertFalse(same(found["fc1.weight"], load_file(self.checkpoint(20) / "model.safetensors")["fc1.weight"]))

    def test_exports_of_an_older_one_and_of_a_model_file(self):
        old, copy = self.folder / "old.safetensors", self.folder / "copy.safetensors"
        text = self.done(run("ckpt", "export", self.checkpoint(5), old)).stdout
        self.assertIn("4 tensors of", text)
        self.check_same(load_file(old), load_file(self.checkpoint(5) / "model.safetensors"))
        self.assertEqual(self.done(run("ckpt", "export", "-q", old, copy)).stdout, "")
        self.assertEqual(copy.read_bytes(), old.read_bytes())
        with safe_open(old, "pt") as file:
            self.assertEqual(file.metadata()["gradstep.update"], "5")
        # eval finds everything in it, and the numbers that the run wrote down then.
        found = json.loads(self.done(run("eval", old, "--json", "--data-dir", self.folder / "data")).stdout)
        listed = json.loads(self.done(run("ckpt", "ls", self.checkpoint(5), "--json")).stdout)["checkpoints"][0]
        self.assertEqual((found["val_acc"], found["val_loss"]), (listed["val_acc"], listed["val_loss"]))

    def test_export_refusals(self):
        there = self.folder / "there.pt"
        there.write_bytes(b"old")
        self.check_refusal(run("ckpt", "export", self.run_folder, there), 2, "there.pt", "--force")
        self.assertEqual(there.read_bytes(), b"old")
        self.done(run("ckpt", "export", self.run_folder, there, "--force"))
        self.assertEqual(len(torch.load(there)), 4)
        self.check_refusal(run("ckpt", "export", self.run_folder, self.folder / "a.bin"), 2, "a.bin", "--format")
        self.check_refusal(run("ckpt", "export", self.run_folder), 2, "needs a FILE")
        self.check_refusal(run("ckpt", "export", self.folder / "absent", self.folder / "a.pt"), 4, "absent")
        self.check_refusal(run("ckpt", "export", there, self.folder / "a.pt"), 4, "there.pt")
        self.check_refusal(run("ckpt", "export", self.run_folder, "/dev/full/a.pt"), 4, "/dev/full")
        self.done(run(*self.small("--max-steps", 2, name="plain")))
        self.check_refusal(run("ckpt", "export", self.folder / "plain", self.folder / "a.pt", "--ema"), 2, "--ema")
        self.assertFalse((self.folder / "a.pt").exists())

    def test_ls(self):
        lines = self.done(run("ckpt", "ls", self.run_folder)).stdout.splitlines()
        self.assertEqual([line.split()[0] for line in lines[1:]], [f"step-{k:08}" for k in (5, 10, 15, 20)])
        self.assertIn("20 of 20", lines[4])
        self.assertIn("latest", lines[4])
        self.assertEqual(sum("best" in line for line in lines), 1)
        listed = json.loads(self.done(run("ckpt", "ls", self.run_folder, "--json", "--verify")).stdout)["checkpoints"]
        self.assertEqual([each["update"] for each in listed], [5, 10, 15, 20])
        self.assertEqual([each["latest"] for each in listed], [False, False, False, True])
        for each in listed:
            self.assertIsNone(each["broken"])
            files = pathlib.Path(each["path"]).iterdir()
            self.assertEqual(each["bytes"], sum(file.stat().st_size for file in files))

    def test_verify(self):
        text = self.done(run("ckpt", "verify", self.run_folder)).stdout
        self.assertEqual(len(text.splitlines()), 4)
        self.assertRegex(text, r"^step-00000005 ok \([0-9.]+ kB\)\n")
        for update, name in ((10, "model.safetensors"), (20, "optimizer.safetensors")):
            self.flip(update, name)
        os.remove(self.checkpoint(15) / "state.json")
        result = run("ckpt", "verify", self.run_folder)
        self.check_refusal(result, 4, "3 of 4 checkpoints are broken")
        lines = result.stdout.splitlines()
        self.assertIn("ok", lines[0])
        for line, name in zip(lines[1:], ("model.safetensors", "state.json", "optimizer.safetensors"), strict=True):
            self.assertIn("broken", line)
            self.assertIn(name, line)
        marks = json.loads(self.done(run("ckpt", "ls", self.run_folder, "--json", "--verify")).stdout)["checkpoints"]
        self.assertEqual([each["latest"] for each in marks], [True, False, False, False])
        self.check_refusal(run("ckpt", "verify", self.checkpoint(20)), 4, "optimizer.safetensors")
        self.check_refusal(run("ckpt", "verify", self.folder), 4, str(self.folder))
        self.check_refusal(run("ckpt", "verify"), 2, "needs a PATH")
        # The newest that verifies is what a run stands for, and the others are named.
        result = run("ckpt", "export", self.run_folder, self.folder / "a.pt")
        self.assertEqual((result.returncode, result.stderr.count("gradstep: warning: ")), (0, 3))
        self.check_same(torch.load(self.folder / "a.pt"), load_file(self.checkpoint(5) / "model.safetensors"))

    def test_diff(self):
        self.assertIn("equal", self.done(run("ckpt", "diff", self.run_folder, self.checkpoint(20))).stdout)
        result = run("ckpt", "diff", self.checkpoint(15), self.checkpoint(20))
        self.assertEqual((result.returncode, result.stderr), (1, ""))
        self.assertIn("\nengine updates: 15 and 20\n", result.stdout)
        self.assertRegex(result.stdout, r"\nmodel fc1\.weight: \d+ of 128 values, the first at \d+: ")
        self.done(run(*self.small("--max-steps", 20, "--lr", 0.5, "--save-interval", 5, name="other")))
        result = run("ckpt", "diff", self.run_folder, self.folder / "other")
        self.assertEqual(result.returncode, 1)
        self.assertIn("\nsetting lr: 0.001 and 0.5\n", result.stdout)
        self.check_refusal(run("ckpt", "diff", self.run_folder), 2, "needs a B")
        self.check_refusal(run("ckpt", "diff", self.run_folder, self.folder / "absent"), 4, "absent")


class Usage(ProgramTest):
    def test_what_is_not_known(self):
        self.assertEqual(run("ckpt").returncode, 2)
        self.assertIn("verify", self.done(run("ckpt", "--help")).stdout)
        self.assertIn("--ema", self.done(run("help", "ckpt", "export")).stdout)
        self.check_refusal(run("ckpt", "veryfi", "x"), 2, "did you mean ckpt verify?")
        self.check_refusal(run("ckpt", "ls", "a", "b"), 2, "unexpected argument 'b'")
        self.check_refusal(run("ckpt", "export", "a", "b", "--format", "onnx"), 2, "--format 'onnx'")


if __name__ == "__main__":
    unittest.main()

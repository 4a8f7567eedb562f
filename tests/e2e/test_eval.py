"""gradstep eval: the numbers of the run's last evaluation, digit for digit, in each precision and on each part of the data."""

import csv
import json
import os
import pathlib
import stat
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import subprocess  # noqa: E402

from program import ENVIRONMENT, PROGRAM, ProgramTest, rows, run  # noqa: E402


class Eval(ProgramTest):
    def train(self, *arguments):
        folder = self.folder / "run"
        self.done(run("train", "--max-steps", 20, "--warmup-steps", 5, "-o", folder, "-q", *arguments))
        return folder, [row for row in rows(folder) if "val_acc" in row][-1]

    def evaluate(self, folder, *arguments):
        return json.loads(self.done(run("eval", folder, "--json", *arguments)).stdout)

    def check_equal(self, *arguments):
        folder, logged = self.train(*arguments)
        found = self.evaluate(folder)
        for key in ("val_loss", "val_acc", "val_top5"):
            self.assertEqual(found[key], logged[key], (arguments, key))
        self.assertEqual(found["samples"], logged["val_samples"])
        return folder, found

    def test_equals_the_last_row_and_the_predictions_add_up(self):
        folder, found = self.check_equal()
        self.assertEqual(sum(found["class_samples"]), 10000)
        self.assertEqual(sum(found["class_hits"]) / 10000, found["val_acc"])
        self.done(
            run("eval", folder / "model.safetensors", "--predictions", self.folder / "p.csv", "--batch-size", 777)
        )
        with open(self.folder / "p.csv", newline="") as file:
            table = list(csv.DictReader(file))
        self.assertEqual(list(table[0]), ["sample", "target", "prediction", "probability"])
        self.assertEqual([int(row["sample"]) for row in table], list(range(10000)))
        hits = sum(row["target"] == row["prediction"] for row in table)
        self.assertEqual(hits / 10000, found["val_acc"])
        self.assertTrue(all(0.1 <= float(row["probability"]) <= 1 for row in table))

    def test_equals_in_bf16(self):
        self.assertEqual(self.check_equal("--precision", "bf16")[1]["precision"], "bf16")

    def test_equals_with_onednn(self):
        self.check_equal("--precision", "fp32", "--matmul", "onednn")

    def test_equals_on_a_validation_part(self):
        found = self.check_equal("--val-fraction", 0.05, "--seed", 3)[1]
        self.assertEqual(found["samples"], 3000)
        self.assertIn("validation", found["part"])

    def test_small_models(self):
        self.done(run(*self.small("--max-steps", 3)))
        folder = self.folder / "run"
        text = self.done(run("eval", folder)).stdout
        self.assertRegex(text.splitlines()[-1], r"^val_loss \d+\.\d{4} \| val_top5 [01]\.\d{4} \| val_acc [01]\.\d{4}$")
        self.assertEqual(self.done(run("eval", folder, "-q")).stdout.count("\n"), 1)
        one = self.evaluate(folder, "--batch-size", 1)
        all_at_once = self.evaluate(folder, "--batch-size", 1000)
        self.assertEqual(one["val_acc"], all_at_once["val_acc"])
        self.assertAlmostEqual(one["val_loss"], all_at_once["val_loss"], places=5)
        # The folder of the data moves on: the file's is gone, the flag's is taken.
        (self.folder / "data").rename(self.folder / "moved")
        self.assertEqual(
            self.evaluate(folder, "--data-dir", self.folder / "moved"),
            self.evaluate(folder, "--data-dir", f"{self.folder}/moved/"),
        )
        self.check_refusal(run("eval", folder, cwd=self.folder), 5, f"no folder {self.folder}/data")

    def test_refusals(self):
        self.done(run(*self.small("--max-steps", 1)))
        folder = self.folder / "run"
        self.check_refusal(run("eval", self.folder / "absent"), 4, "absent")
        self.check_refusal(run("eval", self.folder), 4, "model.safetensors")
        self.check_refusal(run("eval", folder / "config.toml"), 4, "config.toml")
        self.check_refusal(run("eval", folder, "--dataset", "fashion-mnist"), 2, "--dataset fashion-mnist")
        self.check_refusal(run("eval", folder, "--dataset", "fasion"), 2)
        self.check_refusal(run("eval", folder, "--data-dir", self.folder), 5, str(self.folder))
        self.check_refusal(run("eval", folder, "--device", "cuda:77"), 2, "--device cuda:77")
        self.check_refusal(run("eval", folder, "--predictions", self.folder / "no/such/p.csv"), 4, "p.csv")
        model = folder / "model.safetensors"
        whole = model.read_bytes()
        model.write_bytes(whole.replace(b'"mnist"', b'"fnord"'))
        self.check_refusal(run("eval", folder), 4, "fnord", "--dataset")
        self.done(run("eval", folder, "--dataset", "mnist", "--data-dir", self.folder / "data"))
        model.write_bytes(whole[:-1])
        self.check_refusal(run("eval", folder), 4, "model.safetensors")

    def test_predictions_replace_neither_device_nor_pipe_nor_link(self):
        self.done(run(*self.small("--max-steps", 1)))
        folder = self.folder / "run"
        self.done(run("eval", folder, "--predictions", self.folder / "p.csv"))
        expected = (self.folder / "p.csv").read_text()
        self.assertEqual(expected.count("\n"), 21)
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, text=True) as reader:
            self.done(run("eval", folder, "--predictions", pipe, "--force"))
            self.assertEqual(reader.communicate(timeout=60)[0], expected)
        self.assertTrue(pipe.is_fifo())
        (self.folder / "there").mkdir()
        (self.folder / "there/p.csv").write_text("old")
        (self.folder / "link").symlink_to("there/p.csv")
        self.done(run("eval", folder, "--predictions", self.folder / "link", "--force"))
        self.assertTrue((self.folder / "link").is_symlink())
        self.assertEqual((self.folder / "there/p.csv").read_text(), expected)
        if os.geteuid() == 0:
            null = self.folder / "null"
            os.mknod(null, 0o600 | stat.S_IFCHR, os.stat("/dev/null").st_rdev)
            self.done(run("eval", folder, "--predictions", null))
            self.assertTrue(null.is_char_device())

    def test_a_result_that_reaches_nobody_is_an_error(self):
        self.done(run(*self.small("--max-steps", 1)))
        with open("/dev/full", "w") as full:
            self.check_refusal(run("eval", self.folder / "run", "--json", stdout=full), 4, "stdout")
        read_end, write_end = os.pipe()
        os.close(read_end)
        self.assertEqual(run("eval", self.folder / "run", stdout=write_end).returncode, 0)
        os.close(write_end)
        shell = subprocess.run(
            ["sh", "-c", '"$0" eval "$1" >&-', PROGRAM, str(self.folder / "run")], env=ENVIRONMENT, timeout=60
        )
        self.assertEqual(shell.returncode, 4)


class Env(ProgramTest):
    def test_says_what_a_bug_report_needs(self):
        text = self.done(run("env")).stdout
        for word in ("gradstep", "libtorch", "processor", "threads", "memory", "devices", "fp32", "bf16", "fp16"):
            self.assertIn(word, text)


if __name__ == "__main__":
    unittest.main()

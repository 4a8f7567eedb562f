"""examples/03_own_program.cpp and 04_trainer.cpp: a user's own model and data have all that gradstep has."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from program import ENVIRONMENT, rows, wait_for  # noqa: E402

EXAMPLES = pathlib.Path(os.environ["GRADSTEP_BUILD_DIR"]) / "examples"
PROGRAM = str(EXAMPLES / "03_own_program")
NAME = "03_own_program"


def run(*arguments, env=None, program=PROGRAM):
    return subprocess.run(
        [program, *map(str, arguments)],
        env={**ENVIRONMENT, **(env or {})},
        capture_output=True,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
    )


class OwnProgram(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="gradstep-test-")
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.text = self.folder / "text.txt"
        self.text.write_bytes(b"".join(b"%d bottles of beer on the wall. " % n for n in range(300)))

    def train(self, *arguments, name="run", text=None):
        """Arguments of a run of about a second."""
        fixed = ("--file", text or self.text, "--seq", 16, "--width", 8, "-b", 8, "--grad-accum-steps", 2)
        machine = ("--precision", "fp32", "--matmul", "torch", "--threads", 1, "--warmup-steps", 0)
        return ["train", *fixed, *machine, "-o", self.folder / name, *arguments]

    def done(self, result):
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        return result

    def check_refusal(self, result, code, *words):
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertTrue(result.stderr.startswith(NAME + ": "), result.stderr)
        self.assertNotIn("gradstep", result.stderr.replace(str(self.folder), ""))
        for word in words:
            self.assertIn(word, result.stderr)

    def test_train_and_eval_speak_of_the_task(self):
        out = self.done(run(*self.train("--epochs", 2))).stdout
        self.assertIn("perplexity", out)
        self.assertIn("bytes, seq 16, width 8, ", out)  # its flags, but not the path
        for foreign in ("top-5", "top5", "val_acc", "--dataset"):
            self.assertNotIn(foreign, out)
        last = [row for row in rows(self.folder / "run") if "val_loss" in row][-1]
        self.assertEqual(last["val_tokens"], last["val_samples"] * 16)
        self.assertLess(last["val_perplexity"], 256)
        found = json.loads(self.done(run("eval", self.folder / "run", "--json")).stdout)
        for key in ("val_loss", "val_perplexity", "val_tokens"):
            self.assertEqual(found[key], last[key], key)
        best = json.loads(self.done(run("eval", self.folder / "run" / "best.safetensors", "--json")).stdout)
        self.assertLessEqual(best["val_perplexity"], last["val_perplexity"])

    def test_killed_it_goes_on_bit_for_bit(self):
        long = ("--epochs", 60, "--save-interval", 20, "--eval-interval", "5ep")
        self.done(run(*self.train(*long, name="whole")))
        process = subprocess.Popen(
            [PROGRAM, *map(str, self.train(*long))],
            env=ENVIRONMENT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        checkpoints = self.folder / "run" / "checkpoints"
        wait_for(lambda: checkpoints.exists() and any(p.name.startswith("step-") for p in checkpoints.iterdir()))
        process.send_signal(signal.SIGKILL)
        self.assertEqual(process.wait(), -signal.SIGKILL)  # it had not ended before
        self.done(run(*self.train(*long, "--resume", "auto")))
        self.assertEqual(
            (self.folder / "run" / "model.safetensors").read_bytes(),
            (self.folder / "whole" / "model.safetensors").read_bytes(),
        )
        difference = self.done(run("ckpt", "diff", self.folder / "whole", self.folder / "run"))
        self.assertIn("equal: ", difference.stdout)

    def test_threads_spin_briefly(self):
        """Else a busy machine slows a run down many times. libgomp itself says what it works with."""
        for chosen, expected in (({}, "20000"), ({"GOMP_SPINCOUNT": "7"}, "7")):
            err = run("--version", env={"OMP_DISPLAY_ENV": "verbose", **chosen}).stderr
            self.assertRegex(err, rf"GOMP_SPINCOUNT = '{expected}'")

    def test_verify_resume(self):
        flags = ("--file", self.text, "--seq", 16, "--width", 8, "-b", 8, "--warmup-steps", 0, "--threads", 1)
        out = self.done(run("verify-resume", "--updates", 3, "--more", 3, "--", *flags, "--precision", "fp32")).stdout
        self.assertRegex(out.splitlines()[-1], r"^6 updates: \d+ tensors and \d+ rows equal, bit for bit$")

    def test_replay(self):
        result = run(*self.train("--epochs", 2, "--lr", "1e38", "--opt", "sgd", "--sched", "constant"))
        self.assertEqual(result.returncode, 3, result.stderr)
        boxes = sorted((self.folder / "run").glob("blackbox-*.safetensors"))
        self.assertTrue(boxes)
        self.assertNotIn("gradstep replay", result.stdout)
        self.assertIn("same as recorded", self.done(run("replay", boxes[0])).stdout)

    def test_help_names_the_options_and_the_program(self):
        text = self.done(run("train", "--help")).stdout
        for expected in (f"usage: {NAME} train", "--file FILE", "--seq N", "--width N", "[README.md]", "--lr X"):
            self.assertIn(expected, text)
        for foreign in ("--hidden", "--data-dir", "--model", "usage: gradstep"):
            self.assertNotIn(foreign, text)
        commands = self.done(run("--help")).stdout
        for name in ("train", "eval", "replay", "ckpt ls", "verify-resume", "env"):
            self.assertIn(f"  {name}", commands)
        self.assertNotIn("fetch", commands)
        self.assertIn("made with gradstep", self.done(run("--version")).stdout)

    def test_wrong_input_is_one_line(self):
        self.check_refusal(run(*self.train("--witdh", 3)), 2, "--witdh", "did you mean --width?")
        self.check_refusal(run(*self.train("--seq", 0)), 2, "--seq '0': must be a whole number from 1 to 4096")
        self.check_refusal(run(*self.train(text=self.folder / "none")), 5, "too short or not there")
        self.check_refusal(run(*self.train("--best-metric", "val_acc")), 2, "val_acc", "val_perplexity")
        self.assertFalse((self.folder / "run" / "model.safetensors").exists())
        self.done(run(*self.train("--max-steps", 2)))
        self.check_refusal(run(*self.train("--max-steps", 2, "--width", 4, "--resume", "auto")), 2, "width was 8, is 4")
        self.check_refusal(run("eval", self.folder / "run" / "model.safetensors", "--width", "9"), 4, "[")

    def test_config_file_and_environment(self):
        self.done(run(*self.train("--max-steps", 3)))
        config = self.folder / "run" / "config.toml"
        self.assertIn("width = 8\n", config.read_text())
        self.assertIn(f"To repeat it: {NAME} train", config.read_text())
        self.done(run("train", "-c", config, "-o", self.folder / "again"))
        self.assertEqual(
            (self.folder / "again" / "model.safetensors").read_bytes(),
            (self.folder / "run" / "model.safetensors").read_bytes(),
        )
        plan = self.done(run(*self.train("--dry-run")[:-1], "--dry-run", env={"GRADSTEP_NESTEROV": "0"})).stdout
        self.assertIn("parameters", plan)
        result = run("train", "-c", config, "-o", self.folder / "bad", env={"GRADSTEP_WIDTH": "x"})
        self.check_refusal(result, 2, "GRADSTEP_WIDTH 'x'")

    def test_a_model_of_another_program_is_refused(self):
        self.done(run(*self.train("--max-steps", 1)))
        other = subprocess.run(
            [os.path.join(os.environ["GRADSTEP_BUILD_DIR"], "gradstep"), "eval", self.folder / "run"],
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
        )
        self.assertEqual(other.returncode, 4, other.stderr)
        self.assertEqual(other.stderr.count("\n"), 1)
        self.assertIn("'bytes'", other.stderr)

    def test_under_another_file_name_it_knows_its_runs(self):
        self.done(run(*self.train("--epochs", 1, "--lr", "1e38", "--opt", "sgd", "--stop-after", 1)))
        renamed = self.folder / "learn"
        renamed.symlink_to(PROGRAM)
        result = run("eval", self.folder / "run", program=renamed)
        self.assertEqual(result.returncode, 3)  # it knows the file, whose loss is not finite
        self.assertIn("loss of the samples is not finite", result.stderr)
        result = run(*self.train("--epochs", 1, "--lr", "1e38", "--opt", "sgd", "--resume", "auto"), program=renamed)
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertTrue(result.stderr.startswith("learn: "), result.stderr)
        box = sorted((self.folder / "run").glob("blackbox-*.safetensors"))[0]
        self.done(run("replay", box, program=renamed))

    def test_the_folder_of_a_run_has_the_name_of_the_recipe(self):
        plan = self.done(
            run(*(str(each) for each in self.train("--dry-run") if each not in ("-o", self.folder / "run")))
        )
        self.assertRegex(plan.stdout, r"runs/bytes-2\d{7}-\d{6}")


class TrainerExample(unittest.TestCase):
    def test_stopped_and_started_again_it_ends_with_the_same_bits(self):
        program = str(EXAMPLES / "04_trainer")
        with tempfile.TemporaryDirectory(prefix="gradstep-test-") as name:
            folder = pathlib.Path(name)
            whole = run(folder / "whole", program=program)
            self.assertEqual((whole.returncode, whole.stderr), (0, ""), whole.stdout)
            self.assertIn("val_mae", whole.stdout)
            process = subprocess.Popen([program, str(folder / "parts")], stdout=subprocess.DEVNULL)
            checkpoints = folder / "parts" / "checkpoints"
            wait_for(lambda: checkpoints.exists() and any(p.name.startswith("step-") for p in checkpoints.iterdir()))
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(), 143)  # it had not ended before
            again = run(folder / "parts", program=program)
            self.assertEqual((again.returncode, again.stderr), (0, ""), again.stdout)
            self.assertEqual(
                (folder / "parts" / "model.safetensors").read_bytes(),
                (folder / "whole" / "model.safetensors").read_bytes(),
            )


if __name__ == "__main__":
    unittest.main()

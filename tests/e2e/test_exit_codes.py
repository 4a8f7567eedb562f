"""How the program leaves: every exit code, signals at any moment, folders, disks and streams that do not play along."""

import os
import pathlib
import random
import resource
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from program import (  # noqa: E402
    ENVIRONMENT,
    PROGRAM,
    SIGNALS,
    ProgramTest,
    finish,
    rows,
    run,
    start,
    wait_for_content,
    write_idx,
)


class Signals(ProgramTest):
    """Long runs on small data, so that the signal always comes first."""

    def long(self, *arguments, name="run"):
        return self.small("--max-steps", 100_000_000, "--log-interval", 0, *arguments, name=name)

    def check_stopped(self, folder, result, code):
        self.assertEqual((result.returncode, result.stderr), (code, ""))
        self.assertTrue((folder / "model.safetensors").exists())
        self.assertFalse((folder / ".gradstep.lock").exists())
        last = rows(folder)[-1]
        self.assertEqual(last["event"], "end")
        self.assertEqual(last["reason"], signal.Signals({v: k for k, v in SIGNALS.items()}[code]).name)
        self.assertIn("not finished: update ", result.stdout)
        self.done(run("eval", folder, "-q"))  # the model is whole

    def test_each_signal_ends_the_run_with_its_code(self):
        for number, code in SIGNALS.items():
            with self.subTest(number.name):
                folder = self.folder / number.name
                process = start(*self.long(name=number.name))
                wait_for_content(folder / "metrics.jsonl")
                process.send_signal(number)
                self.check_stopped(folder, finish(process), code)

    def test_in_the_midst_of_an_evaluation(self):
        process = start(*self.long("--eval-interval", "1"))  # nearly always in one
        wait_for_content(self.folder / "run/metrics.jsonl")
        process.send_signal(signal.SIGTERM)
        self.check_stopped(self.folder / "run", finish(process), 143)

    def test_at_any_moment_of_the_start(self):
        """Before the handlers are there the signal kills, as it kills any program; from then on it ends a run in order."""
        random.seed(0)
        for i in range(6):
            name = f"run{i}"
            process = start(*self.long(name=name))
            time.sleep(random.uniform(0, 0.8))
            process.send_signal(signal.SIGTERM)
            result = finish(process)
            with self.subTest(i=i, code=result.returncode):
                if result.returncode == -signal.SIGTERM:
                    self.assertFalse((self.folder / name / "model.safetensors").exists())
                else:
                    self.check_stopped(self.folder / name, result, 143)

    def test_at_any_moment_around_the_end(self):
        """Code, last row and last line agree, whichever came first; the model is there either way."""
        random.seed(1)
        for i in range(6):
            name = f"run{i}"
            process = start(*self.small("--max-steps", 500, "--eval-interval", 100, "--log-interval", 0, name=name))
            wait_for_content(self.folder / name / "metrics.jsonl")
            time.sleep(random.uniform(0, 0.1))
            process.send_signal(signal.SIGTERM)
            result = finish(process)
            with self.subTest(i=i, code=result.returncode):
                last = rows(self.folder / name)[-1]
                if result.returncode == 143:
                    self.check_stopped(self.folder / name, result, 143)
                else:  # done; the process may have been on its way out, without handlers
                    self.assertIn(result.returncode, (0, -signal.SIGTERM))
                    self.assertEqual(last["reason"], "done")
                    self.assertTrue((self.folder / name / "model.safetensors").exists())

    def test_a_second_interrupt_leaves_at_once(self):
        # One update of this run takes minutes, so that only the second SIGINT can end it.
        arguments = [
            "train",
            "--max-steps",
            "5",
            "-b",
            "1",
            "--global-batch-size",
            "60000",
            "--hidden",
            "4096",
            "--warmup-steps",
            "0",
            "--precision",
            "fp32",
            "--threads",
            "1",
            "--grace",  # else the window would be given up
            "10h",
            "-o",
            str(self.folder / "run"),
        ]
        process = start(*arguments)
        wait_for_content(self.folder / "run/config.toml")
        time.sleep(1.5)
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        begin = time.monotonic()
        self.assertEqual(finish(process).returncode, 130)
        self.assertLess(time.monotonic() - begin, 5)
        self.assertFalse((self.folder / "run/model.safetensors").exists())

    def test_evaluation_alone_stops_too(self):
        self.done(run(*self.small("--max-steps", 1)))
        process = start("eval", self.folder / "run", "--dataset", "mnist")
        process.send_signal(signal.SIGTERM)
        self.assertIn(finish(process).returncode, (-signal.SIGTERM, 143, 0))


class Codes(ProgramTest):
    def test_usage_is_two(self):
        self.check_refusal(run("train", "--max-stepz", 3), 2, "--max-stepz", "--max-steps")
        self.check_refusal(run(*self.small("--warmup-steps", 20, "--max-steps", 10)), 2, "20", "10")
        self.check_refusal(run(*self.small("--warmup-steps", 20, "--epochs", 1)), 2, "20", "8")
        self.check_refusal(run(*self.small("--device", "cuda:9")), 2, "--device cuda:9")
        self.assertFalse((self.folder / "run").exists())

    def test_weird_values(self):
        # Each kind of flag once or twice here; tests/run/run_config_test.cpp has all limits of all flags.
        for flag, value in (
            ("--batch-size", "0"),
            ("-b", "1e3"),
            ("-b", "99999999999999999999"),
            ("-b", ""),
            ("--lr", "nan"),
            ("--lr", "0x10"),
            ("--max-steps", "-5"),
            ("--dropout", "1"),
            ("--precision", "FP32"),
            ("--sched", ""),
            ("--seed", "4294967296"),
            ("--eval-interval", "1.5ep"),
            ("--device", "cuda:-1"),
            ("--dataset", "../mnist"),
            ("--model", "resnet"),
        ):
            with self.subTest(flag=flag, value=value):
                self.check_refusal(
                    run(
                        *self.small(
                            f"{flag}={value}" if flag.startswith("--") else flag,
                            *([] if flag.startswith("--") else [value]),
                        )
                    ),
                    2,
                )
        self.assertFalse((self.folder / "run").exists())

    def test_large_values_that_are_allowed(self):
        for i, extra in enumerate(
            (
                ["--seed", 4294967295],
                ["-b", 1_000_000_000],
                ["--grad-accum-steps", 500_000_000],
                ["-j", 64],
                ["--log-interval", 1_000_000_000],
                ["--eval-interval", "1000000h"],
                ["--clip-grad", "1e-30"],
                ["--lr", 0],
                ["--threads", 3],
            )
        ):
            with self.subTest(extra=extra):
                self.done(run(*self.small("--epochs", 1, *extra, name=f"run{i}")))

    def test_parameters_that_are_not_finite_are_a_divergence(self):
        # A learning rate that is infinite in fp32: the gradients were finite, the parameters are not.
        result = run(*self.small("--epochs", 1, "--lr", "1e39", "--sched", "constant"))
        self.check_refusal(result, 3, "fc1.weight", "not finite", "--lr")
        self.assertFalse((self.folder / "run/model.safetensors").exists())
        self.assertEqual(list((self.folder / "run").glob("checkpoints/*")), [])

    def test_diverged_is_three(self):
        result = run(*self.small("--max-steps", 100, "--opt", "sgd", "--sched", "constant", "--lr", "1e38"))
        self.check_refusal(result, 3, "window 21", "--lr")
        self.assertFalse((self.folder / "run/model.safetensors").exists())
        windows = [row for row in rows(self.folder / "run") if "loss" in row]
        self.assertEqual(len(windows), 21)  # one update, 20 skips
        self.assertTrue(windows[-1]["skipped"])

    def test_a_wrong_folder_of_data_is_five(self):
        (self.folder / "empty").mkdir()
        for data_dir in ("empty", "absent", "/dev/null"):
            result = run(*self.small("--data-dir", self.folder / data_dir))
            self.check_refusal(result, 5, str(self.folder / data_dir))
            self.assertFalse((self.folder / "run").exists())
        self.check_refusal(run(*self.small("--dataset", "cifar10")), 5)

    def test_out_of_memory_is_six(self):
        limit = 3 << 30  # less than the first matrix takes
        result = run(
            "train",
            "--hidden",
            1_000_000,
            "--threads",
            1,
            "-o",
            self.folder / "run",
            "-q",
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
        )
        self.check_refusal(result, 6, "out of memory", "--batch-size")
        self.assertFalse((self.folder / "run").exists())

    def test_broken_data_is_five(self):
        arguments = self.small()
        labels = self.folder / "data/t10k-labels-idx1-ubyte"
        labels.write_bytes(labels.read_bytes()[:-1] + b"\x0a")
        self.check_refusal(run(*arguments), 5, "10")
        labels.write_bytes(labels.read_bytes()[:-1])
        self.check_refusal(run(*arguments), 5, "t10k-labels-idx1-ubyte")

    def test_pictures_of_two_sizes_are_five_before_the_first_update(self):
        arguments = self.small()
        write_idx(self.folder / "other", side=5)
        for part in ("images-idx3", "labels-idx1"):
            (self.folder / f"other/t10k-{part}-ubyte").rename(self.folder / f"data/t10k-{part}-ubyte")
        self.check_refusal(run(*arguments), 5, "mnist", "4x4", "5x5")
        self.assertFalse((self.folder / "run").exists())


class OutputFolders(ProgramTest):
    def test_a_folder_with_a_run_or_other_files(self):
        self.done(run(*self.small("--max-steps", 1)))
        model = (self.folder / "run/model.safetensors").read_bytes()
        self.check_refusal(run(*self.small("--max-steps", 1)), 2, "holds a run already")
        self.assertEqual((self.folder / "run/model.safetensors").read_bytes(), model)
        (self.folder / "mine").mkdir()
        (self.folder / "mine/thesis.txt").write_text("precious")
        self.done(run(*self.small("--max-steps", 1, name="mine")))
        self.assertEqual((self.folder / "mine/thesis.txt").read_text(), "precious")

    def test_a_folder_in_use(self):
        process = start(*self.small("--max-steps", 100_000_000, "--log-interval", 0))
        wait_for_content(self.folder / "run/metrics.jsonl")
        self.check_refusal(run(*self.small()), 2, f"in use by pid {process.pid} on {os.uname().nodename}")
        process.kill()
        process.communicate()
        self.check_refusal(run(*self.small()), 2, "holds a run already")

    def test_a_path_that_cannot_be_a_folder(self):
        for path in ("/proc/no/such", self.folder / "data/train-images-idx3-ubyte", self.folder / ("n" * 300)):
            with self.subTest(path=path):
                arguments = self.small("--max-steps", 1)
                arguments[arguments.index("-o") + 1] = str(path)
                self.check_refusal(run(*arguments), 2, "--output-dir")

    def mount(self, options):
        target = self.folder / "disk"
        target.mkdir()
        if (
            os.geteuid() != 0
            or subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", target], capture_output=True).returncode
        ):
            self.skipTest("mounting a small disk needs root")
        self.addCleanup(subprocess.run, ["umount", "-l", target], check=True)
        return target

    def test_a_disk_that_fills_up(self):
        disk = self.mount("size=1m")
        # The weights of 1,000 hidden units take 1 MiB and more with fashion-mnist; the model does not fit.
        arguments = [
            "train",
            "--max-steps",
            "2",
            "--warmup-steps",
            "0",
            "--hidden",
            "1000",
            "--threads",
            "1",
            "--precision",
            "fp32",
            "-o",
            str(disk / "run"),
            "-q",
        ]
        self.check_refusal(run(*arguments), 4, str(disk / "run"), "12.7 MB", "1.0 MB are free")
        self.assertFalse((disk / "run").exists())  # said before anything was made
        (disk / "rest").write_bytes(b"x")
        with open(disk / "rest", "wb", buffering=0) as rest:
            try:
                while True:
                    rest.write(bytes(4096))
            except OSError:
                pass
        self.check_refusal(run(*self.small("-o", disk / "second")), 4, str(disk / "second"))

    def test_a_disk_that_fills_up_with_rows(self):
        disk = self.mount("size=256k")
        arguments = self.small("--max-steps", 100_000, "--save-interval", 0, "-o", disk / "run")
        self.check_refusal(run(*arguments), 4, "metrics.jsonl", "No space left")
        rows(disk / "run")  # whole lines only

    def test_a_disk_that_may_not_be_written(self):
        disk = self.mount("size=1m,ro")
        self.check_refusal(run(*self.small("-o", disk / "run")), 2, "--output-dir", "Read-only")


class Streams(ProgramTest):
    def shell(self, redirection):
        arguments = self.small("--max-steps", 3, name="run" + str(len(list(self.folder.iterdir()))))
        result = subprocess.run(
            ["bash", "-c", 'set -o pipefail; "$0" "$@" ' + redirection, PROGRAM, *arguments],
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            timeout=60,
        )
        self.assertTrue(
            (pathlib.Path(arguments[arguments.index("-o") + 1]) / "model.safetensors").exists(), redirection
        )
        return result

    def test_closed_full_and_abandoned_streams(self):
        for redirection in (">&-", "<&-", "2>&-", "<&- >&- 2>&-", "> /dev/full", "| head -1", "| true"):
            with self.subTest(redirection):
                result = self.shell(redirection)
                self.assertEqual((result.returncode, result.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()

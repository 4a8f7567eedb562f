"""The program as the Python tests call it: run to the end, or started, signalled and waited for; and what a good refusal is."""

import json
import os
import pathlib
import signal
import struct
import subprocess
import tempfile
import time
import unittest

PROGRAM = os.path.join(os.environ["GRADSTEP_BUILD_DIR"], "gradstep")
# Variables of the user must not change the tests.
ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.startswith("GRADSTEP_")}


def run(*arguments, env=None, timeout=120, **options):
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stderr", subprocess.PIPE)
    options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run(
        [PROGRAM, *map(str, arguments)], env={**ENVIRONMENT, **(env or {})}, text=True, timeout=timeout, **options
    )


def start(*arguments, **options):
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stderr", subprocess.PIPE)
    return subprocess.Popen(
        [PROGRAM, *map(str, arguments)], env=ENVIRONMENT, text=True, stdin=subprocess.DEVNULL, **options
    )


def wait_for(condition, seconds=60):
    """Until condition() holds, or fails."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not in {seconds} seconds")
        time.sleep(0.001)


def wait_for_content(path):
    wait_for(lambda: path.exists() and path.stat().st_size > 0)


def finish(process):
    """The process that start() began, at its end."""
    out, err = process.communicate(timeout=60)
    return subprocess.CompletedProcess([], process.returncode, out, err)


def rows(folder):
    """All rows of a run's metrics.jsonl, in order; every line must be whole."""
    text = (pathlib.Path(folder) / "metrics.jsonl").read_text()
    assert text == "" or text.endswith("\n"), text[-100:]
    return [json.loads(line) for line in text.splitlines()]


def write_idx(folder, num_train=60, num_test=20, side=4):
    """A small data set that --dataset mnist reads: pixels of a simple pattern, labels 0 to 9 in turn."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for part, count in (("train", num_train), ("t10k", num_test)):
        pixels = bytes((17 * i + 31 * p) % 256 for i in range(count) for p in range(side * side))
        (folder / f"{part}-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 0x803, count, side, side) + pixels)
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(
            struct.pack(">II", 0x801, count) + bytes(i % 10 for i in range(count))
        )
    return folder


class ProgramTest(unittest.TestCase):
    """A test with a folder of its own, `self.folder`, and in it a small data set on demand."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="gradstep-test-")
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def small(self, *arguments, name="run"):
        """Arguments of a run of a fraction of a second, into self.folder/name."""
        data = self.folder / "data"
        if not data.exists():
            write_idx(data)
        return [
            "train",
            "--dataset",
            "mnist",
            "--data-dir",
            str(data),
            "--hidden",
            "8",
            "-b",
            "4",
            "--grad-accum-steps",
            "2",
            "--warmup-steps",
            "0",
            "--precision",
            "fp32",
            "--matmul",
            "torch",
            "--threads",
            "1",
            "-o",
            str(self.folder / name),
            *map(str, arguments),
        ]

    def done(self, result):
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        return result

    def check_refusal(self, result, code, *words):
        """One line on stderr, without backtrace, that has the words; the exit code."""
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertTrue(result.stderr.startswith("gradstep: "), result.stderr)
        for forbidden in ("Exception raised from", "terminate", "frame #", "std::"):
            self.assertNotIn(forbidden, result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)


SIGNALS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGUSR1: 138}

"""The program where the system is narrow or odd: limits of files and threads, signals at the very end, paths of any bytes."""

import os
import pathlib
import resource
import shutil
import signal
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from program import ProgramTest, rows, run, start  # noqa: E402

NOBODY = 65534


class Limits(ProgramTest):
    def test_a_limit_on_the_size_of_files(self):
        for limit in (0, 100, 5000, 20_000):
            with self.subTest(limit=limit):
                result = run(
                    *self.small("--epochs", 20, "--log-interval", 0, name=f"run{limit}"),
                    preexec_fn=lambda limit=limit: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
                )
                self.check_refusal(result, 4, f"run{limit}/", "File too large")

    def test_a_limit_on_threads(self):
        """Root has no such limit, so the program runs as somebody else, who must reach build and data."""
        if os.geteuid() != 0:
            self.skipTest("a limit of its own needs a user of its own, so root")
        self.folder.chmod(0o777)

        def limited(num_processes, *arguments):
            def become_nobody():
                resource.setrlimit(resource.RLIMIT_NPROC, (num_processes, num_processes))
                os.setgid(NOBODY)
                os.setuid(NOBODY)

            return run(*arguments, preexec_fn=become_nobody)

        try:
            self.done(limited(100, *self.small("--epochs", 1, "--threads", 2, name="enough")))
        except PermissionError:
            self.skipTest("the build is in a folder that others may not enter")
        for i, (num, extra) in enumerate(
            ((1, ()), (5, ("--threads", 16)), (25, ("--threads", 16)), (8, ("--threads", 1, "-j", 30)))
        ):
            with self.subTest(num=num, extra=extra):
                result = limited(num, *self.small("--epochs", 1, *extra, name=f"run{i}"))
                self.check_refusal(result, 2, "threads", "--workers", "ulimit -u")
                self.assertFalse((self.folder / f"run{i}").exists())
        # As many as are asked for suffice, whatever sizes of teams OpenMP has; threads that were tried leave slowly, and
        # count until they are gone.
        large = ("--epochs", 5, "--hidden", 512, "--batch-size", 60, "--threads", 16)
        self.done(limited(66, *self.small(*large, name="just")))
        self.check_refusal(limited(5, "eval", self.folder / "enough", "--threads", 16), 2, "threads")


class Paths(ProgramTest):
    def test_bytes_that_are_no_text(self):
        arguments = self.small("--epochs", 1)
        data = os.fsdecode(os.fsencode(self.folder) + b"/caf\xe9")
        shutil.move(self.folder / "data", data)
        arguments[arguments.index("--data-dir") + 1] = data
        self.done(run(*arguments, "-q"))
        self.assertEqual(rows(self.folder / "run")[-1]["reason"], "done")
        self.done(run("eval", self.folder / "run", "--data-dir", data, "-q"))

    def test_a_line_stays_one_line(self):
        arguments = self.small("--epochs", 1, name="two\nlines\x1b[31m")
        self.done(run(*arguments))
        self.check_refusal(run(*arguments), 2, "two?lines?[31m", "holds a run already; go on")
        self.check_refusal(run("train", "--opt", "a\nb"), 2, "--opt 'a?b': must be")


class Ends(ProgramTest):
    def test_what_is_done_is_done_whatever_comes_while_the_process_winds_up(self):
        for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT):
            for moment in range(3):
                name = f"{number.name}{moment}"
                process = start(*self.small("--max-steps", 1, name=name))
                for line in process.stdout:
                    if line.startswith("done: "):
                        break
                time.sleep(0.01 * moment)
                process.send_signal(number)
                with self.subTest(name):
                    self.assertEqual(process.communicate(timeout=60)[1], "")
                    self.assertEqual(process.returncode, 0)

    def test_output_that_reaches_nobody_is_an_error(self):
        for arguments in (["--help"], ["--version"], ["env"], ["train", "--help"], self.small("--dry-run")):
            with self.subTest(arguments[-1]), open("/dev/full", "w") as full:
                self.check_refusal(run(*arguments, stdout=full), 4, "stdout", "No space left")
        read_end, write_end = os.pipe()
        os.close(read_end)
        for arguments in (["--help"], ["train", "--help"], ["env"]):
            with self.subTest(arguments):  # the reader had seen enough
                self.done(run(*arguments, stdout=write_end))
        os.close(write_end)


if __name__ == "__main__":
    unittest.main()

"""The program as a shell sees it: exit codes, one line on stderr, streams that are closed, full or gone."""

import os
import subprocess
import tempfile
import unittest

PROGRAM = os.path.join(os.environ["GRADSTEP_BUILD_DIR"], "gradstep")
ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.startswith("GRADSTEP_")}


def run(*arguments, env=None, **options):
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stderr", subprocess.PIPE)
    return subprocess.run([PROGRAM, *arguments], env={**ENVIRONMENT, **(env or {})}, text=True, timeout=60, **options)


class Program(unittest.TestCase):
    def refused(self, code, *arguments, **options):
        result = run(*arguments, **options)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertTrue(result.stderr.startswith("gradstep: "), result.stderr)
        return result.stderr

    def test_help_and_version_are_fine(self):
        for arguments in (
            ["--help"],
            ["-h"],
            ["help"],
            ["train", "--help"],
            ["help", "eval"],
            ["fetch", "-h"],
            ["env", "--help"],
            ["train", "--lr", "x", "--help"],
        ):
            result = run(*arguments)
            self.assertEqual((result.returncode, result.stderr), (0, ""), arguments)
            self.assertTrue(result.stdout.startswith("usage: gradstep "), arguments)
        self.assertRegex(
            run("--version").stdout, r"^gradstep \d+\.\d+\.\d+ \(commit [0-9a-z]+\), LibTorch \d+\.\d+\.\d+\n$"
        )

    def test_no_arguments_give_the_short_help_and_two(self):
        for arguments in ([], ["--quiet"]):
            result = run(*arguments)
            self.assertEqual((result.returncode, result.stderr), (2, ""))
            self.assertIn("Commands", result.stdout)

    def test_what_is_not_known_is_one_line_with_the_nearest(self):
        self.assertIn("did you mean train?", self.refused(2, "trian"))
        self.assertIn("did you mean --version?", self.refused(2, "--versoin"))
        self.assertIn("did you mean --batch-size?", self.refused(2, "train", "--bacth-size", "3"))
        self.assertIn("unknown command ''", self.refused(2, ""))
        self.assertIn("needs a MODEL", self.refused(2, "eval"))
        self.assertIn("needs a NAME", self.refused(2, "fetch"))
        self.assertIn("--precision 'fp8'", self.refused(2, "eval", "x", "--precision", "fp8"))
        self.assertIn("--lr '12x'", self.refused(2, "train", "--lr", "12x"))
        self.assertIn("GRADSTEP_EPOCHS '0'", self.refused(2, "train", env={"GRADSTEP_EPOCHS": "0"}))

    def test_config_file_errors_have_file_line_and_column(self):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write("lr = 1e-3\nepochz = 3\n")
            file.flush()
            self.assertIn(
                f"{file.name}, line 2, column 1: unknown key epochz; did you mean epochs?",
                self.refused(2, "train", "-c", file.name),
            )

    def test_an_unknown_variable_warns_on_stderr(self):
        result = run("train", "--dry-run", env={"GRADSTEP_BATCHSIZE": "3"})
        self.assertEqual(
            result.stderr.split("\n")[0],
            "gradstep: warning: GRADSTEP_BATCHSIZE is not a variable of gradstep and "
            "is ignored; did you mean GRADSTEP_BATCH_SIZE?",
        )

    def test_a_reader_that_goes_away_does_no_harm(self):
        read_end, write_end = os.pipe()
        os.close(read_end)
        result = run("train", "--help", stdout=write_end)
        os.close(write_end)
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_closed_streams_and_a_full_one_are_reported(self):
        for redirection, code in ((">&-", 4), (">/dev/full", 4), ("<&- >&- 2>&-", 4)):
            result = subprocess.run(
                ["sh", "-c", f'"$0" train --help {redirection}', PROGRAM], env=ENVIRONMENT, timeout=60
            )
            self.assertEqual(result.returncode, code, redirection)
        result = subprocess.run(["sh", "-c", '"$0" train --lr x 2>&-', PROGRAM], env=ENVIRONMENT, timeout=60)
        self.assertEqual(result.returncode, 2)


if __name__ == "__main__":
    unittest.main()

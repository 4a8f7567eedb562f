"""gradstep verify-resume: equal runs, runs that end early, runs that fail, stop or differ."""

import pathlib
import signal
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from program import ProgramTest, run, start, wait_for, wait_for_content  # noqa: E402


class VerifyResume(ProgramTest):
    def setUp(self):
        super().setUp()
        self.temporary = self.folder / "tmp"
        self.temporary.mkdir()

    def flags(self, *arguments):
        """As self.small(), without the word train and without -o."""
        flags = self.small(*arguments)[1:]
        place = flags.index("-o")
        return flags[:place] + flags[place + 2 :]

    def verify(self, *own, flags=("--epochs", 8, "--dropout", 0.3, "--ema", 0.9), **options):
        return run("verify-resume", *own, "--", *self.flags(*flags), env={"TMPDIR": str(self.temporary)}, **options)

    def test_equal_to_the_last_bit_and_the_folder_goes(self):
        result = self.done(self.verify())
        self.assertRegex(result.stdout.splitlines()[-1], r"^40 updates: 20 tensors and \d\d rows equal, bit for bit$")
        self.assertEqual(list(self.temporary.iterdir()), [])

    def test_what_auto_chose_holds_for_all_runs(self):
        result = self.done(self.verify(flags=("--epochs", 8, "--precision", "auto", "--matmul", "auto")))
        unbroken, first_part, resumed = result.stdout.splitlines()[:3]
        self.assertTrue(unbroken.endswith(" --stop-after 40"), unbroken)
        chosen = r" --matmul auto .* --precision (fp32|bf16|fp16) --matmul (torch|onednn) --threads \d+ "
        self.assertRegex(first_part, chosen + r"--stop-after 20$")
        self.assertRegex(resumed, chosen + r"--resume auto --stop-after 20$")

    def test_equal_after_a_kill(self):
        result = self.done(self.verify("--kill", "--updates", 7, "--more", 4, "-q"))
        self.assertRegex(result.stdout, r"^11 updates: 20 tensors and \d\d rows equal, bit for bit\n$")

    def test_the_folder_asked_for_stays(self):
        folder = self.folder / "proof"
        self.done(self.verify("--updates", 3, "--more", 2, "-o", folder))
        for name in ("unbroken/metrics.jsonl", "resumed/metrics.jsonl", "first-part.log", "resumed.log.err"):
            self.assertTrue((folder / name).is_file(), name)
        self.check_refusal(self.verify("-o", folder), 2, str(folder), "not empty")

    def test_a_run_that_ends_before(self):
        result = self.done(self.verify("--updates", 5, "--more", 20, flags=("--max-steps", 9)))
        self.assertIn("the run ends with update 9", result.stdout)
        self.assertIn("\n9 updates: ", result.stdout)
        self.check_refusal(
            self.verify(
                "--updates",
                9,
                flags=("--max-steps", 9),
            ),
            2,
            "--updates 9",
            "update 9",
        )
        self.assertEqual(list(self.temporary.iterdir()), [])

    def test_flags_that_it_sets_itself_and_wrong_ones(self):
        for flag in ("-o", "--output-dir", "--resume", "--stop-after"):
            self.check_refusal(self.verify(flags=(flag, "3")), 2, "remove it after --")
        self.check_refusal(self.verify("--lr", "3"), 2, "unknown flag --lr")
        self.check_refusal(self.verify(flags=("--lrr", "3")), 2, "did you mean --lr?")
        self.check_refusal(self.verify("--more", "0"), 2, "--more '0'")
        self.assertEqual(list(self.temporary.iterdir()), [])

    def test_a_run_that_fails_is_named_with_its_line_and_code(self):
        result = self.verify(flags=("--data-dir", "/absent"))
        self.check_refusal(result, 5, "'unbroken'", "/absent", "unbroken.log")
        self.check_refusal(self.verify(flags=("--warmup-steps", "50", "--max-steps", "20")), 2, "--warmup-steps")

    def test_what_differs_is_named_and_kept(self):
        # Nothing but the clock makes runs differ: data that change between the runs do.
        folder = self.folder / "proof"
        process = start(
            "verify-resume", "-q", "-o", folder, "--updates", 6, "--more", 6, "--", *self.flags("--epochs", 8)
        )
        last = folder / "unbroken/checkpoints/step-00000012/manifest.json"
        wait_for(lambda: last.exists() or process.poll() is not None)
        rows = folder / "unbroken/metrics.jsonl"
        wait_for(lambda: (folder / "resumed").exists() or process.poll() is not None)
        text = rows.read_text()
        rows.write_text(text.replace('"lr":', '"lr":1', 1))
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, err), (1, ""), out)
        self.assertRegex(out, r"^different \(unbroken and resumed\): the row of window 1, lr: 1.* and .*proof\n$")

    def test_a_signal_reaches_the_runs_and_leaves_nothing(self):
        for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
            folder = self.folder / f"proof-{code}"
            # Rows come every window, so that the run is known to be in its loop.
            process = start("verify-resume", "-o", folder, "--updates", 10**8, "--", *self.flags("--epochs", 10**8))
            rows = folder / "unbroken/metrics.jsonl"
            wait_for_content(rows)
            process.send_signal(number)
            _, err = process.communicate(timeout=60)
            self.assertEqual((process.returncode, err), (code, ""))
            # The run has saved, and its lock is free: nobody holds the folder any more.
            self.assertTrue(list((folder / "unbroken/checkpoints").iterdir()))
            self.assertEqual((folder / "unbroken.log.err").read_text(), "")

    def test_its_death_is_that_of_the_runs(self):
        for number, times in ((signal.SIGKILL, 1), (signal.SIGINT, 2)):
            folder = self.folder / f"proof-{number}"
            process = start("verify-resume", "-o", folder, "--updates", 10**8, "--", *self.flags("--epochs", 10**8))
            lock = folder / "unbroken/.gradstep.lock"
            rows = folder / "unbroken/metrics.jsonl"
            wait_for_content(rows)
            child = int(lock.read_text().split()[1])
            for _ in range(times):
                process.send_signal(number)
            process.communicate(timeout=60)
            self.assertEqual(process.returncode, 130 if number == signal.SIGINT else -signal.SIGKILL)
            wait_for(lambda child=child: not is_running(child))


def is_running(pid):
    """Not so one that ended and that nobody reaped yet."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


if __name__ == "__main__":
    unittest.main()

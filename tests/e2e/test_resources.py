"""What a run takes of the machine: cores (case L5) and memory (case L6)."""

# run alone
import os
import pathlib
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from program import ProgramTest, rows, start  # noqa: E402


class Resources(ProgramTest):
    def test_l5_one_thread_takes_one_core(self):
        """Two loader threads that mostly wait must not show. Other load on the machine only lowers the ratio."""
        begin = time.monotonic()
        process = start(
            "train", "--epochs", 5, "--threads", 1, "-j", 2, "--precision", "fp32", "-q", "-o", self.folder / "run"
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.communicate()[1], "")
        self.assertEqual(process.returncode, 0)
        ratio = (usage.ru_utime + usage.ru_stime) / wall
        self.assertGreater(usage.ru_utime, 1)
        self.assertLessEqual(ratio, 1.1, f"{usage.ru_utime:.2f} s user, {usage.ru_stime:.2f} s system in {wall:.2f} s")

    def test_l6_memory_is_flat_after_fifty_updates(self):
        for precision in ("fp32", "bf16"):
            with self.subTest(precision):
                process = start(
                    *self.small("--max-steps", 5000, "--precision", precision, "--log-interval", 1, name=precision)
                )
                out, err = process.communicate(timeout=120)
                self.assertEqual((process.returncode, err), (0, ""))
                self.assertEqual(out.count("| Window "), 5000)
                memory = [row["memory"] for row in rows(self.folder / precision) if "loss" in row]
                self.assertEqual(len(memory), 5000)
                self.assertLess(max(memory[50:]) - memory[50], 8 << 20)


if __name__ == "__main__":
    unittest.main()

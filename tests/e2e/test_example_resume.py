"""examples/02_resume.cpp: in pieces it ends with the bits of one start."""

import os
import subprocess
import tempfile
import unittest

PROGRAM = os.path.join(os.environ["GRADSTEP_BUILD_DIR"], "examples/02_resume")


def last_line(*arguments):
    result = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()[-1]


class Example(unittest.TestCase):
    def test_in_pieces_it_ends_with_the_same_bits(self):
        with tempfile.TemporaryDirectory(prefix="gradstep-test-") as folder:
            whole = last_line(os.path.join(folder, "whole"))
            self.assertRegex(whole, r"^update 200  sum")
            pieces = os.path.join(folder, "pieces")
            for updates in ("33", "47", "1", "200"):
                last = last_line(pieces, updates)
            self.assertEqual(last, whole)


if __name__ == "__main__":
    unittest.main()

"""SIGKILL at random moments: the short form of the soak (make soak runs 100 kills over 2,000 updates)."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from program import ProgramTest  # noqa: E402
from soak import first_difference, kill_at_random, unbroken  # noqa: E402


class Kill(ProgramTest):
    def test_f1_f5_killed_fifty_times_the_run_ends_as_the_unbroken_one(self):
        def arguments(name):
            flags = "--max-steps 8000 --save-interval 20 --eval-interval 50 --precision bf16 --dropout 0.1 --ema 0.9 --hidden 256"
            return self.small(*flags.split(), name=name)

        unbroken(arguments("whole"))
        kills = kill_at_random(arguments("killed"), self.folder / "killed", 50, 20, seed=5)
        self.assertEqual(first_difference(self.folder / "killed", self.folder / "whole"), "")
        for name in ("model", "model-ema", "best", "best-ema"):
            files = [self.folder / run / f"{name}.safetensors" for run in ("killed", "whole")]
            self.assertEqual(*(path.read_bytes() for path in files), name)
        self.assertEqual(kills, 50, "the run ended before it was killed often")
        left = [
            path.name for path in (self.folder / "killed/checkpoints").iterdir() if not path.name.startswith("step-")
        ]
        self.assertEqual(left, [], "a killed save left something behind")


if __name__ == "__main__":
    unittest.main()

"""The long soak (make soak): 100 SIGKILLs over a run of 2,000 updates on Fashion-MNIST with saves every 20, bf16 and dropout."""

import argparse
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from soak import first_difference, kill_at_random, unbroken  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--updates", type=int, default=2000)
    parser.add_argument("--hidden", type=int, default=1024, help="large enough that an update takes milliseconds")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gradstep-soak-") as folder:
        folder = pathlib.Path(folder)

        def arguments(name):
            flags = {
                "--max-steps": options.updates,
                "--save-interval": 20,
                "--eval-interval": 200,
                "--precision": "bf16",
                "--dropout": 0.1,
                "--ema": 0.99,
                "--hidden": options.hidden,
                "-o": folder / name,
            }
            return ["train", "-q", *(str(word) for pair in flags.items() for word in pair)]

        unbroken(arguments("whole"))
        began = time.monotonic()
        kills = kill_at_random(
            arguments("killed"), folder / "killed", options.kills, 20, options.seed, max_seconds=3600
        )
        difference = first_difference(folder / "killed", folder / "whole")
        seconds = time.monotonic() - began
        print(f"{kills} kills over {options.updates} updates in {seconds:.0f} s: {difference or 'equal, bit for bit'}")
        return 1 if difference or kills < options.kills else 0


if __name__ == "__main__":
    sys.exit(main())

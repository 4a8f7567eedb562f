"""Writes tests/golden/scaler_trajectory.txt: what torch.amp.GradScaler does over a scripted sequence of updates."""

import pathlib

import torch

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden" / "scaler_trajectory.txt"
HEADER = """\
# torch.amp.GradScaler (growth 2, backoff 0.5) over scripted updates, written by tests/parity/make_scaler_trajectory.py.
# interval finite scale_before tracker_before scale_after tracker_after floored
# Lines follow one another; where the values before differ from those after the previous line, a new scaler begins.
# floored = 1: torch went below 1.0, where gradstep stays at its floor of 1.0, as in scale_after.
"""
FLOOR = 1.0
# (growth interval, first scale, first growth tracker, updates: '.' finite, 'i' an infinity, 'n' a NaN)
SCRIPTS = [
    (5, 65536.0, 0, "....." + "i" + "....i.....n...." + ".....ii.....nn" + "." * 12),
    (5, 65536.0, 0, "i.n.i..n...i....n.....i......n" + "." * 7),
    (1, 1024.0, 0, "...i.i..ii....nn...."),
    (3, 8.0, 0, "iiiiii" + "..." + "ii" + "......" + "inini" + ".." + "i" + "..."),  # down to the floor and up again
    (4, 2.0**122, 0, "." * 30 + "i" + "." * 12),  # up to the largest power of two that fp32 holds
    (2000, 65536.0, 1990, "." * 14 + "i" + "." * 4),
    (2000, 32768.0, 1998, ".i..n."),
    (2000, 1.0, 1999, ".ii."),
    (7, 3.0, 5, ".." + "." * 7 + "iiii" + "." * 7),  # not a power of two
]


def play(interval, scale, tracker, script):
    """Yields one tuple of the columns for each update of the script."""
    weight = torch.nn.Parameter(torch.zeros(3))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=scale, growth_interval=interval)
    scaler.load_state_dict(scaler.state_dict() | {"_growth_tracker": tracker})
    scaler.scale(torch.ones(()))  # makes the tensors
    for mark in script:
        before = scaler.get_scale(), scaler.state_dict()["_growth_tracker"]
        weight.grad = torch.ones(3)
        if mark != ".":
            weight.grad[1] = float("inf" if mark == "i" else "nan")
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        floored = scaler.get_scale() < FLOOR
        if floored:
            scaler.update(FLOOR)
        after = scaler.get_scale(), scaler.state_dict()["_growth_tracker"]
        yield (interval, int(mark == "."), *before, *after, int(floored))


def text():
    rows = [row for script in SCRIPTS for row in play(*script)]
    return HEADER + "".join(" ".join(map(repr, row)) + "\n" for row in rows)


if __name__ == "__main__":
    GOLDEN.write_text(text())

"""Writes tests/golden/lr_schedule.txt: learning rates of the three schedules, in double arithmetic."""

import pathlib

from reference import Settings, schedule

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden" / "lr_schedule.txt"
HEADER = """\
# Learning rate of update k (from 1), written by tests/parity/make_lr_schedule.py with the formulas of docs/design.md.
# schedule peak min warmup_steps total_steps k lr
"""
LENGTHS = [(0, 1), (1, 1), (0, 10), (1, 10), (4, 10), (9, 10), (10, 10), (100, 469), (100, 1407), (2000, 100000)]
PEAKS = [(1.0, 0.0), (1e-3, 0.0), (3e-4, 3e-5)]


def updates(warmup, total):
    """All of a short run; the edges and some updates between of a long one; one beyond the end."""
    if total <= 10:
        return list(range(1, total + 2))
    edges = {1, 2, warmup - 1, warmup, warmup + 1, total - 1, total, total + 1}
    return sorted(edges | {total * part // 7 for part in range(1, 7)})


def text():
    lines = []
    for kind in ("cosine", "linear", "constant"):
        for peak, low in PEAKS:
            for warmup, total in LENGTHS:
                settings = Settings(sched=kind, lr=peak, min_lr=low, warmup_steps=warmup)
                for k in updates(warmup, total):
                    lines.append(f"{kind} {peak!r} {low!r} {warmup} {total} {k} {schedule(k, total, settings)!r}\n")
    return HEADER + "".join(lines)


if __name__ == "__main__":
    GOLDEN.write_text(text())

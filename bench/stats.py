"""The statistics of the benchmarks: steady-state rates without the warm-up, medians with their spread, paired ratios."""

import dataclasses
import statistics


@dataclasses.dataclass(frozen=True)
class Summary:
    """n measurements: their median and the least and greatest of them."""

    n: int
    median: float
    least: float
    greatest: float

    def text(self, digits=0):
        """median (least - greatest; n)"""
        median, least, greatest = (f"{value:,.{digits}f}" for value in (self.median, self.least, self.greatest))
        return f"{median} ({least} - {greatest}; n = {self.n})"


def summarise(values):
    values = list(values)
    if not values:
        raise ValueError("no measurement to summarise")
    return Summary(len(values), statistics.median(values), min(values), max(values))


def paired_ratios(ours, theirs):
    """Ratios round by round: both of a pair ran side by side, so what slowed one slowed the other."""
    if len(ours) != len(theirs):
        raise ValueError(f"{len(ours)} and {len(theirs)} rounds cannot be paired")
    return [one / other for one, other in zip(ours, theirs)]


def steady_rate(rows, warmup_windows):
    """Samples/s over the rows of metrics.jsonl after the warm-up: their samples by the time that their rates imply.

    A row's rate is that of its own window, so a slow first window touches nothing but its own row.
    """
    windows = [row for row in rows if "samples_per_s" in row]
    if len(windows) <= warmup_windows:
        raise ValueError(f"{len(windows)} windows leave nothing after a warm-up of {warmup_windows}")
    before = windows[warmup_windows - 1]["samples"] if warmup_windows else 0
    seconds = 0.0
    previous = before
    for row in windows[warmup_windows:]:
        seconds += (row["samples"] - previous) / row["samples_per_s"]
        previous = row["samples"]
    return (previous - before) / seconds

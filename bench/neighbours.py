"""Rates beside programs that want the cores too: gradstep with the threads that it chooses and with fixed ones, and the best Python loop."""

import contextlib
import subprocess

from stats import summarise


@contextlib.contextmanager
def busy(count):
    """So many shell loops run meanwhile."""
    loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
        for loop in loops:
            loop.wait()


def ways(jobs, cores):
    """(case, peer, options) of all that is compared: one thread and one for each core, and what --threads auto takes."""
    for case, peer in jobs:
        rest = list(peer.candidates[-1][2:])  # the fastest variant of the others
        for threads in sorted({0, 1, cores} if peer.name == "gradstep" else {1, cores}):
            yield case, peer, ["--threads", str(threads), *rest]


def measure(jobs, cores, counts, rounds, effort, data_dir, say):
    """rates[case, peer, threads][number of neighbours] = rates of the rounds. All ways take turns beside the same neighbours."""
    rates = {}
    for number in range(rounds):
        for count in counts:
            with busy(count):
                for case, peer, options in ways(jobs, cores):
                    result = peer.measure(case, options, effort, data_dir)
                    key = (case.name, peer.name, options[1])
                    rates.setdefault(key, {}).setdefault(count, []).append(result["samples_per_s"])
                    say(f"round {number + 1}/{rounds} {count} beside {' '.join(key)}: {result['samples_per_s']:,.0f}")
    return rates


def table(rates, counts):
    """Medians of samples/s, a line for each way."""
    lines = [
        "| case | program | threads | " + " | ".join(f"{count} beside it" for count in counts) + " |",
        "|---" * (3 + len(counts)) + "|",
    ]
    for (case, peer, threads), by_count in rates.items():
        shown = [f"{summarise(by_count[count]).median:,.0f}" for count in counts]
        lines.append(f"| {case} | {peer} | {'auto' if threads == '0' else threads} | " + " | ".join(shown) + " |")
    return "\n".join(lines)

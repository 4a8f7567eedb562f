"""`make bench-compare BASE=<commit>`: this tree against another commit, interleaved in one run; ratios, median, spread.

Each round runs every bench of both builds side by side, in turns which goes first. The ratio is head's rate over base's, paired
by round, so above 1 is faster. Leaves with 1 when the median ratio of a bench is below 1 - threshold.
BENCH_QUICK=1 makes a smoke run whose numbers mean little.
"""

import argparse
import os
import pathlib
import sys
import tempfile

import peers
from run import FULL, LOOK, QUICK, say, unpack
from stats import paired_ratios, summarise


def parse_arguments(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base", type=pathlib.Path, required=True, help="build folder of the other commit")
    parser.add_argument("--head", type=pathlib.Path, required=True, help="build folder of this tree")
    parser.add_argument("--data-dir", type=pathlib.Path, default=pathlib.Path("/usr/share/datasets/fashion-mnist"))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--threshold", type=float, default=0.05, help="part of the rate that may be lost (default 0.05)"
    )
    parser.add_argument("--only", default="", help="only benches whose name has this in it")
    return parser.parse_args(arguments)


def case_bench(build, name, case, cores, effort, plain_data, packed_data):
    """A function that measures the rate of one program in one case, once."""
    if name == "gradstep":
        peer = peers.Gradstep(name, (str(build / "gradstep"),), (case,), ((),))
        # The program reads the packed files; it is not told how many threads to take.
        return lambda: peer.measure(case, [], effort, packed_data)["samples_per_s"]
    peer = peers.Peer(name, (str(build / "bench" / name),), (case,), ((),))
    return lambda: peer.measure(case, ["--threads", str(cores)], effort, plain_data)["samples_per_s"]


def all_benches(build, cores, effort, plain_data, packed_data):
    """name -> function that measures it once; greater is better."""
    benches = {
        f"{name} {case.name}": case_bench(build, name, case, cores, effort, plain_data, packed_data)
        for case in peers.all_cases()
        for name in ("gradstep", "engine_loop")
    }
    # Times as rates, so that a greater number is the better one here too.
    benches["start to first update (1/s)"] = lambda: (
        1 / peers.start_up(build / "gradstep", packed_data)["first_update_s"]
    )
    return benches


def measure(base, head, num_rounds):
    """name -> (rates of base, rates of head), one a round."""
    rates = {name: ([], []) for name in head if name in base}
    for number in range(num_rounds):
        for name, (of_base, of_head) in rates.items():
            turns = [(base[name], of_base), (head[name], of_head)]
            for bench, results in turns if number % 2 == 0 else reversed(turns):
                results.append(bench())
        say(f"round {number + 1}/{num_rounds}")
    return rates


def judge(rates, threshold):
    """(Markdown table, names of the benches that became slower by more than the threshold)."""
    lines = ["| bench | base | head | head / base | |", "|---|---|---|---|---|"]
    slower = []
    for name, (of_base, of_head) in rates.items():
        ratio = summarise(paired_ratios(of_head, of_base))
        verdict = ""
        if ratio.median < 1 - threshold:
            slower.append(name)
            verdict = "slower"
        digits = 0 if summarise(of_base).median > 1000 else 3
        lines.append(
            f"| {name} | {summarise(of_base).text(digits)} | {summarise(of_head).text(digits)} | {ratio.text(3)} | {verdict} |"
        )
    return "\n".join(lines), slower


def main(arguments=None):
    arguments = parse_arguments(arguments)
    quick = os.environ.get("BENCH_QUICK", "0") not in ("", "0")
    effort = QUICK if quick else LOOK if arguments.rounds > 3 else FULL
    cores = len(os.sched_getaffinity(0))
    if os.getloadavg()[0] > 0.5:
        say(f"warning: load average {os.getloadavg()[0]:.2f}: something else runs here, and the spread will show it")
    with tempfile.TemporaryDirectory(prefix="gradstep-bench-") as folder:
        plain = pathlib.Path(folder)
        unpack(arguments.data_dir, plain)
        sides = []
        for build in (arguments.base, arguments.head):
            benches = all_benches(build, cores, effort, plain, arguments.data_dir)
            sides.append({name: bench for name, bench in benches.items() if arguments.only in name})
        rates = measure(*sides, 1 if quick else arguments.rounds)
    table, slower = judge(rates, arguments.threshold)
    print(table)
    if slower:
        print(
            f"gradstep: slower than base by more than {arguments.threshold:.0%}: {', '.join(slower)}", file=sys.stderr
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

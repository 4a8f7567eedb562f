"""`make bench`: gradstep and its peers, interleaved in one run; median, spread and ratios as JSON and a Markdown table.

First each peer finds its best options (threads, workers, variant), then each round runs all of them, case by case.
BENCH_QUICK=1 makes a smoke run of under a minute, in fp32 only, whose numbers mean little.
A complete run writes bench/results/<date>-<machine>.json and docs/performance_table.md; any other only prints.
--saves measures only what saves cost, and puts that into a complete result that is there already.
"""

import argparse
import datetime
import gzip
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

import neighbours
import peers
import report

ROOT = pathlib.Path(__file__).resolve().parent.parent
FULL = peers.Effort(seconds=3.0, warmup_windows=100)
LOOK = peers.Effort(seconds=1.0, warmup_windows=30)
QUICK = peers.Effort(seconds=0.3, warmup_windows=5)


def say(text):
    print(text, file=sys.stderr, flush=True)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gradstep", type=pathlib.Path, default=ROOT / "build" / "gradstep")
    parser.add_argument("--bench-dir", type=pathlib.Path, default=ROOT / "build" / "bench")
    parser.add_argument("--data-dir", type=pathlib.Path, default=pathlib.Path("/usr/share/datasets/fashion-mnist"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", help="names with commas between; all but python_compiled otherwise")
    parser.add_argument("--cases", help='names with commas between, such as "32x4 fp32,128x1 bf16"; all otherwise')
    parser.add_argument("--compile", action="store_true", help="measure torch.compile too")
    parser.add_argument(
        "--neighbours", metavar="COUNTS", help='measure beside so many busy loops only, such as "0,1,2"; prints a table'
    )
    parser.add_argument("--saves", type=pathlib.Path, metavar="RESULT", help="measure saves only, into this result")
    parser.add_argument(
        "--save-dir", type=pathlib.Path, help="folder on the disk to save to; the temporary one otherwise"
    )
    parser.add_argument("--results", type=pathlib.Path, help="folder for the result as JSON")
    parser.add_argument("--table", type=pathlib.Path, help="file for the Markdown table")
    arguments = parser.parse_args()
    arguments.quick = os.environ.get("BENCH_QUICK", "0") not in ("", "0")
    if not (arguments.quick or arguments.peers or arguments.cases or arguments.saves or arguments.neighbours):
        arguments.results = arguments.results or ROOT / "bench" / "results"
        arguments.table = arguments.table or ROOT / "docs" / "performance_table.md"
    if arguments.rounds < 3 and not arguments.quick:
        parser.error("--rounds: at least 3, for a median and a spread")
    return arguments


def unpack(data_dir, folder):
    """Uncompressed IDX files, which LibTorch's own data set wants."""
    for packed in sorted(data_dir.glob("*-ubyte.gz")):
        with gzip.open(packed) as source, open(folder / packed.stem, "wb") as target:
            shutil.copyfileobj(source, target)
    for plain in data_dir.glob("*-ubyte"):
        shutil.copy(plain, folder)
    if not (folder / "train-images-idx3-ubyte").exists():
        raise SystemExit(f"{data_dir}: no IDX files there; name their folder with --data-dir")


def output_of(*command):
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def cpu_model():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def machine():
    import torch

    return {
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "commit": output_of("git", "rev-parse", "--short", "HEAD"),
        "changed_files": len(output_of("git", "status", "--porcelain").splitlines()),
        "load_at_start": round(os.getloadavg()[0], 2),
    }


def chosen_peers(arguments, cores):
    chosen = peers.all_peers(arguments.gradstep, arguments.bench_dir, cores)
    if arguments.compile:
        chosen.append(peers.compiled_peer(cores))
    if arguments.peers:
        names = arguments.peers.split(",")
        unknown = set(names) - {peer.name for peer in chosen}
        if unknown:
            raise SystemExit(f"--peers {','.join(sorted(unknown))}: there are {', '.join(p.name for p in chosen)}")
        names += [peer.options_of for peer in chosen if peer.name in names and peer.options_of]
        chosen = [peer for peer in chosen if peer.name in names]
    for peer in chosen:
        if not os.access(peer.command[0], os.X_OK):
            raise SystemExit(f"{peer.command[0]}: no such program; build the target gradstep_bench first")
    return chosen


def chosen_jobs(arguments, cores):
    """(case, peer) pairs, case by case, so that what is compared runs close together."""
    cases = [case for case in peers.all_cases() if case.precision == "fp32" or not arguments.quick]
    if arguments.cases:
        names = arguments.cases.split(",")
        cases = [case for case in peers.all_cases() if case.name in names]
        if len(cases) != len(names):
            known = ", ".join(case.name for case in peers.all_cases())
            raise SystemExit(f"--cases {arguments.cases}: there are {known}")
    chosen = chosen_peers(arguments, cores)
    return [(case, peer) for case in cases for peer in chosen if case in peer.cases]


def best_options(jobs, data_dir, quick):
    """For each job the options with the highest rate in two short looks; a quick run takes the first ones as they are. A machine has slow
    minutes: the second looks come after all the first ones."""
    looks = {job: [0.0 for _ in job[1].candidates] for job in jobs}
    for _ in range(0 if quick else 2):
        for (case, peer), rates in looks.items():
            for i, options in enumerate(peer.candidates if len(rates) > 1 else ()):
                rates[i] = max(rates[i], peer.measure(case, options, LOOK, data_dir)["samples_per_s"])
    best = {}
    for (case, peer), rates in looks.items():
        if peer.options_of:
            best[case, peer] = next(
                best[known] for known in best if (known[0], known[1].name) == (case, peer.options_of)
            )
        else:
            best[case, peer] = peer.candidates[rates.index(max(rates))]
        say(f"{case.name:12} {peer.name:16} with {' '.join(best[case, peer])}")
    return best


def measure_rounds(jobs, options, arguments, data_dir):
    """rates[case name][peer name] = one result a round. Every second round runs backwards, against a drift."""
    rates = {}
    effort = QUICK if arguments.quick else FULL
    num_rounds = 1 if arguments.quick else arguments.rounds
    for number in range(num_rounds):
        for case, peer in jobs if number % 2 == 0 else reversed(jobs):
            result = peer.measure(case, options[case, peer], effort, data_dir)
            rates.setdefault(case.name, {}).setdefault(peer.name, []).append(result)
            say(
                f"round {number + 1}/{num_rounds} {case.name:12} {peer.name:16} {result['samples_per_s']:12,.0f} samples/s"
            )
    return rates


def measure_start_up(arguments):
    """Start-up of the program beside Python's import of torch, in turns."""
    rounds = []
    for _ in range(1 if arguments.quick else max(5, arguments.rounds)):
        times = peers.start_up(arguments.gradstep, arguments.data_dir)
        rounds.append({**times, "import_torch_s": peers.import_torch()})
    return rounds


def measure_saves(arguments, about):
    """What saves cost, ours and torch.save in turns, with the machine as it was then."""
    rounds = []
    for number in range(1 if arguments.quick else max(5, arguments.rounds)):
        num_saves = 1 if arguments.quick else 4
        rounds.append(
            peers.save_costs(
                arguments.bench_dir, about["cores"], num_saves, arguments.save_dir, backwards=number % 2 == 1
            )
        )
        say(f"round {number + 1} of saves")
    return {"date": now(), "machine": about, "rounds": rounds}


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


def add_saves(arguments, about):
    """Saves are measured anew; the rest of the result stays as it was, and the table is written from both."""
    if not arguments.saves.is_file():
        raise SystemExit(f"--saves {arguments.saves}: no such result; a complete run writes one first")
    result = json.loads(arguments.saves.read_text())
    result["saves"] = measure_saves(arguments, about)
    table = report.table(result)
    print("\n".join(report.save_rows(result)))
    if arguments.quick:
        return
    arguments.saves.write_text(json.dumps(result, indent=1) + "\n")
    (arguments.table or ROOT / "docs" / "performance_table.md").write_text(table)


def write(result, table, arguments):
    if arguments.table:
        arguments.table.write_text(table)
        say(f"written: {arguments.table}")
    if arguments.results:
        words = re.findall(r"[a-z0-9]+", result["machine"]["cpu"].lower())
        path = arguments.results / f"{result['date'][:10]}-{'-'.join(words)}-{result['machine']['cores']}-cores.json"
        arguments.results.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(result, indent=1) + "\n")
        say(f"written: {path}")


def main():
    arguments = parse_arguments()
    about = machine()
    if about["load_at_start"] > 0.5 and not arguments.quick:
        say(f"warning: load average {about['load_at_start']}: something else runs here, and the numbers will show it")
    if arguments.saves:
        add_saves(arguments, about)
        return
    jobs = chosen_jobs(arguments, about["cores"])
    with tempfile.TemporaryDirectory(prefix="gradstep-bench-") as folder:
        data_dir = pathlib.Path(folder)
        unpack(arguments.data_dir, data_dir)
        if arguments.neighbours:
            counts = [int(count) for count in arguments.neighbours.split(",")]
            effort, rounds = (QUICK, 1) if arguments.quick else (LOOK, arguments.rounds)
            rates = neighbours.measure(jobs, about["cores"], counts, rounds, effort, data_dir, say)
            print(neighbours.table(rates, counts))
            return
        options = best_options(jobs, data_dir, arguments.quick)
        rates = measure_rounds(jobs, options, arguments, data_dir)
    with_gradstep = any(peer.name == "gradstep" for _, peer in jobs)
    result = {
        "date": now(),
        "quick": arguments.quick,
        "machine": about,
        "options": {f"{case.name} {peer.name}": chosen for (case, peer), chosen in options.items()},
        "rates": rates,
        "start_up": measure_start_up(arguments) if with_gradstep else [],
        "saves": measure_saves(arguments, about) if with_gradstep else {},
    }
    table = report.table(result)
    print(table)
    write(result, table, arguments)


if __name__ == "__main__":
    main()

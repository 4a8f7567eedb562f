"""The programs that are measured: how each is called, with which options, and how its rate is read."""

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from stats import steady_rate

HERE = pathlib.Path(__file__).resolve().parent
RUN_TIMEOUT_SECONDS = 300
WINDOW_RATE_GUESS = 300  # windows/s, only to size the first run of gradstep


@dataclasses.dataclass(frozen=True)
class Case:
    """One window in so many micro-batches, in one precision."""

    batch_size: int
    grad_accum_steps: int
    precision: str

    @property
    def name(self):
        return f"{self.batch_size}x{self.grad_accum_steps} {self.precision}"

    def flags(self):
        return [
            "--batch-size", str(self.batch_size), "--grad-accum-steps", str(self.grad_accum_steps),
            "--precision", self.precision,
        ]  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Effort:
    """How long a measurement takes."""

    seconds: float
    warmup_windows: int


@dataclasses.dataclass(frozen=True, eq=False)
class Peer:
    """A program that prints one JSON line. candidates: option lists, of which the best is found before the rounds."""

    name: str
    command: tuple
    cases: tuple
    candidates: tuple
    options_of: str = ""  # the peer whose best options are taken, where both must run alike

    def measure(self, case, options, effort, data_dir):
        flags = ["--data-dir", str(data_dir), "--warmup-windows", str(effort.warmup_windows)]
        flags += ["--seconds", str(effort.seconds)]
        return json.loads(run([*self.command, *case.flags(), *flags, *options]).splitlines()[-1])


@dataclasses.dataclass(frozen=True, eq=False)
class Gradstep(Peer):
    """The program itself, as a user runs it; its rate is read from metrics.jsonl."""

    def measure(self, case, options, effort, data_dir, windows_per_s=None):
        if windows_per_s is None:  # a first look tells how many windows fill the time
            first = self.measure(case, options, effort, data_dir, WINDOW_RATE_GUESS / effort.seconds)
            windows_per_s = first["samples_per_s"] / (case.batch_size * case.grad_accum_steps)
        num_windows = effort.warmup_windows + max(20, round(windows_per_s * effort.seconds))
        with tempfile.TemporaryDirectory(prefix="gradstep-bench-") as folder:
            output = pathlib.Path(folder) / "run"
            flags = ["--data-dir", str(data_dir), "--max-steps", str(num_windows), "--eval-interval", "0"]
            flags += ["--warmup-steps", str(min(100, num_windows // 2))]
            run([*self.command, "train", *case.flags(), *flags, *options, "-o", str(output)])
            rows = read_rows(output)
        windows = [row for row in rows if "samples_per_s" in row]
        return {
            "name": self.name,
            "samples_per_s": steady_rate(rows, effort.warmup_windows),
            "windows": len(windows) - effort.warmup_windows,
            "warmup_windows": effort.warmup_windows,
            "loss": windows[-1]["loss"],
        }


def environment():
    """Programs run without our own variables, so that a user's settings do not reach a measurement."""
    return {key: value for key, value in os.environ.items() if not key.startswith(("GRADSTEP_", "OMP_", "MKL_"))}


def run(command):
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=RUN_TIMEOUT_SECONDS)
    if done.returncode != 0:
        raise RuntimeError(f"exit {done.returncode}: {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def read_rows(output):
    return [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]


def thread_counts(cores):
    """1, 2, 4 ... up to the cores, and the cores themselves."""
    counts = {cores}
    count = 1
    while count < cores:
        counts.add(count)
        count *= 2
    return sorted(counts)


def all_cases():
    shapes = ((32, 4), (128, 1))
    return tuple(Case(*shape, precision) for precision in ("fp32", "bf16") for shape in shapes)


def options_for_threads(cores, *rest):
    return [["--threads", str(threads), *rest] for threads in thread_counts(cores)]


def all_peers(gradstep, bench_dir, cores):
    """Ours and the others', in the order in which a round runs them."""
    cases = all_cases()
    fp32 = tuple(case for case in cases if case.precision == "fp32")
    python = sys.executable
    best_variants = [
        options
        for variant in ("", "floats", "functional", "floats+functional")
        for options in options_for_threads(cores, "--variant", variant)
    ]
    loader_options = [
        options for workers in (0, 1, 2) for options in options_for_threads(cores, "--workers", str(workers))
    ]
    loop_options = [
        options for matmul in ("torch", "onednn") for options in options_for_threads(cores, "--matmul", matmul)
    ]
    by_threads = tuple(options_for_threads(cores))
    return [
        Gradstep("gradstep", (str(gradstep),), cases, by_threads),
        Peer("python_best", (python, str(HERE / "peer_python_best.py")), cases, tuple(best_variants)),
        Peer("libtorch", (str(bench_dir / "peer_libtorch"),), fp32, tuple(loader_options)),
        Peer("matmul_bound", (str(bench_dir / "matmul_bound"),), cases, by_threads),
        Peer("bare_loop", (str(bench_dir / "bare_loop"),), cases, tuple(loop_options)),
        Peer("engine_loop", (str(bench_dir / "engine_loop"),), cases, (), options_of="bare_loop"),
        Peer("python_plain", (python, str(HERE / "peer_python_plain.py")), fp32[:1], by_threads),
    ]


def compiled_peer(cores):
    """torch.compile is reported beside the others: it needs a compiler at run time and tens of seconds to warm up."""
    options = options_for_threads(cores, "--variant", "floats+functional+compile")
    return Peer("python_compiled", (sys.executable, str(HERE / "peer_python_best.py")), all_cases()[:2], tuple(options))


def start_up(gradstep, data_dir):
    """Seconds from process start to the first row of metrics.jsonl and to the exit of a run of one update."""
    with tempfile.TemporaryDirectory(prefix="gradstep-bench-") as folder:
        output = pathlib.Path(folder) / "run"
        rows = output / "metrics.jsonl"
        command = [str(gradstep), "train", "--data-dir", str(data_dir), "--max-steps", "1", "--warmup-steps", "0"]
        start = time.perf_counter()
        process = subprocess.Popen(
            [*command, "-o", str(output)], env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        first_row = None
        while process.poll() is None:
            if first_row is None and rows.exists() and rows.stat().st_size > 0:
                first_row = time.perf_counter() - start
            time.sleep(0.001)
        whole = time.perf_counter() - start
        if process.returncode != 0:
            raise RuntimeError(f"exit {process.returncode}: {' '.join(command)}\n{process.stderr.read().decode()}")
    return {"first_update_s": first_row or whole, "exit_s": whole}


def import_torch():
    """Seconds that `python -c "import torch"` takes."""
    start = time.perf_counter()
    run([sys.executable, "-c", "import torch"])
    return time.perf_counter() - start


def save_costs(bench_dir, cores, num_saves, folder, backwards):
    """A save of 100 MB by our Checkpointer and by torch.save, one after the other, as seconds in lists and numbers."""
    commands = {
        "save_stall": [str(bench_dir / "save_stall")],
        "torch_save": [sys.executable, str(HERE / "peer_torch_save.py")],
    }
    costs = {}
    for name, command in reversed(commands.items()) if backwards else commands.items():
        with tempfile.TemporaryDirectory(prefix="gradstep-bench-", dir=folder) as place:
            flags = ["--threads", str(cores), "--saves", str(num_saves), "--dir", place]
            costs[name] = json.loads(run([*command, *flags]).splitlines()[-1])
    return costs

"""Kills a run by SIGKILL again and again, takes it up each time, and compares its end with that of an unbroken one, bit for bit."""

import json
import pathlib
import random
import subprocess
import time

from program import rows, run, start

TIMES = {"samples_per_s", "time_data", "time_step", "time_eval", "memory", "seconds"}


def numbers(folder):
    """Window and evaluation rows of a run, without times and events."""
    return [{k: v for k, v in row.items() if k not in TIMES} for row in rows(folder) if "event" not in row]


def checkpoints(folder):
    return sorted(path.name for path in (pathlib.Path(folder) / "checkpoints").glob("step-*"))


def tensors_of(path):
    """What a safetensors file holds, its metadata (which names the build) left out: the table of tensors and their bytes."""
    data = pathlib.Path(path).read_bytes()
    size = int.from_bytes(data[:8], "little")
    table = json.loads(data[8 : 8 + size])
    table.pop("__metadata__", None)
    return table, data[8 + size :]


def tensor_files(folder):
    """{name: tensors} of the newest checkpoint."""
    newest = pathlib.Path(folder) / "checkpoints" / checkpoints(folder)[-1]
    return {path.name: tensors_of(path) for path in sorted(newest.glob("*.safetensors"))}


def newest_update(folder):
    names = checkpoints(folder)
    return int(names[-1][5:]) if names else 0


def first_difference(folder, reference):
    """What differs between two finished runs, as text; empty: nothing."""
    ours, theirs = tensor_files(folder), tensor_files(reference)
    if ours.keys() != theirs.keys():
        return f"files {sorted(ours)} against {sorted(theirs)}"
    for name in theirs:
        if ours[name] != theirs[name]:
            return f"{name} of the last checkpoint"
    for a, b in zip(numbers(folder), numbers(reference), strict=False):
        if a != b:
            return f"row {a} against {b}"
    if len(numbers(folder)) != len(numbers(reference)):
        return f"{len(numbers(folder))} rows against {len(numbers(reference))}"
    return ""


def kill_at_random(arguments, folder, num_kills, save_interval, seed, max_seconds=1200):
    """Starts `arguments` until the run into `folder` has ended; kills the first `num_kills` starts: a third of them at a random moment
    of the start, the others a random moment after one or two more checkpoints. Returns how many kills hit."""
    draw = random.Random(seed)
    end = time.monotonic() + max_seconds
    kills = 0
    while time.monotonic() < end:
        process = start(*arguments, "--resume", "auto", stdout=subprocess.DEVNULL)
        if kills < num_kills:
            goal = newest_update(folder) + save_interval * draw.choice([0, 1, 1, 2])
            if draw.random() < 1 / 3:
                time.sleep(draw.uniform(0, 0.35))
            else:
                while process.poll() is None and newest_update(folder) < goal:
                    time.sleep(0.001)
                time.sleep(draw.uniform(0, 0.03))
            if process.poll() is None:
                process.kill()
                process.communicate()
                kills += 1
                continue
        _, err = process.communicate(timeout=max(1, end - time.monotonic()))
        if process.returncode != 0 or err:
            raise AssertionError(f"after {kills} kills: code {process.returncode}, {err}")
        return kills
    raise AssertionError(f"not finished in {max_seconds} s after {kills} kills, at update {newest_update(folder)}")


def unbroken(arguments):
    result = run(*arguments, timeout=600)
    if result.returncode != 0:
        raise AssertionError(result.stderr)

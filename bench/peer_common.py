"""What the Python peers share: their flags, the data, the schedule, the clock that leaves warm-up out, the JSON line."""

import argparse
import json
import math
import time

import numpy
import torch


def parse_arguments(description):
    """The flags that every peer has; the same as those of the C++ programs."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data-dir", required=True, help="folder with uncompressed IDX files")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--grad-accum-steps", type=int, default=4)
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--warmup-windows", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--variant", default="")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    return arguments


def read_training_set(folder):
    """Pictures (N, 784) uint8 and labels (N) int64 from uncompressed IDX files."""
    pictures = numpy.fromfile(f"{folder}/train-images-idx3-ubyte", numpy.uint8)[16:].reshape(-1, 784)
    labels = numpy.fromfile(f"{folder}/train-labels-idx1-ubyte", numpy.uint8)[8:]
    return torch.from_numpy(pictures), torch.from_numpy(labels).long()


def learning_rate(k, peak=1e-3, warmup=100, total=1407):
    """Warm-up, then half a cosine over three epochs; a run that lasts longer goes on learning a little."""
    if k <= warmup:
        return peak * k / warmup
    if k >= total:
        return peak * 1e-3
    return peak * (1 + math.cos(math.pi * (k - warmup) / (total - warmup))) / 2


class SteadyClock:
    """Counts samples from the end of the warm-up on. Call tick() after each window until it returns False."""

    def __init__(self, warmup_windows, seconds, now=time.perf_counter):
        self.warmup_windows = warmup_windows
        self.limit_seconds = seconds
        self.now = now
        self.start = now()
        self.windows_seen = self.windows = self.samples = 0
        self.seconds = 0.0

    def tick(self, samples):
        self.windows_seen += 1
        now = self.now()
        if self.windows_seen <= self.warmup_windows:
            self.start = now
            return True
        self.windows += 1
        self.samples += samples
        self.seconds = now - self.start
        return self.seconds < self.limit_seconds

    @property
    def samples_per_s(self):
        return self.samples / self.seconds


def print_result(name, arguments, clock, loss):
    result = {
        "name": name,
        "samples_per_s": round(clock.samples_per_s, 1),
        "windows": clock.windows,
        "warmup_windows": arguments.warmup_windows,
        "threads": arguments.threads,
        "seconds": round(clock.seconds, 3),
        "loss": round(loss, 4),
    }
    print(json.dumps(result), flush=True)

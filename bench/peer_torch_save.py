"""What a save costs a Python loop: torch.save of model and optimizer into a temporary file, made durable and renamed."""

import argparse
import json
import os
import time

import torch

BATCH = 32
UPDATES_BETWEEN = 5


def save(state, folder):
    """As a careful user does it: the old file stays until the new one is durable."""
    with open(f"{folder}/.checkpoint.pt.tmp", "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.rename(f"{folder}/.checkpoint.pt.tmp", f"{folder}/checkpoint.pt")
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(descriptor)
    os.close(descriptor)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--hidden", type=int, default=10486)
    parser.add_argument("--saves", type=int, default=5)
    parser.add_argument("--dir", required=True)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    layers = torch.nn.Linear(784, arguments.hidden), torch.nn.Linear(arguments.hidden, 10)
    model = torch.nn.Sequential(layers[0], torch.nn.ReLU(), layers[1])
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    inputs, targets = torch.rand(BATCH, 784), torch.randint(10, (BATCH,))

    def update():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()

    seconds = []
    for _ in range(arguments.saves + 1):
        for _ in range(UPDATES_BETWEEN):
            update()
        start = time.perf_counter()
        save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, arguments.dir)
        seconds.append(time.perf_counter() - start)
    size = os.path.getsize(f"{arguments.dir}/checkpoint.pt")
    print(json.dumps({"name": "torch_save", "bytes": size, "first_s": seconds[0], "durable_s": seconds[1:]}))


if __name__ == "__main__":
    main()

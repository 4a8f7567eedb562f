"""The reference training: gradstep's update written in plain PyTorch, to compare runs of the program with, row by row.

Every rule here is stated in docs/design.md; nothing of gradstep is used. Run it by hand, or call train(Settings(...)).
"""

import argparse
import dataclasses
import gzip
import json
import math
import pathlib

import numpy
import torch

DEFAULT_DATA_DIR = "/usr/share/datasets/fashion-mnist"
EVALUATION_BATCH = 1000
SCALE_FLOOR = 1.0


@dataclasses.dataclass(frozen=True)
class Settings:
    """The flags of `gradstep train` that a reference run understands, with the same names and defaults."""

    data_dir: str = DEFAULT_DATA_DIR
    hidden: int = 256
    epochs: int | None = None
    max_steps: int | None = None
    batch_size: int = 32
    grad_accum_steps: int = 4
    opt: str = "adamw"
    lr: float = 1e-3
    min_lr: float = 0.0
    weight_decay: float = 1e-4
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    momentum: float = 0.9
    nesterov: bool = False
    decay_all: bool = False
    sched: str = "cosine"
    warmup_steps: int = 100
    clip_grad: float = 0.0
    label_smoothing: float = 0.0
    precision: str = "fp32"
    seed: int = 0
    threads: int = 1

    @property
    def global_batch(self):
        return self.batch_size * self.grad_accum_steps


@dataclasses.dataclass
class Result:
    """Rows as in metrics.jsonl, the weights before the first update, the trained module and what it reaches."""

    rows: list
    initial: dict
    module: torch.nn.Module
    val_loss: float
    val_acc: float


class Mlp(torch.nn.Module):
    """784 - hidden - 10 with torch's own initialisation, constructed right after manual_seed."""

    def __init__(self, hidden):
        super().__init__()
        self.fc1 = torch.nn.Linear(28 * 28, hidden)
        self.fc2 = torch.nn.Linear(hidden, 10)

    def forward(self, pixels):
        return self.fc2(torch.relu(self.fc1(pixels)))


def read_idx(path):
    """A gzipped IDX file of bytes as a uint8 tensor of its shape."""
    raw = gzip.decompress(pathlib.Path(path).read_bytes())
    if raw[:3] != b"\x00\x00\x08":
        raise ValueError(f"{path}: not an IDX file of bytes")
    num_dims = raw[3]
    shape = numpy.frombuffer(raw, ">u4", num_dims, offset=4).astype(int)
    values = numpy.frombuffer(raw, numpy.uint8, offset=4 + 4 * num_dims).reshape(shape)
    return torch.from_numpy(values.copy())


def read_part(data_dir, part):
    """("train" | "t10k") -> pictures (N, 784) uint8 and labels (N) int64."""
    folder = pathlib.Path(data_dir)
    pictures = read_idx(folder / f"{part}-images-idx3-ubyte.gz")
    labels = read_idx(folder / f"{part}-labels-idx1-ubyte.gz")
    return pictures.flatten(1), labels.long()


def normalise(pictures):
    """Bytes to floats in the documented order of operations."""
    return ((pictures.float() / 255) - 0.5) / 0.5


def schedule(k, total, settings):
    """Learning rate of update k (from 1) of total."""
    peak, low, warmup = settings.lr, settings.min_lr, settings.warmup_steps
    if k <= warmup:
        return peak * k / warmup
    if settings.sched == "constant":
        return peak
    if k >= total:
        return low
    if settings.sched == "linear":
        return low + (peak - low) * (total - k) / (total - warmup)
    return low + (peak - low) * (1 + math.cos(math.pi * (k - warmup) / (total - warmup))) / 2


def total_updates(num_samples, settings):
    """(T, epochs): the updates the schedule plans, and how many epochs the data lasts (None: as many as it takes)."""
    epochs = settings.epochs
    if epochs is None and settings.max_steps is None:
        epochs = 1
    bounds = [settings.max_steps]
    if epochs is not None:
        bounds.append(epochs * math.ceil(num_samples / settings.global_batch))
    total = min(bound for bound in bounds if bound is not None)
    if settings.warmup_steps > total:
        raise ValueError(f"a warm-up of {settings.warmup_steps} does not fit into {total} updates")
    return total, epochs


def make_optimizer(module, settings):
    """Fused AdamW or SGD; parameters with fewer than two dimensions do not decay."""
    decayed, plain = [], []
    for parameter in module.parameters():
        (decayed if parameter.ndim >= 2 or settings.decay_all else plain).append(parameter)
    groups = [{"params": decayed, "weight_decay": settings.weight_decay}, {"params": plain, "weight_decay": 0.0}]
    groups = [group for group in groups if group["params"]]
    if settings.opt == "adamw":
        betas = (settings.beta1, settings.beta2)
        return torch.optim.AdamW(groups, lr=settings.lr, betas=betas, eps=settings.eps, fused=True)
    if settings.opt == "sgd":
        return torch.optim.SGD(
            groups, lr=settings.lr, momentum=settings.momentum, nesterov=settings.nesterov, fused=True
        )
    raise ValueError(f"opt {settings.opt}: adamw or sgd")


def autocast(settings):
    dtype = {"fp32": torch.bfloat16, "bf16": torch.bfloat16, "fp16": torch.float16}[settings.precision]
    return torch.autocast("cpu", dtype=dtype, enabled=settings.precision != "fp32")


def windows(num_samples, settings):
    """(epoch, ids) of each window for ever: slices of the epoch's permutation, the last one with its real size."""
    epoch = 0
    while True:
        generator = torch.Generator().manual_seed(settings.seed + epoch)
        order = torch.randperm(num_samples, generator=generator)
        for ids in order.split(settings.global_batch):
            yield epoch, ids
        epoch += 1


class Update:
    """One update: gradients of the window summed over its micro-batches, unscaled, checked, clipped, applied."""

    def __init__(self, module, settings):
        self.module = module
        self.settings = settings
        self.parameters = list(module.parameters())
        self.optimizer = make_optimizer(module, settings)
        self.scaler = torch.amp.GradScaler("cpu", enabled=settings.precision == "fp16")

    def accumulate(self, pictures, labels):
        """Backward of loss_sum * scale / W for each micro-batch; returns the mean loss of the window."""
        divisor = len(labels)
        loss_total = 0.0
        size = self.settings.batch_size
        for inputs, targets in zip(pictures.split(size), labels.split(size)):
            with autocast(self.settings):
                outputs = self.module(normalise(inputs))
            loss_sum = torch.nn.functional.cross_entropy(
                outputs.float(), targets, reduction="sum", label_smoothing=self.settings.label_smoothing
            )
            (self.scaler.scale(loss_sum) / divisor).backward()
            loss_total += loss_sum.item()
        return loss_total / divisor

    def apply(self, lr):
        """Unscale, norm, clip, optimizer, scaler. Returns (gradient norm, applied)."""
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        self.scaler.unscale_(self.optimizer)
        if self.settings.clip_grad > 0:
            norm = torch.nn.utils.clip_grad_norm_(self.parameters, self.settings.clip_grad)
        else:
            norm = torch.nn.utils.get_total_norm([parameter.grad for parameter in self.parameters])
        applied = math.isfinite(norm.item())
        if self.scaler.is_enabled():
            self.scaler.step(self.optimizer)  # looks at each element itself
            self.scaler.update()
            if self.scaler.get_scale() < SCALE_FLOOR:
                self.scaler.update(SCALE_FLOOR)
        elif applied:
            self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return norm.item(), applied


@torch.no_grad()
def evaluate(module, pictures, labels, settings):
    """(mean loss without smoothing, accuracy) over real samples, under the autocast of the training."""
    loss_total, hits = 0.0, 0
    module.eval()
    for inputs, targets in zip(pictures.split(EVALUATION_BATCH), labels.split(EVALUATION_BATCH)):
        with autocast(settings):
            outputs = module(normalise(inputs))
        loss_total += torch.nn.functional.cross_entropy(outputs.float(), targets, reduction="sum").item()
        hits += (outputs.argmax(1) == targets).sum().item()
    module.train()
    return loss_total / len(labels), hits / len(labels)


def train(settings, train_part=None, test_part=None):
    """A whole run; the data may be handed in to save reading it again."""
    torch.set_num_threads(settings.threads)
    pictures, labels = train_part or read_part(settings.data_dir, "train")
    total, epochs = total_updates(len(labels), settings)

    torch.manual_seed(settings.seed)
    module = Mlp(settings.hidden)
    initial = {name: value.clone() for name, value in module.state_dict().items()}
    update = Update(module, settings)

    rows, applied, skipped = [], 0, 0
    for epoch, ids in windows(len(labels), settings):
        if applied == total or epoch == epochs:
            break
        lr = schedule(applied + 1, total, settings)
        scale = update.scaler.get_scale()
        loss = update.accumulate(pictures[ids], labels[ids])
        norm, done = update.apply(lr)
        applied += done
        skipped += not done
        rows.append(
            {
                "window": len(rows) + 1,
                "update": applied,
                "epoch": epoch,
                "loss": loss,
                "lr": lr,
                "grad_norm": norm,
                "loss_scale": scale,
                "skipped": not done,
                "skipped_total": skipped,
                "divisor": len(ids),
            }
        )
    val_loss, val_acc = evaluate(module, *(test_part or read_part(settings.data_dir, "t10k")), settings)
    return Result(rows, initial, module, val_loss, val_acc)


def json_row(row):
    """A JSON line; numbers that are not finite become the strings that gradstep writes."""
    names = {math.inf: "Infinity", -math.inf: "-Infinity"}
    finite = {
        key: value if not isinstance(value, float) or math.isfinite(value) else names.get(value, "NaN")
        for key, value in row.items()
    }
    return json.dumps(finite, allow_nan=False) + "\n"


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for field in dataclasses.fields(Settings):
        flag = "--" + field.name.replace("_", "-")
        if field.type is bool:
            parser.add_argument(flag, action="store_true")
        else:
            kind = field.type if isinstance(field.type, type) else int
            parser.add_argument(flag, type=kind, default=field.default)
    parser.add_argument("--output", help="rows as JSON lines go here instead of to stdout")
    arguments = vars(parser.parse_args())
    output = arguments.pop("output")
    return Settings(**arguments), output


def main():
    settings, output = parse_arguments()
    result = train(settings)
    last = {"update": result.rows[-1]["update"], "val_loss": result.val_loss, "val_acc": result.val_acc}
    text = "".join(json_row(row) for row in result.rows + [last])
    if output:
        pathlib.Path(output).write_text(text)
    else:
        print(text, end="")


if __name__ == "__main__":
    main()

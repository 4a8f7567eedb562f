"""Peer: the best hand-written Python loop we can make: data in one tensor, fused AdamW, no needless synchronisation.

--variant is a list joined by '+': "floats" normalises all pictures before the run instead of window by window;
"functional" calls F.linear instead of modules; "compile" gives the forward and the loss to torch.compile.
"""

import torch
import torch.nn.functional as F
from peer_common import SteadyClock, learning_rate, parse_arguments, print_result, read_training_set

LOG_INTERVAL = 20


def normalise(pictures):
    return pictures.to(torch.float32).div_(255).sub_(0.5).div_(0.5)


def make_loss(model, variant):
    """Pictures and labels -> summed loss."""
    if "functional" in variant:
        w1, b1, w2, b2 = model.parameters()

        def loss(pictures, labels):
            output = F.linear(torch.relu(F.linear(pictures, w1, b1)), w2, b2)
            return F.cross_entropy(output, labels, reduction="sum")
    else:

        def loss(pictures, labels):
            return F.cross_entropy(model(pictures), labels, reduction="sum")

    return torch.compile(loss) if "compile" in variant else loss


def main():
    arguments = parse_arguments(__doc__)
    variant = arguments.variant.split("+")
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(784, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
    loss_function = make_loss(model, variant)
    decayed = [parameter for parameter in model.parameters() if parameter.ndim > 1]
    plain = [parameter for parameter in model.parameters() if parameter.ndim < 2]
    groups = [{"params": decayed, "weight_decay": 1e-4}, {"params": plain, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1e-3, fused=True)
    pictures, labels = read_training_set(arguments.data_dir)
    floats = "floats" in variant
    if floats:
        pictures = normalise(pictures)
    autocast = torch.autocast("cpu", torch.bfloat16, enabled=arguments.precision == "bf16")
    window, micro = arguments.batch_size * arguments.grad_accum_steps, arguments.batch_size
    if "compile" in variant:  # each size of micro-batch is compiled before anything is timed
        for size in {micro, (len(labels) % window) % micro or micro}:
            inputs = pictures[:size] if floats else normalise(pictures[:size])
            with autocast:
                loss = loss_function(inputs, labels[:size])
            loss.backward()
        optimizer.zero_grad(set_to_none=True)

    clock = SteadyClock(arguments.warmup_windows, arguments.seconds)
    updates = 0
    while True:
        for ids in torch.randperm(len(labels)).split(window):
            size = len(ids)
            inputs, targets = pictures.index_select(0, ids), labels.index_select(0, ids)
            if not floats:
                inputs = normalise(inputs)
            losses = []
            for micro_inputs, micro_targets in zip(inputs.split(micro), targets.split(micro)):
                with autocast:
                    loss = loss_function(micro_inputs, micro_targets)
                (loss / size).backward()
                losses.append(loss.detach())
            updates += 1
            lr = learning_rate(updates)
            for group in optimizer.param_groups:
                group["lr"] = lr
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            if (
                updates == 1 or updates % LOG_INTERVAL == 0
            ):  # the loss is looked at now and then, as a log line needs it
                last_loss = torch.stack(losses).sum().item() / size
            if not clock.tick(size):
                print_result("python_compiled" if "compile" in variant else "python_best", arguments, clock, last_loss)
                return


if __name__ == "__main__":
    main()

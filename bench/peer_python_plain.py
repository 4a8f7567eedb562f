"""Peer: the plain Python script that most people write: a Dataset of single pictures, DataLoader workers, a scheduler."""

import torch
from peer_common import SteadyClock, learning_rate, parse_arguments, print_result, read_training_set


class Pictures(torch.utils.data.Dataset):
    """One picture at a time, normalised when it is asked for."""

    def __init__(self, folder):
        self.pictures, self.labels = read_training_set(folder)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        picture = self.pictures[index].float().div(255).sub(0.5).div(0.5)
        return picture, self.labels[index]


def main():
    arguments = parse_arguments(__doc__)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(784, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
    criterion = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: learning_rate(step + 1) / 1e-3)
    loader = torch.utils.data.DataLoader(
        Pictures(arguments.data_dir),
        batch_size=arguments.batch_size,
        shuffle=True,
        num_workers=arguments.workers,
        persistent_workers=arguments.workers > 0,
    )
    clock = SteadyClock(arguments.warmup_windows, arguments.seconds)
    accumulation = arguments.grad_accum_steps
    while True:
        samples, running_loss = 0, 0.0
        for index, (pictures, labels) in enumerate(loader):
            with torch.autocast("cpu", torch.bfloat16, enabled=arguments.precision == "bf16"):
                loss = criterion(model(pictures), labels) / accumulation
            loss.backward()
            running_loss += loss.item()
            samples += len(labels)
            if (index + 1) % accumulation == 0 or index + 1 == len(loader):
                optimizer.step()
                optimizer.zero_grad()
                scheduler.step()
                if not clock.tick(samples):
                    print_result("python_plain", arguments, clock, running_loss)
                    return
                samples, running_loss = 0, 0.0


if __name__ == "__main__":
    main()

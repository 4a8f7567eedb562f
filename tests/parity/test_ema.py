"""--ema against torch.optim.swa_utils.AveragedModel, fed with the program's own weights after each update: equal bits."""

import pathlib
import sys
import unittest

import safetensors.torch
import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from program import ProgramTest, run

DECAY = 0.9
UPDATES = 6


class Weights(torch.nn.Module):
    """The tensors of a model file as parameters, whatever their names."""

    def __init__(self, tensors):
        super().__init__()
        self.names = sorted(tensors)
        self.values = torch.nn.ParameterList(tensors[name] for name in self.names)


class Ema(ProgramTest):
    def weights_after(self, updates):
        """Weights and averages of a run that ends there. With a constant learning rate longer runs begin the same."""
        name = f"run{updates}"
        flags = ["--max-steps", updates, "--sched", "constant", "--lr", "0.05", "--ema", DECAY, "--eval-interval", 0]
        result = run(*self.small(*flags, name=name))
        # A run that is shorter than what the average looks back on is warned of.
        self.assertEqual((result.returncode, "averages over" in result.stderr), (0, updates < 10), result)
        folder = self.folder / name
        return [safetensors.torch.load_file(folder / f) for f in ("model.safetensors", "model-ema.safetensors")]

    def test_every_average_has_the_bits_of_averaged_model(self):
        averaged = None
        for updates in range(1, UPDATES + 1):
            weights, averages = self.weights_after(updates)
            model = Weights(weights)
            if averaged is None:
                averaged = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(DECAY))
            averaged.update_parameters(model)
            self.assertEqual(sorted(averages), model.names)
            for name, expected in zip(model.names, averaged.module.values):
                self.assertTrue(torch.equal(averages[name], expected), f"{name} after {updates} updates")
        self.assertFalse(all(torch.equal(averages[name], weights[name]) for name in weights))


if __name__ == "__main__":
    unittest.main()

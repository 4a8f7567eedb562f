"""Tensors of every type and odd shape or name for the tests that exchange files with Python, and the C++ side of these."""

import os
import subprocess

import torch


def tensors(dtypes):
    generator = torch.Generator().manual_seed(0)
    result = {}
    for i, dtype in enumerate(dtypes):
        noise = torch.rand(3 + i, 5, generator=generator) * 100
        result[f"layer{i}.weight"] = noise.to(dtype)
        result[f"layer{i}.bias"] = noise[0, 0].to(dtype).clone()
    result["empty"] = torch.zeros(0, 7)
    result['odd "name" \\ \n \u00e9\u4e2d'] = torch.tensor([float("nan"), float("inf"), -0.0])
    return result


def same(a, b):
    return (
        a.dtype == b.dtype
        and a.shape == b.shape
        and torch.equal(a.reshape(-1).view(torch.uint8), b.reshape(-1).view(torch.uint8))
    )


def run_io_test(suite, folder):
    """The C++ test that reads a file in the folder and writes another."""
    subprocess.run(
        [os.path.join(os.environ["GRADSTEP_BUILD_DIR"], "tests", "gradstep_io_test"), f"--gtest_filter={suite}.*"],
        check=True,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "GRADSTEP_INTEROP_DIR": folder},
    )

# Python's safetensors and ours read each other's files: Python writes, the C++ test copies, both files and all tensors are equal.
import os
import subprocess
import tempfile

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

DTYPES = [
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.uint16,
    torch.float16,
    torch.bfloat16,
    torch.int32,
    torch.uint32,
    torch.float32,
    torch.complex64,
    torch.float64,
    torch.int64,
    torch.uint64,
    torch.float8_e5m2,
    torch.float8_e4m3fn,
]


def tensors():
    generator = torch.Generator().manual_seed(0)
    result = {}
    for i, dtype in enumerate(DTYPES):
        noise = torch.rand(3 + i, 5, generator=generator) * 100
        result[f"layer{i}.weight"] = noise.to(dtype)
        result[f"layer{i}.bias"] = noise[0, 0].to(dtype).clone()
    result["empty"] = torch.zeros(0, 7)
    result['odd "name" \\ \u00e9\u4e2d'] = torch.tensor([float("nan"), float("inf"), -0.0])
    return result


def main():
    program = os.path.join(os.environ["GRADSTEP_BUILD_DIR"], "tests", "gradstep_io_test")
    expected = tensors()
    with tempfile.TemporaryDirectory() as folder:
        inside, outside = (os.path.join(folder, name) for name in ("in.safetensors", "out.safetensors"))
        save_file(expected, inside, metadata={"format": "pt"})
        subprocess.run(
            [program, "--gtest_filter=SafetensorsInterop.*"],
            check=True,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "GRADSTEP_INTEROP_DIR": folder},
        )
        with open(inside, "rb") as a, open(outside, "rb") as b:
            assert a.read() == b.read(), "the files differ"
        found = load_file(outside)
        with safe_open(outside, "pt") as opened:
            assert opened.metadata() == {"format": "pt"}
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert found[name].dtype == tensor.dtype and found[name].shape == tensor.shape, name
        assert torch.equal(found[name].reshape(-1).view(torch.uint8), tensor.reshape(-1).view(torch.uint8)), name


main()

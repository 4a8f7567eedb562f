# torch.load opens our .pt files under its defaults: Python writes a safetensors file, the C++ test converts it, all tensors are equal.
import os
import subprocess
import tempfile

import torch
from safetensors.torch import save_file

DTYPES = [
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
]


def tensors():
    generator = torch.Generator().manual_seed(0)
    result = {}
    for i, dtype in enumerate(DTYPES):
        noise = torch.rand(3 + i, 5, generator=generator) * 100
        result[f"layer{i}.weight"] = noise.to(dtype)
        result[f"layer{i}.bias"] = noise[0, 0].to(dtype).clone()
    for i in range(1000):
        result[f"blocks.{i}.weight"] = torch.rand(2, 3, generator=generator)
    result["empty"] = torch.zeros(0, 7)
    result['odd "name" \\ \n \u00e9\u4e2d'] = torch.tensor([float("nan"), float("inf"), -0.0])
    return result


def convert(folder):
    program = os.path.join(os.environ["GRADSTEP_BUILD_DIR"], "tests", "gradstep_io_test")
    subprocess.run(
        [program, "--gtest_filter=PtFileInterop.*"],
        check=True,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "GRADSTEP_INTEROP_DIR": folder},
    )


def same(a, b):
    return (
        a.dtype == b.dtype
        and a.shape == b.shape
        and torch.equal(a.reshape(-1).view(torch.uint8), b.reshape(-1).view(torch.uint8))
    )


def main():
    expected = tensors()
    with tempfile.TemporaryDirectory() as folder:
        inside, outside = (os.path.join(folder, name) for name in ("in.safetensors", "out.pt"))
        save_file(expected, inside, metadata={"alias:head.weight": "layer8.weight"})
        convert(folder)
        expected["head.weight"] = expected["layer8.weight"]
        for options in ({}, {"mmap": True}, {"map_location": "cpu"}, {"weights_only": False}):
            found = torch.load(outside, **options)
            assert type(found) is dict, type(found)
            assert found.keys() == expected.keys(), options
            for name, tensor in expected.items():
                assert same(found[name], tensor), (name, options)
                assert not found[name].requires_grad and found[name].is_contiguous(), name
            shared = found["head.weight"].untyped_storage().data_ptr()
            assert shared == found["layer8.weight"].untyped_storage().data_ptr()
            assert sum(t.untyped_storage().data_ptr() == shared for t in found.values()) == 2
        # The module's own loader takes it, and torch.save of it can be read again.
        linear = torch.nn.Linear(5, 11)
        assert linear.load_state_dict({"weight": found["layer8.weight"], "bias": found["layer8.weight"][:, 0]})


main()

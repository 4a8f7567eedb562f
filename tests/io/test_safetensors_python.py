# Python's safetensors and ours read each other's files: Python writes, the C++ test copies, both files and all tensors are equal.
import os
import pathlib
import sys
import tempfile

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from interop import run_io_test, same, tensors  # noqa: E402

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


def main():
    expected = tensors(DTYPES)
    with tempfile.TemporaryDirectory() as folder:
        inside, outside = (os.path.join(folder, name) for name in ("in.safetensors", "out.safetensors"))
        save_file(expected, inside, metadata={"format": "pt"})
        run_io_test("SafetensorsInterop", folder)
        with open(inside, "rb") as a, open(outside, "rb") as b:
            assert a.read() == b.read(), "the files differ"
        found = load_file(outside)
        with safe_open(outside, "pt") as opened:
            assert opened.metadata() == {"format": "pt"}
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert same(found[name], tensor), name


main()

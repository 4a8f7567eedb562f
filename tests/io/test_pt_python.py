# torch.load opens our .pt files under its defaults: Python writes a safetensors file, the C++ test converts it, all tensors are equal.
import os
import pathlib
import sys
import tempfile

import torch
from safetensors.torch import save_file

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from interop import run_io_test, same, tensors  # noqa: E402

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


def main():
    expected = tensors(DTYPES)
    expected |= {f"blocks.{i}.weight": torch.full((2, 3), i / 7) for i in range(1000)}
    with tempfile.TemporaryDirectory() as folder:
        inside, outside = (os.path.join(folder, name) for name in ("in.safetensors", "out.pt"))
        save_file(expected, inside, metadata={"alias:head.weight": "layer8.weight"})
        run_io_test("PtFileInterop", folder)
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

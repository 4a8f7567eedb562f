# A stranger's Python reads our checkpoints: the lines of docs/checkpoint_format.md are run on one that the C++ test wrote.
import os
import pathlib
import subprocess
import tempfile

import torch


def documented_lines():
    page = pathlib.Path(os.environ["GRADSTEP_SOURCE_DIR"], "docs", "checkpoint_format.md").read_text()
    section = page.split("## Reading one with Python")[1].split("\n## ")[0]
    return "\n".join(line[4:] for line in section.splitlines() if line.startswith("    "))


def main():
    program = os.path.join(os.environ["GRADSTEP_BUILD_DIR"], "tests", "gradstep_checkpoint_test")
    with tempfile.TemporaryDirectory() as folder:
        run = os.path.join(folder, "runs", "first")
        os.makedirs(run)
        subprocess.run(
            [program, "--gtest_filter=CheckpointInterop.*"],
            check=True,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "GRADSTEP_INTEROP_DIR": run},
        )
        os.chdir(folder)
        found = {}
        exec(documented_lines(), found)
        os.chdir("/")
    assert found["state"]["engine"]["updates"] == 120
    assert found["state"]["next"]["number"] == 2**63 - 1
    assert found["names"] == ["fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"]
    expected = (torch.arange(6, dtype=torch.float32) * 0.37 + 0.5).sin().reshape(2, 3)
    assert torch.allclose(found["model"]["fc1.weight"], expected)
    assert found["optimizer"]["fc1.weight.step"].shape == ()
    assert found["optimizer"].keys() == {tensor["name"] for tensor in found["state"]["optimizer"]}


main()

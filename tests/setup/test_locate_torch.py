"""Which LibTorch the configuration takes, what it says of it, and what it refuses, with folders that only look like one."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

CMAKE_DIR = pathlib.Path(__file__).resolve().parents[2] / "cmake"
PROJECT = """\
cmake_minimum_required(VERSION 3.25)
project(locate LANGUAGES NONE)
set(GRADSTEP_TORCH_RECORDED_ROOT "@recorded@")
include("@cmake_dir@/GradstepTorch.cmake")
get_target_property(libraries gradstep_torch INTERFACE_LINK_LIBRARIES)
message(NOTICE "links: ${libraries}")
"""


class Locate(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work = pathlib.Path(folder.name)
        # The cmake files lie in a tree of their own, so that the .venv of this repository is not found.
        (self.work / "tree").mkdir()
        (self.work / "tree" / "cmake").symlink_to(CMAKE_DIR)
        (self.work / "tree" / "cmake2").mkdir()
        for name in ("GradstepTorch.cmake", "TorchLayout.cmake"):
            (self.work / "tree" / "cmake2" / name).write_text((CMAKE_DIR / name).read_text())

    def wheel(self, name, version):
        root = self.work / name / "torch"
        for path in (
            "lib/libtorch.so",
            "lib/libtorch_cpu.so",
            "lib/libc10.so",
            "share/cmake/Torch/TorchConfig.cmake",
            "__init__.py",
        ):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).touch()
        (root / "version.py").write_text(f"__version__ = '{version}'\n")
        return root

    def python(self, folder, site):
        """A folder with a python3 whose torch is the one in `site`."""
        folder.mkdir(parents=True)
        script = folder / "python3"
        path = f'sys.path.insert(0, "{site}")' if site else 'sys.modules["torch"] = None'
        # The code comes as the last word, behind -c.
        script.write_text(f"#!{sys.executable}\nimport sys\n{path}\nexec(sys.argv[-1])\n")
        script.chmod(0o755)
        return folder

    def configure(self, *settings, recorded="", build="build", **env):
        source = self.work / "source"
        source.mkdir(exist_ok=True)
        text = PROJECT.replace("@recorded@", str(recorded)).replace("@cmake_dir@", str(self.work / "tree" / "cmake2"))
        (source / "CMakeLists.txt").write_text(text)
        clean = {
            k: v for k, v in os.environ.items() if k not in ("CMAKE_PREFIX_PATH", "Torch_DIR", "GRADSTEP_TORCH_ROOT")
        }
        done = subprocess.run(
            ["cmake", "-S", source, "-B", self.work / build, *settings],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            env={**clean, **{k: str(v) for k, v in env.items()}},
        )
        return done.returncode, done.stdout

    def assert_takes(self, root, version, origin, result):
        code, text = result
        self.assertEqual(code, 0, text)
        self.assertIn(f"gradstep: LibTorch {version} in {root} (from {origin})\n", text)
        self.assertIn(f"links: {root}/lib/libtorch.so;{root}/lib/libtorch_cpu.so;{root}/lib/libc10.so\n", text)

    def assert_refuses(self, result, *words):
        code, text = result
        self.assertNotEqual(code, 0, text)
        lines = [line for line in text.splitlines() if line.startswith("gradstep error: ")]
        self.assertEqual(len(lines), 1, text)
        for word in words:
            self.assertIn(word, lines[0])

    def path_with(self, folder):
        return f"{folder}:{os.environ['PATH']}"

    def test_what_is_named_counts_first(self):
        a, b, c, d = (self.wheel(name, f"2.13.{i}") for i, name in enumerate("abcd"))
        PATH = self.path_with(self.python(self.work / "bin", d.parent))
        env = {"PATH": PATH, "Torch_DIR": b / "share/cmake/Torch", "CMAKE_PREFIX_PATH": f"{self.work}:{c}"}
        self.assert_takes(
            a, "2.13.0", "GRADSTEP_TORCH_ROOT", self.configure(f"-DGRADSTEP_TORCH_ROOT={a}", build="1", **env)
        )
        self.assert_takes(b, "2.13.1", "Torch_DIR", self.configure(build="2", **env))
        del env["Torch_DIR"]
        self.assert_takes(c, "2.13.2", "CMAKE_PREFIX_PATH", self.configure(build="3", **env))
        self.assert_takes(d, "2.13.3", "the active python3", self.configure(build="4", PATH=PATH))
        recorded = self.configure(build="5", recorded=a, **env)
        self.assert_takes(a, "2.13.0", "what gradstep was built with", recorded)

    def test_a_venv_serves_when_the_active_python_has_none_or_an_old_one(self):
        new, old = self.wheel("new", "2.13.0"), self.wheel("old", "2.4.0")
        venv = self.python(self.work / "tree" / ".venv" / "bin", new.parent)
        (venv / "python3").rename(venv / "python")
        none = self.path_with(self.python(self.work / "bin-none", None))
        self.assert_takes(new, "2.13.0", ".venv", self.configure(build="1", PATH=none))
        result = self.configure(build="2", PATH=self.path_with(self.python(self.work / "bin-old", old.parent)))
        self.assert_takes(new, "2.13.0", ".venv", result)
        self.assertIn(f"gradstep: not used: LibTorch 2.4.0 in {old} is too old", result[1])

    def test_a_build_folder_keeps_what_it_found(self):
        first, second = self.wheel("first", "2.13.0"), self.wheel("second", "2.12.0")
        self.configure(PATH=self.path_with(self.python(self.work / "bin1", first.parent)))
        again = self.configure(PATH=self.path_with(self.python(self.work / "bin2", second.parent)))
        self.assert_takes(first, "2.13.0", "an earlier configuration", again)

    def test_an_old_one_is_refused(self):
        old = self.wheel("old", "2.10.1+cu128")
        for name in ("Torch_DIR", "CMAKE_PREFIX_PATH", "GRADSTEP_TORCH_ROOT"):
            result = self.configure(build=name, **{name: old})
            self.assert_refuses(
                result, "2.10.1+cu128", str(old), "2.11 or newer", "pip install torch==", f"(it came from {name})"
            )
        result = self.configure(PATH=self.path_with(self.python(self.work / "bin", old.parent)))
        self.assert_refuses(
            result, "2.10.1+cu128", str(old), "pip install torch==", "(it came from the active python3)"
        )

    def test_a_folder_without_one_is_refused(self):
        (self.work / "empty").mkdir()
        result = self.configure(f"-DGRADSTEP_TORCH_ROOT={self.work / 'empty'}")
        self.assert_refuses(result, f"no LibTorch in {self.work / 'empty'}", "GRADSTEP_TORCH_ROOT")

    def test_none_at_all(self):
        PATH = self.path_with(self.python(self.work / "bin", None))
        self.assert_refuses(self.configure(PATH=PATH), "LibTorch not found", "make build")


if __name__ == "__main__":
    unittest.main()

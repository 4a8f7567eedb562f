"""gradstep as a library of other projects: find_package from an install tree, and add_subdirectory."""

# run alone: it compiles.

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("GRADSTEP_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
BUILD = pathlib.Path(os.environ.get("GRADSTEP_BUILD_DIR", SOURCE / "build"))
USER = SOURCE / "tests" / "e2e" / "install"
# As on a machine without the development packages of libcurl and OpenSSL.
NO_DOWNLOADER = ("-DCMAKE_DISABLE_FIND_PACKAGE_CURL=ON", "-DCMAKE_DISABLE_FIND_PACKAGE_OpenSSL=ON")
EXAMPLE = SOURCE / "examples" / "01_minimal.cpp"


def run(*words, code=0, env=None):
    """Output of a command that must leave with `code`."""
    done = subprocess.run(
        [str(word) for word in words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env={**os.environ, **(env or {})},
    )
    if done.returncode != code:
        raise AssertionError(f"{' '.join(map(str, words))} left with {done.returncode}, not {code}:\n{done.stdout}")
    return done.stdout


def cache_entry(name):
    """Value of a variable of the build's own configuration; empty where it has none."""
    for line in (BUILD / "CMakeCache.txt").read_text().splitlines():
        if line.startswith(name + ":"):
            return line.split("=", 1)[1]
    return ""


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.work = pathlib.Path(cls.folder.name)
        cls.prefix = cls.work / "prefix"
        run("cmake", "--install", BUILD, "--prefix", cls.prefix)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def configure(self, name, *settings, code=0, env=None):
        launcher = cache_entry("GRADSTEP_CCACHE")
        words = [f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}"] if launcher and "NOTFOUND" not in launcher else []
        return run(
            "cmake", "-G", "Ninja", "-S", USER, "-B", self.work / name, *words, *settings, code=code, env=env
        )  # fmt: skip

    def test_find_package(self):
        installed = (f"-Dgradstep_ROOT={self.prefix}", "-DMODE=installed")
        text = self.configure("small", *installed, *NO_DOWNLOADER, f"-DPROGRAM={USER / 'user.cpp'}")
        self.assertRegex(text, r"gradstep: LibTorch \S+ in \S+ \(from what gradstep was built with\)")
        run("cmake", "--build", self.work / "small")
        self.assertEqual(
            run(self.work / "small" / "user_program"),
            "gradstep 0.1.0 [4, 7) the samples that go into aten::addmm with parameter bias (the root module), asserts on\n",
        )
        libraries = run("readelf", "-d", self.work / "small" / "user_program")
        self.assertNotIn("libcurl", libraries)
        self.assertNotIn("libcrypto", libraries)

    def test_r53_the_downloader_is_a_component(self):
        settings = (f"-Dgradstep_ROOT={self.prefix}", f"-DPROGRAM={USER / 'downloader.cpp'}", "-DCOMPONENTS=download")
        text = self.configure("lacking", *settings, *NO_DOWNLOADER, code=1)
        self.assertIn("the component download needs the development packages of libcurl and OpenSSL", text)
        self.configure("downloader", *settings)
        run("cmake", "--build", self.work / "downloader")
        text = run(self.work / "downloader" / "user_program", self.work / "none")
        self.assertIn("cannot download http://127.0.0.1:1/none", text)

    def test_find_package_builds_the_example(self):
        installed = (f"-Dgradstep_ROOT={self.prefix}", "-DMODE=installed")
        self.configure("example", *installed, f"-DPROGRAM={EXAMPLE}")
        run("cmake", "--build", self.work / "example")
        self.assertTrue(run(self.work / "example" / "user_program").strip())

    def test_another_libtorch_is_refused(self):
        for version, word in (("2.10.0", "is too old"), ("2.99.0", "was built with LibTorch")):
            other = self.work / f"torch-{version}"
            (other / "lib").mkdir(parents=True)
            (other / "lib" / "libtorch_cpu.so").touch()
            (other / "version.py").write_text(f"__version__ = '{version}'\n")
            text = self.configure(
                f"refused-{version}",
                f"-Dgradstep_ROOT={self.prefix}",
                f"-DPROGRAM={USER / 'user.cpp'}",
                f"-DGRADSTEP_TORCH_ROOT={other}",
                code=1,
            )
            lines = [line for line in text.splitlines() if line.startswith("gradstep error: ")]
            self.assertEqual(len(lines), 1, text)
            self.assertIn(version, lines[0])
            self.assertIn(word, lines[0])
            self.assertIn("GRADSTEP_TORCH_ROOT", lines[0])

    def test_the_program_runs_from_the_install_tree(self):
        program = self.prefix / "bin" / "gradstep"
        self.assertIn("0.1.0", run(program, "--version", env={"LD_LIBRARY_PATH": ""}))
        dynamic = run("readelf", "-d", program)
        paths = [line for line in dynamic.splitlines() if "RUNPATH" in line or "RPATH" in line]
        self.assertEqual(len(paths), 1, dynamic)
        self.assertNotIn(str(BUILD), paths[0])

    def test_r53_add_subdirectory(self):
        torch_root = cache_entry("GRADSTEP_TORCH_ROOT") or cache_entry("GRADSTEP_TORCH_FOUND")
        settings = (
            "-DMODE=subdirectory",
            f"-DGRADSTEP_SOURCE={SOURCE}",
            f"-DPROGRAM={USER / 'user.cpp'}",
            f"-DGRADSTEP_TORCH_ROOT={torch_root}",
            "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
            *NO_DOWNLOADER,
        )
        # The build type is the user's: unset it stays, with one warning.
        text = self.configure("sub", *settings)
        self.assertEqual(text.count("gradstep: CMAKE_BUILD_TYPE is not set"), 1, text)
        self.assertNotIn("gradstep: CMAKE_BUILD_TYPE", self.configure("sub", *settings, "-DCMAKE_BUILD_TYPE=Debug"))
        commands = json.loads((self.work / "sub" / "compile_commands.json").read_text())
        for entry in commands:
            self.assertEqual("-DNDEBUG" in entry["command"], not entry["file"].endswith("user.cpp"), entry)
        user = next(entry["command"] for entry in commands if entry["file"].endswith("user.cpp"))
        self.assertNotRegex(user, r" -(W|O|f|D(?!USE_DISTRIBUTED|USE_C10D_|GRADSTEP_))")
        # The whole library takes minutes: its own object files are the main build's affair. One that needs no torch shows that its settings
        # hold, and the user's own that the public side does.
        targets = run("ninja", "-C", self.work / "sub", "-t", "targets", "all")
        for source in ("base/version.cpp.o", "user.cpp.o"):
            outputs = [line.split(":")[0] for line in targets.splitlines() if line.split(":")[0].endswith(source)]
            self.assertEqual(len(outputs), 1, f"{source}: {outputs}")
            run("ninja", "-C", self.work / "sub", outputs[0])
        self.assertIn("gradstep/libgradstep.a", targets)
        for absent in ("gradstep_program", "gradstep_step_test"):
            self.assertNotIn(absent, targets)


if __name__ == "__main__":
    unittest.main()

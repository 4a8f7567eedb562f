"""tools/syntax_check.py: the same flags, no object file, and a file that is refused fails."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))

import syntax_check  # noqa: E402


class SyntaxCheck(unittest.TestCase):
    def test_flags_stay_and_the_output_goes(self):
        words = [
            "env",
            "CCACHE_NOHASHDIR=1",
            "/usr/bin/ccache",
            "/usr/bin/clang++",
            "-DX=1",
            "-O2",
            "-o",
            "a.o",
            "-c",
            "/s/a.cpp",
        ]
        self.assertEqual(
            syntax_check.syntax_only(words), ["/usr/bin/clang++", "-DX=1", "-O2", "-fsyntax-only", "/s/a.cpp"]
        )

    def check(self, *sources):
        with tempfile.TemporaryDirectory() as folder:
            entries = []
            for number, source in enumerate(sources):
                file = pathlib.Path(folder, f"{number}.cpp")
                file.write_text(source)
                entries.append(
                    {"directory": folder, "file": str(file), "command": f"c++ -Wall -Werror -o a.o -c {file}"}
                )
            pathlib.Path(folder, "compile_commands.json").write_text(json.dumps(entries))
            done = subprocess.run(
                [sys.executable, TOOLS / "syntax_check.py", folder, "2"], capture_output=True, text=True, check=False
            )
            self.assertEqual(list(pathlib.Path(folder).glob("*.o")), [])
            return done

    def test_files_that_are_refused_are_named(self):
        done = self.check("int a() { return 1; }\n")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        done = self.check("int a() { return 1; }\n", "int b() { int unused = 1; return 2; }\n")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"refused: \S+/1[.]cpp\n.*2 files checked in \d+ s, 1 refused")


if __name__ == "__main__":
    unittest.main()

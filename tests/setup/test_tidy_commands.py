"""tools/tidy_commands.py turns what gcc compiled into what clang-tidy understands."""

import json
import pathlib
import shlex
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "tidy_commands.py"


class TidyCommands(unittest.TestCase):
    def translate(self, command):
        with tempfile.TemporaryDirectory() as folder:
            source, target = pathlib.Path(folder, "in.json"), pathlib.Path(folder, "out.json")
            source.write_text(json.dumps([{"directory": "/b", "file": "/s/a.cpp", "command": command}]))
            subprocess.run([sys.executable, TOOL, source, target, "/s/pch.h"], check=True)
            (entry,) = json.loads(target.read_text())
            self.assertEqual((entry["directory"], entry["file"]), ("/b", "/s/a.cpp"))
            return shlex.split(entry["command"])

    def test_precompiled_header_and_launcher(self):
        command = (
            "env CCACHE_BASEDIR=/s CCACHE_NOHASHDIR=1 /usr/bin/ccache /usr/bin/c++ '-DNAME=\"a b\"' -O2 -Winvalid-pch "
            "-include /b/CMakeFiles/x.dir/cmake_pch.hxx -o a.o -c /s/a.cpp"
        )
        wanted = ["/usr/bin/c++", '-DNAME="a b"', "-O2", "-include", "/s/pch.h", "-o", "a.o", "-c", "/s/a.cpp"]
        self.assertEqual(self.translate(command), wanted)

    def test_other_includes_stay(self):
        command = "/usr/bin/c++ -include /s/other.h -DX=1 -c /s/a.cpp"
        self.assertEqual(self.translate(command), command.split())


if __name__ == "__main__":
    unittest.main()

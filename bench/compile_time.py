#!/usr/bin/env python3
"""What our headers cost those who include them, and a changed file those who work on gradstep.

Usage: compile_time.py [ROUNDS]. Needs a build folder with tests. Compiles one-line files by turns, as an example is compiled, without
optimization or output; then changes one source of a room and measures the build of its tests and their run.
"""

import json
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parents[1]
BUILD = SOURCE / "build"
sys.path.insert(0, str(SOURCE / "tools"))

import syntax_check  # noqa: E402

HEADERS = ("torch/torch.h", "gradstep/gradstep.h", "gradstep/app/app.h", "gradstep/step/engine.h")
CHANGED = ("src/step/clip.cpp", "gradstep_step_test", "^step[.]Clip", "^step[.]")


def seconds(command, **options):
    start = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, **options)
    return time.monotonic() - start


def compile_times(rounds):
    entries = json.loads((BUILD / "compile_commands.json").read_text())
    entry = next(entry for entry in entries if entry["file"].endswith("examples/03_own_program.cpp"))
    words = syntax_check.syntax_only(shlex.split(entry["command"]))
    words.remove(entry["file"])
    header = words.index("-include")  # users have no precompiled header
    del words[header : header + 2]
    times = {header: [] for header in HEADERS}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            for number, header in enumerate(HEADERS):
                path = pathlib.Path(folder, f"{number}.cpp")
                path.write_text(f"#include <{header}>\n")
                times[header].append(seconds([*words, str(path)], cwd=entry["directory"]))
    return times


def incremental():
    """Seconds to build the tests of a room after a change in one of its sources, to run those of the source, and those of the room."""
    source, target, own, room = CHANGED
    path = SOURCE / source
    text = path.read_text()
    build = ["cmake", "--build", str(BUILD), "--target", target]
    environment = {**os.environ, "CCACHE_RECACHE": "1"}
    seconds(build)
    try:
        path.write_text(text + "// changed\n")
        tests = ["ctest", "--test-dir", str(BUILD), "-j2", "-R"]
        return seconds(build, env=environment), seconds([*tests, own]), seconds([*tests, room])
    finally:
        path.write_text(text)
        seconds(build)


def main(rounds="5"):
    times = compile_times(int(rounds))
    base = times[HEADERS[0]]
    for header, own in times.items():
        ratio = statistics.median(a / b for a, b in zip(own, base))
        print(f"{header:24} {statistics.median(own):5.1f} s  {ratio:.2f} of {HEADERS[0]}")
    build, own, room = incremental()
    print(
        f"{CHANGED[0]} changed: built in {build:.1f} s; its tests run in {own:.1f} s, those of its room in {room:.1f} s"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])

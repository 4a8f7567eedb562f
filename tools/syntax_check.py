#!/usr/bin/env python3
"""Runs the compiler of a configured build folder over every source with -fsyntax-only, several at once.

Usage: syntax_check.py BUILD JOBS. The precompiled header must have been built. Prints what the compiler says, and
leaves with 1 if it refuses a file.
"""

import concurrent.futures
import json
import pathlib
import shlex
import subprocess
import sys
import time


def syntax_only(words):
    """A compile command without launcher and output: the same flags, no object file."""
    while "=" in words[0] or pathlib.PurePath(words[0]).name in ("env", "ccache"):
        words = words[1:]
    result = []
    position = 0
    while position < len(words):
        if words[position] == "-o":
            position += 2
            continue
        result.append("-fsyntax-only" if words[position] == "-c" else words[position])
        position += 1
    return result


def check(entry):
    command = syntax_only(shlex.split(entry["command"]))
    done = subprocess.run(command, cwd=entry["directory"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return entry["file"], done.returncode, done.stdout


def main(build, num_jobs):
    start = time.monotonic()
    entries = json.loads((pathlib.Path(build) / "compile_commands.json").read_text())
    entries = [entry for entry in entries if "cmake_pch.hxx" not in entry["file"]]
    refused = 0
    with concurrent.futures.ThreadPoolExecutor(int(num_jobs)) as pool:
        for file, code, output in pool.map(check, entries):
            if output.strip():
                print(output, end="", flush=True)
            if code != 0:
                print(f"refused: {file}", flush=True)
                refused += 1
    print(f"gradstep: {len(entries)} files checked in {time.monotonic() - start:.0f} s, {refused} refused")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

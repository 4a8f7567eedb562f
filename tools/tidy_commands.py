#!/usr/bin/env python3
"""Writes a copy of compile_commands.json that clang-tidy can use: gcc's precompiled header becomes a plain include.

Usage: tidy_commands.py IN OUT HEADER, where HEADER is what the precompiled header was made from.
"""

import json
import pathlib
import shlex
import sys

# Flags that clang does not know, and a warning that means more to clang than to gcc, whose build decides about warnings.
DROPPED = {"-Winvalid-pch", "-fpch-preprocess", "-Wconversion"}


def without_pch(words, header):
    """Compiler words without launcher and precompiled header. `-include X.hxx` becomes `-include <header>`."""
    result = []
    position = 0
    # The launcher: "env NAME=VALUE ... ccache" before the compiler.
    while position < len(words) and (
        "=" in words[position] or pathlib.PurePath(words[position]).name in ("env", "ccache")
    ):
        position += 1
    while position < len(words):
        word = words[position]
        if word == "-include" and words[position + 1].endswith("cmake_pch.hxx"):
            result += ["-include", header]
            position += 2
            continue
        if word not in DROPPED:
            result.append(word)
        position += 1
    return result


def main(source, target, header):
    header = str(pathlib.Path(header).resolve())
    entries = json.loads(pathlib.Path(source).read_text())
    for entry in entries:
        entry["command"] = shlex.join(without_pch(shlex.split(entry["command"]), header))
    pathlib.Path(target).write_text(json.dumps(entries))


if __name__ == "__main__":
    main(*sys.argv[1:])

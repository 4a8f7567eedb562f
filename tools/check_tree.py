#!/usr/bin/env python3
"""Checks the rules of the tree that no compiler checks: layering, lengths, ASCII, comments, no marks left.

Prints one line a finding, path:line: what, and leaves with 1 when there is one. Without arguments it reads the files
git knows (tracked, and new ones that are not ignored) in the working folder; --root names another folder, whose files
are all read.
"""

import argparse
import pathlib
import re
import subprocess
import sys

UMBRELLA = "include/gradstep/gradstep.h"
MAX_LINES = 400
MAX_FUNCTION_LINES = 60
# Functions that must be read at one sight.
ONE_SCREEN = {"src/step/engine.cpp": "Engine::Impl::step", "src/run/trainer.cpp": "Trainer::Impl::run"}

ROOM_FILE = pathlib.Path(__file__).resolve().parent.parent / "src" / "rooms.txt"


def read_rooms(text):
    """room -> (the library it is part of, the rooms it may include), from the text of src/rooms.txt."""
    rows = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    return {room: (library, set(below)) for room, library, *below in rows}


LIBRARY_AND_BELOW = read_rooms(ROOM_FILE.read_text())
ROOMS = {room: below for room, (_, below) in LIBRARY_AND_BELOW.items()}
# The rooms whose public headers stand in UMBRELLA.
CORE = {room for room, (library, _) in LIBRARY_AND_BELOW.items() if library == "gradstep"}
# Literals of the library that may hold a flag: reasons in the rows of metrics.jsonl, whose readers compare them.
FLAGS_IN_ROWS = {"src/report/event_text.cpp": {'"--stop-after"', '"--max-time"'}}
LITERAL = re.compile(r'"(?:[^"\\\n]|\\.)*"')
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
# All that a public header may take from torch: more would cost each user seconds a file.
PUBLIC_TORCH = ("ATen/core/Tensor.h", "c10/")

SLASHES = (".cpp", ".h")
HASHES = (".py", ".sh", ".cmake", ".yml")
NAMED = {"Makefile": "#", "CMakeLists.txt": "#", ".ci/run": "#"}
SOURCE_SUFFIXES = (*SLASHES, *HASHES, ".in")
TEXT_SUFFIXES = (*SOURCE_SUFFIXES, ".md", ".txt", ".toml", ".json")
MARKS = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" * 3, "HA" + "CK"]) + r")\b")
NO_TORCH = "// no torch"  # CMakeLists.txt looks for this line
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')


def room_of(path):
    """src/<room>/... or include/gradstep/<room>/... -> room; None elsewhere."""
    match = re.match(r"(?:src|include/gradstep)/([a-z]+)/", path)
    return match.group(1) if match else None


def included_room(name):
    """Room of an included file: "gradstep/step/engine.h" or the private "step/kernels.h"; None for others."""
    match = re.match(r"(?:gradstep/)?([a-z]+)/", name)
    return match.group(1) if match and match.group(1) in ROOMS else None


def check_includes(path, lines):
    room = room_of(path)
    if room is not None and room not in ROOMS:
        yield 1, f"there is no room {room}; rooms are {', '.join(ROOMS)}"
        return
    public = path.startswith("include/")
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        quote, name = match.groups()
        of_tests = "tests/" in name or name.startswith(("support/", "gtest/", "gmock/"))
        if of_tests and path.startswith(("src/", "include/")):
            yield number, f"{name} belongs to the tests"
        if path.startswith("examples/") and quote == '"' and not name.startswith("gradstep/"):
            yield number, f"{name}: an example shows what users have, gradstep/ and torch/"
        if public and name.startswith(("ATen/", "torch/", "c10/")) and not name.startswith(PUBLIC_TORCH):
            yield (
                number,
                f"{name} is too heavy for a public header: declare what is needed, or use ATen/core/Tensor.h",
            )
        if public and quote == '"' and not name.startswith("gradstep/"):
            yield number, f"{name} is not public"
        other = included_room(name)
        if room is None or other is None or other == room or quote != '"':
            continue
        if other not in ROOMS[room]:
            yield number, f"{room} must not include {name}: includes point only down, see src/rooms.txt"


def check_flags(path, lines):
    """The library has no command line: its texts name an option by its key in backticks, and app prints the flag."""
    if room_of(path) not in CORE or not path.endswith(SLASHES):
        return
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("//"):
            continue
        for literal in LITERAL.findall(line):
            flag = FLAG.search(literal)
            if flag and literal not in FLAGS_IN_ROWS.get(path, ()):
                key = flag.group().removeprefix("--").replace("-", "_")
                yield number, f"a text of the library names the flag {flag.group()}: write `{key}`"


def comment_mark(path):
    name = path.rsplit("/", 1)[-1]
    if path in NAMED or name in NAMED:
        return NAMED.get(path) or NAMED[name]
    if path.endswith(SLASHES):
        return "//"
    return "#" if path.endswith(HASHES) else None


def check_public_comments(path, lines):
    """In a public header each comment is read by users, so it is ///, but for what a class keeps private."""
    if not path.startswith("include/"):
        return
    private_indent = None  # of the "private:" that holds here
    after_pragma = False
    for number, line in enumerate(lines, 1):
        indent = len(line) - len(line.lstrip())
        if re.match(r"\s*private:$", line):
            private_indent = indent
        elif private_indent is not None and line.strip() and indent <= private_indent:
            private_indent = None  # "public:", or the "};" of the class
        after_pragma = after_pragma or line.startswith("#pragma once")
        comment = re.search(r"(?:^|\s)//(?!/)\s*(.*)", line)
        if (
            comment
            and after_pragma
            and private_indent is None
            and not comment.group(1).startswith(("namespace", "clang-format", "NOLINT"))
        ):
            yield number, "a comment on a public declaration is ///, or ///< behind it"


def check_first_lines(path, lines):
    mark = comment_mark(path)
    if mark is None or (path.endswith(".py") and not lines):
        return
    first = lines[1:2] if lines and lines[0].startswith("#!") else lines[:1]
    text = first[0].strip() if first else ""
    if path.endswith(".py") and re.match(r'"""\S', text):
        return
    if not (text.startswith(mark) and len(text) > len(mark) + 1):
        yield 1, "the first lines must say in a comment what this file is"


def check_lines(path, lines):
    if comment_mark(path) and len(lines) > MAX_LINES:
        yield len(lines), f"{len(lines)} lines, over {MAX_LINES}: split it by concept"
    for number, line in enumerate(lines, 1):
        if path.endswith(SLASHES) and re.match(r"// .*\bno torch$", line) and line != NO_TORCH:
            yield (
                number,
                f"{NO_TORCH} needs a line of its own, or it is not seen: put it first, where no reflow reaches it",
            )
        bad = next((c for c in line if ord(c) > 126 or (ord(c) < 32 and c != "\t")), None)
        if bad is not None:
            yield number, f"character U+{ord(bad):04X}: sources and pages are ASCII"
        if line.startswith(("<" * 7 + " ", ">" * 7 + " ")):
            yield number, "a conflict of a merge was left in"
        if comment_mark(path) and MARKS.search(line):
            yield number, f"{MARKS.search(line).group(1)}: finish it or file it"


def function_span(lines, name):
    """(first line, length) of the definition of `name`, from 1; None when it has none. Definitions begin in the first column."""
    head = re.compile(r"^[A-Za-z_].*\b" + re.escape(name) + r"\(")
    for start, line in enumerate(lines):
        if not head.match(line):
            continue
        for end in range(start, len(lines)):
            if lines[end].rstrip().endswith(";") and "{" not in "".join(lines[start : end + 1]):
                break  # only a declaration
            if lines[end].startswith("}"):
                return start + 1, end - start + 1
            if end == start and lines[end].rstrip().endswith("}"):
                return start + 1, 1
    return None


def check_one_screen(path, lines):
    name = ONE_SCREEN.get(path)
    if name is None:
        return
    span = function_span(lines, name)
    if span is None:
        yield 1, f"{name} is not defined here; tell tools/check_tree.py where it went"
    elif span[1] > MAX_FUNCTION_LINES:
        yield span[0], f"{name} has {span[1]} lines, over {MAX_FUNCTION_LINES}: it must be read at one sight"


CHECKS = (check_includes, check_flags, check_public_comments, check_first_lines, check_lines, check_one_screen)


def check_file(path, text):
    """All findings of one file as (line, what). `path` is relative to the root, with /."""
    lines = text.split("\n")
    if lines and lines[-1] == "":
        lines.pop()
    for check in CHECKS:
        yield from check(path, lines)


def check_umbrella(files, text):
    """gradstep.h includes each public header of the library gradstep, and no other. `text` is its content."""
    present = set(re.findall(r'#include "(gradstep/[^"]+)"', text))
    for path in files:
        if path.startswith("include/gradstep/") and path.endswith(".h") and path != UMBRELLA:
            name = path.removeprefix("include/")
            core = room_of(path) is None or room_of(path) in CORE
            if name in present and not core:
                yield 1, f"includes {name}: it is not part of the library gradstep"
            elif core and name not in present:
                yield 1, f"does not include {name}: put it where one reads it"


def tree_files(root, all_files):
    if all_files:
        return sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_file())
    listing = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    return sorted({p for p in listing.split("\0") if p and (root / p).is_file()})


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--root", type=pathlib.Path, help="folder whose files are all read (default: what git knows here)"
    )
    options = parser.parse_args(arguments)
    root = options.root or pathlib.Path(".")
    findings = []
    paths = tree_files(root, options.root is not None)
    checked = [path for path in paths if comment_mark(path) or path.endswith(TEXT_SUFFIXES)]
    for path in checked:
        text = (root / path).read_bytes().decode("utf-8", errors="replace")
        findings += [(path, line, what) for line, what in check_file(path, text)]
        if path == UMBRELLA:
            findings += [(path, line, what) for line, what in check_umbrella(paths, text)]
    for path, line, what in findings:
        print(f"{path}:{line}: {what}")
    if findings:
        print(f"check_tree: {len(findings)} finding(s) in {len(checked)} files", file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())

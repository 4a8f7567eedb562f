"""tools/check_tree.py finds each fault it is there for, and nothing in a tree without one."""

import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "check_tree.py"
spec = importlib.util.spec_from_file_location("check_tree", TOOL)
check_tree = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check_tree)


def findings(path, text):
    return list(check_tree.check_file(path, text))


def source(*lines):
    return "\n".join(["// A file of the tests.", *lines, ""])


class Includes(unittest.TestCase):
    def check(self, path, include, finding):
        found = findings(path, source(f"#include {include}"))
        if finding is None:
            self.assertEqual(found, [], f"{path} may include {include}")
        else:
            self.assertEqual([line for line, _ in found], [2], f"{path} must not include {include}: {found}")
            self.assertIn(finding, found[0][1])

    def test_each_pair_of_rooms(self):
        allowed = {(room, other) for room, others in check_tree.ROOMS.items() for other in others}
        for room in check_tree.ROOMS:
            for other in check_tree.ROOMS:
                wanted = None if room == other or (room, other) in allowed else f"{room} must not include"
                for include in (f'"{other}/part.h"', f'"gradstep/{other}/part.h"'):
                    self.check(f"src/{room}/part.cpp", include, wanted)

    def test_the_order_of_the_design(self):
        below = {
            "io": ["base"],
            "step": ["model", "data", "dist", "io", "base"],
            "run": ["incident", "checkpoint", "report", "step"],
            "checkpoint": ["report", "step"],
            "incident": ["checkpoint"],
            "app": ["config", "run"],
            "commands": ["app"],
            "program": ["commands", "download"],
        }
        for room, others in below.items():
            for other in others:
                self.check(f"src/{room}/a.cpp", f'"gradstep/{other}/b.h"', None)
                self.check(f"src/{other}/a.cpp", f'"gradstep/{room}/b.h"', "includes point only down")
        self.check("src/step/a.cpp", '"gradstep/report/sinks.h"', "includes point only down")
        self.check("src/report/a.cpp", '"gradstep/step/engine.h"', "includes point only down")

    def test_public_headers(self):
        path = "include/gradstep/step/engine.h"
        self.check(path, "<ATen/core/Tensor.h>", None)
        self.check(path, "<torch/torch.h>", "too heavy")
        self.check(path, "<torch/nn/module.h>", "too heavy")
        self.check(path, '"step/private.h"', "is not public")
        self.check("src/step/clip.cpp", "<torch/torch.h>", None)

    def test_tests_stay_out_of_the_library(self):
        self.check("src/step/a.cpp", "<gtest/gtest.h>", "belongs to the tests")
        self.check("src/step/a.cpp", '"support/lin.h"', "belongs to the tests")
        self.check("tests/step/a_test.cpp", '"support/lin.h"', None)

    def test_examples_show_what_users_have(self):
        self.check("examples/a.cpp", '"gradstep/step/engine.h"', None)
        self.check("examples/a.cpp", '"step/private.h"', "what users have")

    def test_unknown_room(self):
        self.assertIn("there is no room utils", findings("src/utils/a.cpp", source())[0][1])


class Flags(unittest.TestCase):
    def check(self, path, line, finding):
        found = findings(path, source(line))
        self.assertEqual([number for number, _ in found], [2] if finding else [], found)
        if finding:
            self.assertIn(finding, found[0][1])

    def test_r51_texts_of_the_library_name_none(self):
        for room in sorted(check_tree.CORE):
            for path in (f"src/{room}/a.cpp", f"src/{room}/a.h"):
                self.check(path, 'fail("lower --max-rollbacks");', "--max-rollbacks: write `max_rollbacks`")
        self.check("src/run/a.cpp", r'fail("say \"no\" to --lr");', "--lr: write `lr`")
        self.check("include/gradstep/run/a.h", 'inline const char* kHint = "--lr";', "--lr: write `lr`")

    def test_what_is_no_flag_passes(self):
        for line in (
            'fail("lower `max_rollbacks`");',
            'fail("a -- b", "step--0001", "x--y", "--");',
            'int x = f("a") - --count + g("b");',
            '// Says "--lr" to nobody.',
            'fail("");  // --lr',
        ):
            self.check("src/run/a.cpp", line, None)

    def test_others_know_flags(self):
        for path in ("src/app/a.cpp", "src/config/a.cpp", "src/program/a.cpp", "tests/run/a_test.cpp"):
            self.check(path, 'fail("lower --lr");', None)

    def test_reasons_in_rows_stay(self):
        self.check("src/report/event_text.cpp", 'return "--stop-after";', None)
        self.check("src/report/event_text.cpp", 'return "--stop-after it";', "--stop-after")
        self.check("src/report/jsonl.cpp", 'return "--stop-after";', "--stop-after")


class Lines(unittest.TestCase):
    def one(self, path, text, finding):
        found = findings(path, text)
        self.assertEqual(len(found), 1, found)
        self.assertIn(finding, found[0][1])

    def test_length(self):
        for path, mark in (
            ("src/io/a.cpp", "//"),
            ("tools/a.sh", "#"),
            ("tests/io/test_a.py", "#"),
            ("cmake/a.cmake", "#"),
        ):
            full = "\n".join([f"{mark} Says what it is."] + ["x"] * (check_tree.MAX_LINES - 1)) + "\n"
            self.assertEqual(findings(path, full), [])
            self.one(path, full + "x\n", "over 400")

    def test_ascii(self):
        self.one("src/io/a.cpp", source("// caf\u00e9"), "U+00E9")
        self.one("docs/a.md", "A dash \u2013 here.\n", "U+2013")
        self.one("src/io/a.cpp", source("int a;\r"), "U+000D")

    def test_first_lines(self):
        for path in (
            "src/io/a.cpp",
            "include/gradstep/io/a.h",
            "tools/a.sh",
            "Makefile",
            "tests/CMakeLists.txt",
            ".ci/run",
        ):
            self.one(path, "int a;\n", "first lines")
            self.one(path, "", "first lines")
        self.one("tools/a.sh", "#!/usr/bin/env bash\necho\n", "first lines")
        self.assertEqual(findings("tools/a.sh", "#!/usr/bin/env bash\n# Does it.\n"), [])
        self.assertEqual(findings("tests/io/test_a.py", '"""Does it."""\n'), [])
        self.assertEqual(findings("tools/a.py", '#!/usr/bin/env python3\n"""Does it."""\n'), [])

    def test_conflicts(self):
        self.one("cmake/a.cmake", "# A file.\n" + "<" * 7 + " HEAD\n", "conflict")
        self.one("docs/a.md", ">" * 7 + " main\n", "conflict")

    def test_no_torch_stands_alone(self):
        self.assertEqual(findings("src/io/a.cpp", "// no torch\n// A file.\n"), [])
        self.assertEqual(findings("src/io/a.cpp", "// A file that has\n// no torch in it.\n"), [])
        self.assertEqual([line for line, _ in findings("src/io/a.cpp", "// A file.\n// Of ours. no torch\n")], [2])

    def test_marks(self):
        for word in ("TO" + "DO", "FIX" + "ME"):
            self.one("src/io/a.cpp", source(f"int a;  // {word}: later"), word)
        self.assertEqual(findings("src/io/a.cpp", source("int methods_TO" + "DOS;")), [])


class OneScreen(unittest.TestCase):
    def engine(self, num_lines):
        body = ["  work();"] * (num_lines - 2)
        return source("StepReport Engine::Impl::step(const Window& window) {", *body, "}", "void Engine::other() {}")

    def test_length(self):
        self.assertEqual(findings("src/step/engine.cpp", self.engine(60)), [])
        found = findings("src/step/engine.cpp", self.engine(61))
        self.assertEqual([line for line, _ in found], [2])
        self.assertIn("Engine::Impl::step has 61 lines", found[0][1])

    def test_a_signature_over_two_lines(self):
        text = source(
            "StepReport Engine::Impl::step(const Window& window,",
            "                        int n) {",
            *["  a();"] * 58,
            "}",
        )
        self.assertIn("has 61 lines", findings("src/step/engine.cpp", text)[0][1])

    def test_it_must_be_found(self):
        self.assertIn("is not defined here", findings("src/step/engine.cpp", source("int a;"))[0][1])
        self.assertIn("Trainer::Impl::run is not defined", findings("src/run/trainer.cpp", source("int a;"))[0][1])


class PublicHeaders(unittest.TestCase):
    def test_each_one_is_a_decision(self):
        """What a user can include, users will include: a new header here, or one that goes, is meant."""
        root = TOOL.parents[1]
        found = sorted(path.relative_to(root / "include").as_posix() for path in (root / "include").rglob("*.h"))
        self.assertEqual(found, (root / "tests/golden/public_headers.txt").read_text().split())

    def comment(self, *lines, path="include/gradstep/io/a.h", found=()):
        """The lines in `found`, counted from the first of `lines`, are findings, and no others."""
        numbers = [line - 2 for line, _ in findings(path, source("#pragma once", *lines))]
        self.assertEqual(numbers, list(found), lines)

    def test_their_comments_are_for_the_reference(self):
        self.comment("/// Sums.", "int sum();", "int n = 0;  ///< of samples", "}  // namespace gradstep")
        self.comment("// Sums.", "int sum();", found=[1])
        self.comment("int n = 0;  // of samples", found=[1])
        self.comment("// Sums.", "int sum();", path="src/io/a.h")
        self.comment("// clang-format off", 'const char* url = "http://host";  ///< where')

    def test_private_members_keep_theirs(self):
        members = [
            "class A {",
            " public:",
            "  int a();",
            " private:",
            "  // Of ours.",
            "  int b_ = 0;  // of ours",
            "};",
        ]
        self.comment(*members)
        self.comment(*members, "int c = 0;  // of all", found=[8])
        nested = ["class B {", " public:", "  class C {", "   private:", "    int d_;  // of ours", "  };"]
        self.comment(*nested, "  int e();  // of all", " private:", "  int f_;  // of ours", "};", found=[7])


class WholeTree(unittest.TestCase):
    def run_tool(self, files):
        with tempfile.TemporaryDirectory() as folder:
            for path, text in files.items():
                target = pathlib.Path(folder, path)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text, encoding="utf-8")
            done = subprocess.run([sys.executable, TOOL, "--root", folder], capture_output=True, text=True, check=False)
            return done.returncode, done.stdout

    def test_clean(self):
        files = {
            "include/gradstep/io/hash.h": source(),
            "include/gradstep/gradstep.h": source('#include "gradstep/io/hash.h"'),
            "src/io/hash.cpp": source('#include "gradstep/io/hash.h"'),
            "data.bin": "\u00e9",
        }
        self.assertEqual(self.run_tool(files), (0, ""))

    def test_umbrella_lacks_a_header(self):
        files = {"include/gradstep/io/hash.h": source(), "include/gradstep/gradstep.h": source()}
        code, text = self.run_tool(files)
        self.assertEqual(code, 1)
        self.assertIn("include/gradstep/gradstep.h:1: does not include gradstep/io/hash.h", text)

    def test_the_umbrella_has_the_core_library_only(self):
        files = {
            "include/gradstep/download/http.h": source(),
            "include/gradstep/gradstep.h": source('#include "gradstep/download/http.h"'),
        }
        code, text = self.run_tool(files)
        self.assertEqual(code, 1)
        self.assertIn("includes gradstep/download/http.h: it is not part of the library gradstep", text)
        files["include/gradstep/gradstep.h"] = source()
        self.assertEqual(self.run_tool(files), (0, ""))

    def test_a_finding_fails(self):
        code, text = self.run_tool({"src/io/a.cpp": "int a;\n"})
        self.assertEqual(code, 1)
        self.assertIn("src/io/a.cpp:1: ", text)

    def test_this_repository(self):
        done = subprocess.run([sys.executable, TOOL], cwd=TOOL.parents[1], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, ""))


if __name__ == "__main__":
    unittest.main()

"""The C++ on the pages compiles: each block of README.md, docs/from_a_loop.md and docs/versioning.md, with the includes that the pages name."""

import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("GRADSTEP_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
BUILD = pathlib.Path(os.environ.get("GRADSTEP_BUILD_DIR", SOURCE / "build"))
sys.path.insert(0, str(SOURCE / "tools"))

import syntax_check  # noqa: E402

# The includes of each level, as docs/from_a_loop.md lists them.
LIBRARY = ("torch/torch.h", "gradstep/gradstep.h")
APP = ("torch/torch.h", "gradstep/app/app.h", "gradstep/model/tasks.h")


class Block:
    """A block of C++ on a page: its text, and where it is."""

    def __init__(self, page, line, text):
        self.page, self.line, self.text = page, line, text

    def __str__(self):
        return f'#line {self.line} "{self.page}"\n{self.text}'


def blocks(page):
    text = (SOURCE / page).read_text()
    found = re.finditer(r"^```cpp\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [Block(page, text.count("\n", 0, match.start(1)) + 1, match.group(1)) for match in found]


def module(name, arguments=""):
    """A module that the text calls yours."""
    return (
        f"struct {name}Impl : torch::nn::Module {{\n  explicit {name}Impl({arguments}) {{}}\n"
        f"  at::Tensor forward(const at::Tensor& x) {{ return x; }}\n}};\nTORCH_MODULE({name});\n"
    )


def function(name, *statements, given=""):
    """Statements as a function that has `given` as its parameters."""
    return f"int {name}({given}) {{\n{''.join(map(str, statements))}  return 0;\n}}\n"


def source(includes, *parts):
    """A file with the parts, each in a namespace of its own."""
    lines = [f"#include <{name}>\n" for name in includes]
    return "".join([*lines, *(f"namespace part{i} {{\n{part}}}\n" for i, part in enumerate(parts))])


def sources():
    """Files made of all blocks of all pages. A block that is not named here is an error, as is one that is gone."""
    recipe, minimal = blocks("README.md")
    beginning, loop, engine, trainer, app, adjust, own_state = blocks("docs/from_a_loop.md")
    (version,) = blocks("docs/versioning.md")
    return {
        "Engine and Trainer": source(
            LIBRARY,
            module("Net") + function("minimal", minimal, given="std::shared_ptr<const gradstep::Dataset> data"),
            function("loop", beginning, loop),
            function("engine", beginning, engine),
            function("trainer", beginning, trainer),
        ),
        "App": source(
            APP,
            module("ByteModel", "int64_t") + str(recipe),
            app,
            "std::unique_ptr<gradstep::Optimizer> make_my_optimizer(std::vector<gradstep::TrainedParameter>);\n"
            f"struct Adjusted : gradstep::Recipe {{\n{adjust}}};\n",
            function("own_state", own_state, given="gradstep::Task task, int64_t stage, at::Tensor memory"),
        ),
        "versions": str(version),
    }


def flags():
    """The compile command of an example, which sees what users see, without its file and its warnings."""
    entries = json.loads((BUILD / "compile_commands.json").read_text())
    entry = next(entry for entry in entries if entry["file"].endswith("examples/03_own_program.cpp"))
    words = [word for word in syntax_check.syntax_only(shlex.split(entry["command"])) if not word.startswith("-W")]
    words.remove(entry["file"])
    return entry["directory"], [*words, "-Wall", "-Wextra", "-Wno-missing-field-initializers", "-Werror"]


class Pages(unittest.TestCase):
    def compile(self, source):
        """What the compiler says about it; empty: nothing."""
        directory, words = flags()
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "block.cpp")
            path.write_text(source)
            done = subprocess.run(
                [*words, str(path)],
                cwd=directory,
                env={**os.environ, "LC_ALL": "C"},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
        self.assertEqual(done.returncode == 0, done.stdout == "", done.stdout)
        return done.stdout

    def test_no_page_is_left_out(self):
        pages = [path for folder in (SOURCE, SOURCE / "docs") for path in folder.glob("*.md")]
        fenced = {page.relative_to(SOURCE).as_posix(): page.read_text().count("```") for page in pages}
        text = "".join(sources().values())
        for page, count in fenced.items():
            self.assertEqual(count, 2 * len(blocks(page)), f"{page}: a block that is not ```cpp")
            for block in blocks(page):
                self.assertIn(str(block), text)

    def test_blocks_compile(self):
        for name, text in sources().items():
            with self.subTest(name):
                self.assertEqual(self.compile(text), "")

    def test_each_test_that_a_page_names_is_there(self):
        text = "".join(path.read_text() for path in (SOURCE / "tests").rglob("*_test.cpp"))
        tests = set(re.findall(r"^TEST(?:_[FP])?\((\w+), (\w+)\)", text, re.MULTILINE))
        for page in (
            "docs/design.md",
            "docs/numerics.md",
            "docs/checkpoint_format.md",
            "docs/performance.md",
            "docs/promises.md",
        ):
            # In italics, with lines broken anywhere: *Suite.Case, Suite.Case*.
            named = re.findall(r"(?:\*|, *\n? *)([A-Z]\w+)\.([A-Z]\w+)(?=[,*])", (SOURCE / page).read_text())
            self.assertEqual([".".join(name) for name in named if name not in tests], [], page)

    def test_examples_are_short(self):
        examples = sorted((SOURCE / "examples").glob("*.cpp"))
        self.assertGreaterEqual(len(examples), 4)
        for example in examples:
            self.assertLessEqual(example.read_text().count("\n"), 60, example.name)

    def test_a_name_that_does_not_exist_is_refused(self):
        said = self.compile("#include <gradstep/base/version.h>\nconst auto text = gradstep::release();\n")
        self.assertIn("'release' is not a member of 'gradstep'", said)


if __name__ == "__main__":
    unittest.main()

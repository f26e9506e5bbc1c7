"""Tests the counting of instructions, with a fake valgrind: which programs are run, and the
conclusions from the counts.
"""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
import textwrap
import unittest
from pathlib import Path
from unittest import mock

import instructions

# Prints a count: a base for the checkout's program, and a fixed number for every operation of the
# size.
VALGRIND = """\
    #!/bin/sh
    for last; do :; done
    case "$*" in *broken*) echo "it broke" >&2; exit 3;; esac
    case "$*" in *silent*) exit 0;; esac
    case "$*" in
      *{after}*) echo "==1== Collected : $((7000 + {slower} * last))" >&2;;
      *) echo "==1== Collected : $((9000 + 100 * last))" >&2;;
    esac
"""


def case(name: str, program: str = "coroutines turn") -> instructions.Case:
    return instructions.Case(name, program, "1 {}", (10, 30), lambda size: 2 * size)


class Counting(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.roots = [self.checkout("before"), self.checkout("after")]
        self.tools = self.root / "tools"
        self.tools.mkdir()
        path = mock.patch.dict(os.environ, PATH=f"{self.tools}:{os.environ['PATH']}")
        path.start()
        self.addCleanup(path.stop)

    def checkout(self, name: str) -> str:
        root = self.root / name
        for part in ("bench/cpp", "bench/py", ".venv/bin"):
            (root / part).mkdir(parents=True)
        for program in ("turn", "broken", "silent"):
            (root / f"bench/py/{program}.py").touch()
        return str(root)

    def count(self, *names: str, slower: int, cases: list[instructions.Case]) -> tuple[int, str]:
        """Returns the exit status and the output, with `slower` instructions for each step of the
        size after the change, and 100 before.
        """
        valgrind = self.tools / "valgrind"
        text = VALGRIND.format(after=self.roots[1] + "/.venv", slower=slower)
        valgrind.write_text(textwrap.dedent(text), encoding="ascii")
        valgrind.chmod(0o755)
        out = io.StringIO()
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(out),
            mock.patch.object(instructions, "cases", lambda: cases),
        ):
            status = instructions.main([*self.roots, *names])
        return status, out.getvalue()

    def test_a_slope_leaves_out_what_start_and_end_cost(self):
        status, out = self.count(slower=101, cases=[case("x")])
        self.assertIn("| x | 50.0 | 50.5 | 1.010 |", out)
        self.assertEqual(status, 0)

    def test_three_per_cent_are_allowed_and_no_more(self):
        self.assertEqual(self.count(slower=103, cases=[case("x")])[0], 0)
        self.assertEqual(self.count(slower=104, cases=[case("x")])[0], 1)

    def test_one_case_that_is_worse_is_enough(self):
        status, out = self.count(slower=200, cases=[case("x"), case("y")])
        self.assertEqual(status, 1)
        self.assertIn("| y |", out)

    def test_only_the_cases_asked_for_are_run(self):
        status, out = self.count("y", slower=100, cases=[case("x"), case("yes")])
        self.assertEqual(status, 0)
        self.assertNotIn("| x |", out)
        self.assertIn("| yes |", out)

    def test_a_name_that_is_none_lists_those_there_are(self):
        status, out = self.count("z", slower=100, cases=[case("x")])
        self.assertEqual(status, 2)
        self.assertIn("x", out)

    def test_a_program_that_breaks_is_said_and_the_others_go_on(self):
        status, out = self.count(
            slower=100,
            cases=[case("a", "coroutines broken"), case("b", "coroutines silent"), case("c")],
        )
        self.assertEqual(status, 1)
        self.assertIn("| a | status 3: it broke |", out)
        self.assertIn("| b | callgrind counted nothing |", out)
        self.assertIn("| c | 50.0 |", out)

    def test_without_two_checkouts_it_says_how_to_call_it(self):
        for arguments in ([], [self.roots[0]], [self.roots[0], str(self.root)]):
            with (
                self.subTest(arguments=arguments),
                contextlib.redirect_stderr(io.StringIO()) as errors,
            ):
                self.assertEqual(instructions.main(arguments), 2)
                self.assertIn("usage:", errors.getvalue())


class Cases(unittest.TestCase):
    def test_each_has_its_program_and_a_name_of_its_own(self):
        bench = Path(instructions.__file__).parent
        names = [c.name for c in instructions.cases()]
        self.assertEqual(len(names), len(set(names)))
        for c in instructions.cases():
            cpp = c.name.startswith("cpp")
            path = f"cpp/{c.program}.cpp" if cpp else f"py/{c.program.split()[1]}.py"
            with self.subTest(c.name):
                self.assertTrue((bench / path).exists(), path)
                self.assertLess(c.operations(c.sizes[0]), c.operations(c.sizes[1]))
                self.assertIn(str(c.sizes[1]), c.argv(c.sizes[1]))

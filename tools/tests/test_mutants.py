"""Tests that each textual mutant of the C++ library still finds the text that it replaces:
otherwise the mutant would test nothing.
"""

import re
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[2] / "cpp" / "tests"
sys.path[:0] = [str(TESTS), str(TESTS.parent / "explorer")]

import mutants  # noqa: E402
import mutants_checked  # noqa: E402
import mutants_io  # noqa: E402
import mutants_library  # noqa: E402
import mutants_networks  # noqa: E402
import mutated  # noqa: E402

TABLES = (mutants_library, mutants_networks, mutants_io, mutants_checked)
ALL = [*mutants.TEXT, *(m for table in TABLES for m in table.MUTANTS)]


@pytest.mark.parametrize("mutant", ALL, ids=lambda m: m.name)
def test_it_applies(mutant):
    text = mutants.place(mutant, mutants.CPP).read_text()
    changed = mutants.mutated(mutant, text)
    assert changed != text


def test_one_that_no_longer_applies_is_told():
    gone = mutants.Text("x", "", "channel.hpp", "no such text", "", "")
    with pytest.raises(SystemExit, match=r"mutant x: its text stands 0 times in channel\.hpp"):
        mutants.mutated(gone, "something else")


def test_how_lines_are_broken_makes_no_difference():
    one = mutants.Text("x", "", "f", "if (a) return b(c);  // why it is so", "", "")
    assert (
        mutants.mutated(one, "x; if (a)\n  return b(\n    c);  // why it\n  // is so\ny;")
        == "x; \ny;"
    )


def test_the_numbered_ones_apply_too():
    assert mutated.mutated()


def test_each_numbered_one_is_described():
    edits = "".join(new for _, _, new in mutated.EDITS)
    found = re.findall(r"WEFT_MUTANT [!=]= (\d+)|\? (\d+) : (\d+)\)", edits)
    switched = {int(n) for numbers in found for n in numbers if n}
    assert switched == mutants.NUMBERED.keys()


def test_the_library_has_none():
    message = [
        p
        for part in ("include", "src")
        for p in (mutants.CPP / part).rglob("*")
        if p.is_file() and "WEFT_MUTANT" in p.read_text()
    ]
    assert not message

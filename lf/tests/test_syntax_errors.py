"""Tests of programs with several syntax errors: each is reported at its line, and nothing else is."""

from __future__ import annotations

import random

import pytest

from weft_lf.errors import LfError, Problem
from weft_lf.parser import parse

GOOD = """target C { timeout: 1 sec }
import A from "A.lf"
preamble {=
  int x; // } {
=}
reactor Source(size: int = 3) {
  output out: int
  state count: int[] = {1, 2}
  timer t(0, 1 sec)
  logical action again: int
  reaction(t) -> out, again {=
    lf_set(out, self->count[0]);
  =}
  method f(): int {= return 1; =}
}
reactor Modal {
  input in: int
  initial mode One {
    timer u(0)
    reaction(u) -> reset(Two) {= lf_set_mode(Two); =}
  }
  mode Two {
    timer v(0)
  }
}
main reactor {
  source = new Source(size = 2)
  modal = new Modal()
  source.out -> modal.in after 10 msec
  reaction(source.out) {= lf_print("%d", source.out->value); =}
}
"""
MISTAKES = [  # a line that is right, the line that takes its place, the hint about it
    ("  output out: int", "  outptu out: int", "did you mean 'output'?"),
    ("  state count: int[] = {1, 2}", "  state count: int[] = {1, 2", ""),
    ("  timer t(0, 1 sec)", "  timer (0, 1 sec)", "expected a name"),
    ("  reaction(t) -> out, again {=", "  rection(t) -> out, again {=", "did you mean 'reaction'?"),
    ("  method f(): int {= return 1; =}", "  method f() int {= return 1; =}", ""),
    ("    timer u(0)", "    timer u(0", ""),
    ("    timer v(0)", "    timer v 0", ""),
    ("  modal = new Modal()", "  modal = nwe Modal()", "expected 'new'"),
    ("  source.out -> modal.in after 10 msec", "  source.out -> after 10 msec", ""),
]


def problems(text: str) -> list[Problem]:
    with pytest.raises(LfError) as caught:
        parse(text, "x.lf")
    return caught.value.problems


def lines(text: str) -> list[int]:
    return [p.span.line for p in problems(text)]


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: m[1].strip())
def test_one_mistake_is_told_once(mistake: tuple[str, str, str]) -> None:
    right, wrong, hint = mistake
    assert right in GOOD
    found = problems(GOOD.replace(right, wrong))
    place = GOOD.split("\n").index(right) + 1
    assert len(found) == 1 and found[0].span.line in (place, place + 1), found
    assert hint in found[0].hint


def test_several_mistakes_are_all_told() -> None:
    """Any combination of the mistakes is reported at the right places, with nothing else reported.
    Two neighbouring mistakes may count as one."""
    parse(GOOD, "x.lf")
    rows = GOOD.split("\n")
    for seed in range(12):
        chosen = random.Random(seed).sample(MISTAKES, 4)
        text = GOOD
        for right, wrong, _ in chosen:
            text = text.replace(right + "\n", wrong + "\n")
        places = [rows.index(right) + 1 for right, _, _ in chosen]
        found = lines(text)
        assert all(any(f in (p, p + 1) for p in places) for f in found), (seed, places, found)
        told = [p for p in places if any(f in (p, p + 1) for f in found)]
        assert len(told) == 4, (seed, places, found)


def test_a_missing_brace_is_told_where_the_next_reactor_begins() -> None:
    text = "target C\nreactor A {\n  output o: int\n\nreactor B { timer }\nmain reactor {\n"
    found = problems(text)
    assert [(p.span.line, p.span.column) for p in found] == [(5, 1), (5, 19), (6, 14)]
    assert "'{' of line 2, of 'reactor A', is still open" in found[0].message
    assert found[0].hint == "expected '}'"
    assert found[2].hint == "expected '}' for the '{' of line 6"


def test_a_brace_too_many_is_one_mistake() -> None:
    text = GOOD.replace("  timer t(0, 1 sec)", "  }\n  timer t(0, 1 sec)")
    assert lines(text) == [10]
    assert lines("target C\nmain reactor {} }\nreactor A { timer }\n") == [2, 3]


def test_a_head_with_a_mistake_hides_no_mistake_behind_it() -> None:
    text = GOOD.replace("size: int = 3", "size: int = ").replace("timer u(0)", "timer u(0")
    assert lines(text) == [6, 20]
    assert lines("target C {{ }\nreactor A { timer }\nmain reactor {}\n") == [1, 2]


def test_a_statement_without_its_end_is_named() -> None:
    (found,) = problems("target C\nmain reactor {\n  a = new A(\n\n  b = new B()\n}\n")
    assert found.span.line == 5 and "line 3 is incomplete" in found.hint


def test_there_is_an_end_to_the_list() -> None:
    found = problems("target C\nmain reactor {\n" + "  timer\n  input i: int\n" * 50 + "}\n")
    assert len(found) == 10


@pytest.mark.parametrize(
    "text", ["target C\nmain reactor { timer t(0) {= x", '"', "/* ", "}", "{="]
)
def test_what_does_not_end(text: str) -> None:
    assert len(problems(text)) == 1


def test_a_body_that_does_not_end_is_found_at_once() -> None:
    """The time does not double with each comment behind the body; if it did, 60 comments would take
    forever."""
    text = (
        "target C\nmain reactor {\n  reaction(startup) {= f(); }\n" + "  // it's a /= b */\n" * 60
    )
    (found,) = problems(text)
    assert (found.span.line, found.message) == (3, "this code block does not end")
    assert lines(text.replace("reaction(", "reaction x y(")) == [3]

"""Tests that random text never crashes the parser or the elaborator: the outcome is a model, or an
LfError with a place."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from expected import programs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from weft_lf.elaborate import elaborate
from weft_lf.emit import Options, emit
from weft_lf.errors import LfError, rendered
from weft_lf.load import load

TEXTS = [p.read_text() for p in programs()]
WORDS = re.findall(r"\{=|=\}|\w+|->|~>|[^\w\s]", "\n".join(TEXTS[::3]))
PLACE = programs()[0].parent / "Fuzz.lf"
CALM = settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


def survives(text: str) -> bool:
    """Returns whether `text` is a program. Any exception except an LfError with a place fails the
    test.
    """
    try:
        made = elaborate(load(PLACE, text))
        emit(made, Options())
    except LfError as error:
        assert error.problems
        for problem in error.problems:
            assert problem.message and rendered(problem)
            assert problem.span.line >= 1 and problem.span.column >= 1
        return False
    return True


@CALM
@given(st.text())
def test_any_text(text: str) -> None:
    survives(text)


@CALM
@given(st.text(alphabet=st.sampled_from("{}()[]<>=~->+*/\"'\\:;,.@#& \n\tabt019_")))
def test_any_punctuation(text: str) -> None:
    survives("target C\n" + text)


@CALM
@given(st.lists(st.sampled_from(WORDS), max_size=60))
def test_words_of_the_language(words: list[str]) -> None:
    survives("target C\nmain reactor { " + " ".join(words))


@pytest.mark.parametrize("seed", range(8))
def test_programs_with_something_changed(seed: int) -> None:
    pick = random.Random(seed)
    kept = 0
    for _ in range(60):
        parts = re.split(r"(\s+|\b)", pick.choice(TEXTS))
        for _ in range(pick.randint(1, 3)):
            at = pick.randrange(len(parts))
            how = pick.randrange(4)
            if how == 0:
                parts[at] = ""
            elif how == 1:
                parts[at] = pick.choice(WORDS)
            elif how == 2:
                parts.insert(at, " " + pick.choice(WORDS) + " ")
            else:
                other = pick.randrange(len(parts))
                parts[at], parts[other] = parts[other], parts[at]
        kept += survives("".join(parts))
    assert kept > 0


@pytest.mark.parametrize("deep", ["(", "{", "["])
def test_deep_nesting(deep: str) -> None:
    close = {"(": ")", "{": "}", "[": "]"}[deep]
    survives(f"target C\nmain reactor {{ state x: int[] = {deep * 3000}1{close * 3000} }}")


def test_a_long_chain_of_parameters() -> None:
    lines = ["target C", "reactor Q0(p: int = 0) { }"]
    lines += [f"reactor Q{n}(p: int = 0) {{ r = new Q{n - 1}(p = p) }}" for n in range(1, 150)]
    assert survives("\n".join([*lines, "main reactor { r = new Q149(p = 1) }"]))


def test_every_program_is_one() -> None:
    for path in programs():
        elaborate(load(Path(path)))

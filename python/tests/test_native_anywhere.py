"""Tests a placeable C++ source as a component under Python (rules 19.1 to 19.5).

cpp/tests/hosted_anywhere.cpp runs the same source as a part of a C++ program and expects the same
results.
"""

from __future__ import annotations

import functools
import inspect
import shutil
import subprocess

import pytest
from components import HERE, needs_compiler

import weft.native
from weft import coroutines as co
from weft.errors import BadUse

pytestmark = needs_compiler
SOURCE = HERE.parents[1] / "cpp/tests/anywhere_source.cpp"


@functools.cache
def placed():
    return weft.native.load(SOURCE)


@co.process
async def gives(w, values):
    for x in values:
        await w.write(x)


@co.process
async def collect(r):
    return [x async for x in r]


def channels(n):
    return [co.Channel(f"c{i}") for i in range(n)]


@pytest.mark.parametrize("on", ["pool", "thread", "process"])
def test_one_source_gives_the_same(on):  # rule 19.1
    a, b = channels(2)
    got = co.run(gives(-a, [0, 1, 4, 9, 16, 25]), placed().smooth(+a, -b, 2, on=on), collect(+b))
    assert got[2] == [0, 0, 2, 6, 12, 20]


def test_names_and_defaults_are_those_of_the_declaration():  # rule 19.5
    assert list(inspect.signature(placed().smooth).parameters)[:3] == ["source", "out", "n"]
    assert inspect.signature(placed().smooth).parameters["n"].default == 8
    assert inspect.signature(placed().stops).parameters["poisons"].default is False
    assert inspect.signature(placed().chooses).parameters["before"].default == "guard "
    assert placed().__name__.endswith("anywhere_source")


def test_an_end_that_is_not_asked_about_ends_the_process():  # rule 19.3
    a, b = channels(2)
    got = co.run(gives(-a, [1, 2, 3]), placed().copies(+a, -b), collect(+b))
    assert got[2] == [1, 2, 3]


def test_so_does_poison_which_spreads():  # rules 19.3, 4.3
    a, b, log = channels(3)
    got = co.run(
        placed().tells(-a, -log),
        placed().copies(+a, -b),
        placed().stops(+b, 3, True),
        collect(+log),
    )
    assert len(got[3]) == 1 and got[3][0].startswith("poisoned after ")


@pytest.mark.parametrize("poisons", [False, True])
def test_write_or_end_says_how_the_channel_has_ended(poisons):  # rule 19.4
    a, log = channels(2)
    got = co.run(placed().tells(-a, -log), placed().stops(+a, 3, poisons), collect(+log))
    assert got[2] == ["poisoned after 3" if poisons else "retired after 3"]


def test_a_select_gives_the_index_and_the_value():  # rule 19.2
    @co.process
    async def feeds(numbers, texts):
        await numbers.write(7)
        texts.retire()

    numbers, texts, log = channels(3)
    still_open = numbers.writer()  # keeps the channel open, so that after() commits (rule 5.6)
    got = co.run(feeds(-numbers, -texts), placed().chooses(+numbers, +texts, -log), collect(+log))
    assert got[2] == ["guard 0 7", "guard ", "guard 3", "over"]
    still_open.retire()


def test_barriers_and_times():  # rule 19.2
    barrier = co.Barrier(2)
    a, b, c = channels(3)
    got = co.run(
        placed().phases(barrier, -a), placed().phases(barrier, -b), placed().waits(-c),
        placed().nothing(), collect(+a), collect(+b), collect(+c),
    )  # fmt: skip
    assert got[4:] == [[0, 1], [0, 1], [1]]


HEAD = "#include <weft/anywhere.hpp>\n"
WRONG = {
    "too few names": (
        "weft::Process f(weft::Reader<int> a, int n) { co_await a.read(); (void)n; }\n"
        "WEFT_PLACEABLE(f, a)",
        "WEFT_PLACEABLE names each parameter of the process once, in order",
    ),
    "a reference": (
        "weft::Process g(weft::Reader<int>& a) { co_await a.read(); }\nWEFT_PLACEABLE(g, a)",
        "a placeable process takes its parameters by value",
    ),
    "a pointer": (
        "weft::Process h(weft::Writer<int> a, int* n) { co_await a.write(*n); }\n"
        "WEFT_PLACEABLE(h, a, n)",
        "a placeable process takes no pointers",
    ),
}


@pytest.mark.spread
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize(
    "placement", [[], ["-DWEFT_PLACE_COMPONENT"]], ids=["program", "component"]
)
def test_what_is_not_placeable_does_not_compile(compiler, placement, tmp_path):  # rule 19.5
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}")
    source = tmp_path / "wrong.cpp"
    source.write_text(HEAD + "\n".join(text for text, _ in WRONG.values()))
    done = subprocess.run(
        [compiler, "-std=c++20", "-fsyntax-only", *placement, f"-I{SOURCE.parents[1] / 'include'}", source],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    for _, message in WRONG.values():
        assert message in done.stderr


def test_a_default_of_another_type_is_refused_when_it_is_loaded(tmp_path):  # rule 19.5
    source = tmp_path / "other.cpp"
    source.write_text(
        HEAD + "weft::Process f(weft::Writer<int> out, int n) { co_await out.write(n); }\n"
        'WEFT_PLACEABLE(f, out, n = "x")\n'
    )
    with pytest.raises(BadUse, match="the default of n is not of its type"):
        weft.native.load(source)

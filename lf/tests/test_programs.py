"""Tests that every program under programs/ has the trace of its `//=` lines, in the interpreter and
compiled."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from conftest import run
from expected import PROGRAMS, by_oracle, expected, programs

from weft_lf import minic
from weft_lf.conform import by_reactor

ALL = programs()
NAMES = [str(p.relative_to(PROGRAMS).with_suffix("")) for p in ALL]


def test_there_are_a_hundred_programs() -> None:
    assert len(ALL) >= 100


@pytest.mark.parametrize("path", ALL, ids=NAMES)
def test_it_has_a_trace(path: Path) -> None:
    assert expected(path), f"{path} says nothing about its trace"


@pytest.mark.parametrize("path", ALL, ids=NAMES)
def test_in_the_interpreter(path: Path) -> None:
    try:
        trace = by_oracle(path)
    except minic.Unsupported as error:
        pytest.skip(f"more than the interpreter's C: {error}")
    assert trace == expected(path)


@pytest.mark.parametrize("path", ALL, ids=NAMES)
def test_compiled(path: Path, tmp_path: Path) -> None:
    shutil.copytree(path.parent, tmp_path / "p")
    _, trace = run(tmp_path / "p" / path.name)
    wanted = expected(path)
    # The times are physical, so only the order is compared.
    if wanted and wanted[0].startswith("?"):
        assert [line.split()[-1] for line in trace] == [line.split()[-1] for line in wanted]
    else:
        assert by_reactor(trace) == by_reactor(wanted)

"""Outputs whose value is made after the commit, at ends in other OS processes (rule 5.8; WIRE.md
4.8)."""

from __future__ import annotations

from typing import Any

import os_process_targets as targets
import pytest

import weft.threads as th
from weft.processes import Channel, Parallel, PeerDied, ProcessDied


@th.process
def reads(inp: Any, n: int) -> list[Any]:
    return [inp.read() for _ in range(n)]


@pytest.mark.parametrize("spans", [False, True])
def test_made_once_for_each_commit_and_by_the_one_that_selects(spans: bool) -> None:
    c, never = Channel("c"), Channel("never")
    kept = never.writer()
    made, got = Parallel(
        targets.makes(c.writer(), never.reader(), 20, spans), reads(c.reader(), 20)
    )
    assert made == list(range(20))
    assert got == [i * i for i in range(1, 21)]
    kept.retire()


def test_coroutines_and_large_values() -> None:
    c, never = Channel("c", capacity=2), Channel("never")
    kept = never.writer()
    made, got = Parallel(targets.makes_async(c.writer(), never.reader(), 5), reads(c.reader(), 5))
    assert made == 5
    assert got == [bytes([i]) * 200_000 for i in range(1, 6)]
    kept.retire()


@pytest.mark.parametrize("how", ["raise", "unpicklable", "kill"])
def test_a_value_that_is_not_made_is_told_to_its_reader(how: str) -> None:
    c, never = Channel("c"), Channel("never")
    kept = never.writer()
    log: list[str] = []

    @th.process
    def is_told(inp: Any) -> None:
        with pytest.raises(PeerDied):
            inp.read()
        log.append("told")

    def both() -> Any:
        return Parallel(targets.makes_badly(c.writer(), never.reader(), how), is_told(c.reader()))

    if how == "kill":
        with pytest.raises(ProcessDied):
            both()
    else:
        assert both()[0] == ("ZeroDivisionError" if how == "raise" else "BadUse")
        assert log == ["told"]
    kept.retire()

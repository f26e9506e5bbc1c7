"""Extended reads at ends in other OS processes (rule 1.6; WIRE.md 4.6, 4.7)."""

from __future__ import annotations

from typing import Any

import os_process_targets as targets
import pytest

import weft.threads as th
from weft.processes import (
    BadUse,
    Channel,
    Output,
    Parallel,
    ProcessDied,
    Retired,
    after,
    run,
    select,
)


@th.process
def writes(out: Any, value: Any, log: list[str]) -> None:
    out.write(value)
    log.append("written")


@pytest.mark.parametrize("capacity", [0, 1])
def test_the_writer_or_the_slot_is_held_until_the_block_is_over(capacity: int) -> None:
    c, inside, go = Channel("c", capacity=capacity), Channel("inside"), Channel("go")
    log: list[str] = []

    @th.process
    def in_turn(seen: Any, go_on: Any, out: Any) -> None:
        assert seen.read() == "v"
        if capacity:
            assert select(Output(out, "no room"), after(0))[0] == 1
        else:
            assert log == []
        log.append("inside")
        go_on.write(None)

    results = Parallel(
        targets.in_block(c.reader(), inside.writer(), go.reader()),
        writes(c.writer(), "v", log),
        in_turn(inside.reader(), go.writer(), c.writer()),
    )
    assert results[0] == "v"
    assert log == (["written", "inside"] if capacity else ["inside", "written"])


@pytest.mark.parametrize("then", ["kill", "raise"])
@pytest.mark.parametrize("capacity", [0, 2])
@pytest.mark.parametrize("value", ["small", b"x" * 300_000], ids=["small", "large"])
def test_a_value_whose_block_ended_badly_is_the_next_to_be_read(
    then: str, capacity: int, value: Any
) -> None:
    c, inside, go = Channel("c", capacity=capacity), Channel("inside"), Channel("go")
    log: list[str] = []

    @th.process
    def supervises(inp: Any) -> Any:
        failed = ProcessDied if then == "kill" else ZeroDivisionError
        with pytest.raises(failed):
            Parallel(
                targets.in_block(inp_there, inside.writer(), go.reader(), True, then),
                lets_it(inside.reader(), go.writer()),
            )
        return inp.read()

    @th.process
    def lets_it(seen: Any, go_on: Any) -> None:
        assert seen.read() == value
        if capacity:
            later.write("later")
        go_on.write(None)

    inp_there, later, out = c.reader(), c.writer(), c.writer()
    if not capacity:
        later.retire()
    own = c.reader()
    kept = c.reader()
    assert Parallel(supervises(own), writes(out, value, log))[0] == value
    assert log == ["written"]
    if capacity:
        assert kept.read() == "later"
        later.retire()
    with pytest.raises(Retired):
        kept.read()


def test_coroutines_and_many_blocks() -> None:
    c, d = Channel("c"), Channel("d")

    @th.process
    def feeds(out: Any) -> None:
        for i in range(50):
            out.write(i)

    @th.process
    def collects(inp: Any) -> list[int]:
        return list(inp)

    results = Parallel(
        feeds(c.writer()), targets.in_async_blocks(c.reader(), d.writer()), collects(d.reader())
    )
    assert results[2] == [2 * i for i in range(50)]


def test_one_that_waits_is_cancelled() -> None:  # rule 6.2
    c, inside = Channel("c"), Channel("inside")
    kept = c.writer()

    @th.process
    def fails(seen: Any) -> None:
        seen.read()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Parallel(targets.waits_for_a_block(c.reader(), inside.writer()), fails(inside.reader()))
    kept.retire()


def test_redeliver_is_for_ends_in_other_os_processes() -> None:
    c = Channel("c")

    @th.process
    def here(inp: Any) -> None:
        with pytest.raises(BadUse, match="another OS process"):
            inp.extended(redeliver=True)
        with pytest.raises(TypeError, match="redeliver"):
            inp.extended(again=True)
        with pytest.raises(TypeError, match="redeliver"):
            inp.extended(True)

    run(here(c.reader()))

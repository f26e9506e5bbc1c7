"""A choice over several homes that finds no partner at a channel of its own program although a
process waits there (rules 1.5, 5.7; wire 5.3). In an earlier version the watch of that channel's
home kept reporting that a try was worthwhile, and the try kept failing.
"""

from __future__ import annotations

import threading
from typing import Any

import os_process_targets_left as targets_left
import pytest
from test_processes import nobody_is_left  # noqa: F401 – a fixture

import weft.coroutines as co
from weft import threads
from weft.coroutines import Channel, Output, process, run, select, skip


def beside_a_far_end(does: Any) -> Any:
    """Runs `does(inp)`. `inp` is a reader of a channel of another OS process on which no value
    arrives."""
    here, over, reports = Channel("here", capacity=1), Channel("over"), Channel("said", capacity=1)

    @process
    async def main() -> Any:
        ends, signal, answer = here.reader(), over.writer(), reports.reader()
        async with co.Group() as group:
            group.start(
                targets_left.writes_when_told(here.writer(), over.reader(), reports.writer())
            )
            _, inp = await ends.read()
            result = await does(inp)
            inp.retire()
            await signal.write(None)
            assert await answer.read() == "Retired"
        return result

    return run(main())


@pytest.mark.parametrize("second", ["an extended read", "a value made later"])
def test_all_slots_are_held(second: str) -> None:
    c, go = Channel("c", capacity=1), Channel("go")

    @process
    async def holds(r: Any, signal: Any) -> Any:
        async with r.extended() as value:
            await signal.read()
        return value

    @process
    async def takes(r: Any) -> Any:
        if second == "a value made later":
            return await r.read()
        async with r.extended() as value:
            return value

    @process
    async def chooses(w: Any, inp: Any) -> int:
        made = Output(w, make=lambda: 2) if second == "a value made later" else Output(w, 2)
        return (await select(inp, made))[0]

    async def does(inp: Any) -> Any:
        w, r, signal = c.writer(), c.reader(), go.writer()
        async with co.Group() as group:
            await w.write(1)
            held = group.start(holds(r, go.reader()))
            await co.yield_()
            waits = group.start(takes(r))
            await co.yield_()
            choice = group.start(chooses(w, inp))
            await co.yield_()
            # By now the other home has answered the choice too.
            assert await select(inp, skip()) == (1, None)
            await signal.write(None)
            return [(await p.ended()).result for p in (held, waits, choice)]

    assert beside_a_far_end(does) == [1, 2, 1]


@pytest.mark.parametrize("reads", [True, False])
def test_a_waiting_process_there_has_chosen_otherwise_and_has_not_run_yet(reads: bool) -> None:
    c, d = Channel("c"), Channel("d")

    @process
    async def chooses(mine: Any, other: Any) -> int:
        return (await select(mine if not reads else Output(mine, 1), other))[0]

    @process
    async def holds_up(inp: Any) -> None:
        """Waits until the other home has answered. No other process of this scheduler runs during
        that time."""
        asks = threading.Thread(target=lambda: threads.select(inp, skip()))
        asks.start()
        asks.join()

    async def does(inp: Any) -> Any:
        kept = c.reader(), c.writer()
        r, w, out = c.reader(), c.writer(), d.writer()
        async with co.Group() as group:
            other = group.start(chooses(w if reads else r, d.reader()))
            await co.yield_()
            group.start(holds_up(inp))
            await out.write(None)  # the process has chosen, and will run later
            i, _ = await select(inp, r if reads else Output(w, 1), co.after(0.001))
            del kept
            return (await other.ended()).result, i

    assert beside_a_far_end(does) == (1, 2)

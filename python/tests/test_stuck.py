"""Partial deadlocks (rules 10.5, 14.3): which processes are stuck, and that no other process is
reported."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from parts import receive

from weft.coroutines import Channel, Parallel, process, run, select, sleep, yield_
from weft.errors import BadUse, Deadlock, WeftWarning
from weft.observe import deadlocks, watching_deadlocks

HERE = Path(__file__).name
BOUND = 280.0  # s: no test waits longer than this

pytestmark = pytest.mark.usefixtures("nobody_observes")


async def read_then_write(b: Any, r: Any, w: Any) -> None:
    await b.op(w.write(await b.op(r.read())))


def test_two_that_wait_for_each_other_while_a_third_goes_on(b: Any) -> None:
    """Rule 10.5: deadlocks() names the two processes that wait for each other, and no others."""
    c, d = b.weft.Channel("c"), b.weft.Channel("d")
    gate = b.weft.Channel("gate")
    found: list[Any] = []

    async def looker(b: Any, done: Any) -> None:
        while not found:  # thread processes need some time until both wait
            report = b.weft.deadlocks()
            if len(report.processes) == 2:
                found.append(report)
            await b.op(b.weft.yield_())
        c.poison()
        await b.op(done.write(1))

    ring = b.process(read_then_write)
    b.run(
        ring(c.reader(), d.writer()).named("one"),
        ring(d.reader(), c.writer()).named("two"),
        b.process(looker)(gate.writer()),
        b.process(receive)(gate.reader()),
    )
    report = found[0]
    assert bool(report)
    assert [p.path for p in report.processes] == ["main/one", "main/two"]
    assert [p.operation for p in report.processes] == ["read", "read"]
    assert [p.places for p in report.processes] == [("'c'",), ("'d'",)]
    assert [p.waits_for for p in report.processes] == [("main/two",), ("main/one",)]
    assert all(p.at.startswith(HERE) for p in report.processes)
    assert "main/one: read 'c' at" in str(report)


def test_from_another_thread() -> None:
    """Rule 14.3: deadlocks() may be called on another thread than that of the run."""
    c, d = Channel("c"), Channel("d")
    asked, message = threading.Event(), threading.Event()
    found: list[Any] = []

    def other() -> None:
        assert asked.wait(BOUND)
        found.append(deadlocks())
        message.set()

    @process
    async def ring(r: Any, w: Any) -> None:
        await w.write(await r.read())

    @process
    async def asks() -> None:
        await yield_()
        asked.set()
        assert message.wait(BOUND)
        c.poison()

    thread = threading.Thread(target=other)
    thread.start()
    run(ring(c.reader(), d.writer()), ring(d.reader(), c.writer()), asks())
    thread.join()
    assert [p.path for p in found[0].processes] == ["main/ring[0]", "main/ring[1]"]


def test_outside_any_run_nobody_is_stuck() -> None:
    assert not deadlocks() and str(deadlocks()) == "no process is stuck"


def look_while(*others: Any, finish: Any) -> Any:
    """Returns the result of deadlocks() in a process that runs while all others wait."""
    found: list[Any] = []

    @process
    async def looker() -> None:
        for _ in range(10):
            await yield_()
        found.append(deadlocks())
        finish()

    run(*others, looker())
    return found[0]


@process
async def reads(r: Any, *kept: Any) -> None:
    await r.read()


@process
async def holds(gate: Any, *kept: Any) -> None:
    await gate.read()


def test_an_end_that_a_process_can_still_use_accuses_nobody() -> None:
    """Rule 14.3: the holder of the end waits for a gate, and unknown code holds the gate's
    writer."""
    c, gate = Channel("c"), Channel("gate")
    key = gate.writer()
    assert not look_while(
        reads(c.reader()), holds(gate.reader(), c.writer()), finish=lambda: key.retire()
    )


def test_the_holder_is_stuck_too() -> None:
    """Rule 14.3: the process that waits for the gate holds the gate's writer itself."""
    c, gate = Channel("c"), Channel("gate")
    report = look_while(
        reads(c.reader(), gate.writer()),
        holds(gate.reader(), c.writer()),
        finish=lambda: c.poison(),
    )
    assert [p.path for p in report.processes] == ["main/holds", "main/reads"]


def test_a_local_variable_may_be_used_by_anybody() -> None:
    """Rule 14.3: a writer end that no process holds keeps the reader from being stuck."""
    c = Channel("c")
    mine = c.writer()
    assert not look_while(reads(c.reader()), finish=lambda: mine.retire())


def test_a_side_that_has_no_end_yet_may_get_one() -> None:
    """Rule 14.3: a reader of a channel without a writer end is not stuck, because an end may be
    made."""
    c = Channel("c")
    assert not look_while(reads(c.reader()), finish=lambda: c.poison())


def test_a_timer_a_sleep_and_a_cancellation_will_wake() -> None:
    """Rule 14.3: processes that a timer, a sleep or a cancellation will wake are not stuck."""
    c = Channel("c")

    @process
    async def with_timer(r: Any, w: Any) -> None:
        from weft.coroutines import after

        await select(r, after(1000))

    @process
    async def sleeps(w: Any) -> None:
        await sleep(1000)

    waits = with_timer(c.reader(), c.writer())
    sleeping = sleeps(c.writer())

    def finish() -> None:
        waits.cancel()
        sleeping.cancel()

    assert not look_while(waits, sleeping, finish=finish)


def test_a_holder_of_the_same_side_may_poison() -> None:
    """Rule 14.3: a process is not stuck if another holder of its side of the channel may poison
    it."""
    c = Channel("c")

    @process
    async def self_reader(r: Any, w: Any) -> None:
        await r.read()

    found: list[Any] = []

    @process
    async def looker(r: Any) -> None:
        await yield_()
        found.append(deadlocks())
        r.poison()

    run(self_reader(c.reader(), c.writer()), looker(c.reader()))
    assert not found[0]


def test_parents_of_the_stuck_do_not_hold_anybody_else() -> None:
    """Rule 14.3: a process that waits for stuck children is stuck, and the ends that it holds are
    of no use."""
    c, d = Channel("c"), Channel("d")

    @process
    async def parent(w: Any, inner_r: Any, inner_w: Any) -> None:
        await Parallel(reads(inner_r, inner_w))

    report = look_while(
        parent(c.writer(), d.reader(), d.writer()),
        reads(c.reader()).named("outer"),
        finish=lambda: (d.poison(), c.poison()),
    )
    assert [p.path for p in report.processes] == ["main/outer", "main/parent/reads"]


def test_run_with_partial_raise_and_warn() -> None:
    """Rule 14.3: the search runs when the scheduler becomes idle, although a sleeper will
    continue."""

    def network(log: Any) -> list[Any]:
        c, d = Channel("c"), Channel("d")

        @process
        async def ring(r: Any, w: Any) -> None:
            await w.write(await r.read())

        @process
        async def sleeper() -> None:
            until = time.monotonic() + BOUND
            while not log and time.monotonic() < until:
                await sleep(0.001)
            c.poison()

        return [ring(c.reader(), d.writer()), ring(d.reader(), c.writer()), sleeper()]

    with pytest.raises(Deadlock, match="partial") as caught:
        run(network([]), partial="raise")
    assert caught.value.knot == ["main/ring[0]", "main/ring[1]"]
    assert [p.operation for p in caught.value.processes] == ["read", "read"]
    with pytest.warns(WeftWarning, match=r"ring\[0\]: read 'c'") as warned:
        run(network(warned), partial="warn")
    assert len(warned) == 1


def test_an_action_that_is_none() -> None:
    with pytest.raises(BadUse, match="warn"), watching_deadlocks("shout"):  # type: ignore[arg-type]
        pass

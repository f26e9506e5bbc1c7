"""Writing a value that cannot go to another OS process is bad use at the write (rules 9.1, 11.1),
whenever the write begins: before the OS process exists, before a process of it is made, or while
its channel is local.

Each writer first writes a lock, which cannot be pickled, and then 2. The write of the lock must
raise an error in the writer; the reader in the other OS process must read the 2.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import os_process_targets as targets
import pytest

import weft.coroutines as co
import weft.greenlets as gr
import weft.threads as th
from weft.processes import (
    Alternative,
    BadUse,
    Channel,
    Hosts,
    Output,
    Parallel,
    Supervisor,
    after,
    select,
    statistics,
)

LOCK = threading.Lock()
WRONG = r"write on channel 'c'.* lock"


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    with Hosts(1) as one:
        yield one


# --- the writers ----------------------------------------------------------------------------------


def by_write(out: Any) -> None:
    with pytest.raises(BadUse, match=WRONG):
        out.write(LOCK)
    out.write(2)


def by_select(out: Any) -> None:
    with pytest.raises(BadUse, match=WRONG):
        select(Output(out, LOCK), after(1000))
    assert select(Output(out, 2), after(1000))[0] == 0


def by_alternative(out: Any) -> None:
    """An alternative keeps its guards enrolled, and can be used again after it has raised. If the
    alternative cannot even be made because of the value that cannot be sent, that failure is the
    error.
    """
    never = Channel("never")
    kept = never.writer()
    try:
        odd = Alternative(never.reader(), Output(out, LOCK))
    except BadUse:
        kept.retire()
        return by_select(out)
    with odd:
        for _ in range(2):
            with pytest.raises(BadUse, match=WRONG):
                odd.select()
    kept.retire()
    return by_write(out)


def by_write_many(out: Any) -> None:
    with pytest.raises(BadUse, match=WRONG):
        out.write_many([LOCK])
    out.write_many([2])


def by_parallel_writes(out: Any) -> None:
    writes = th.process(by_write)
    copies = [out.channel.writer() for _ in range(3)]
    out.retire()
    Parallel([writes(o) for o in copies])


def by_a_function(out: Any) -> None:
    """The function that makes the value is called after the commit, so the error is raised in the
    reader too (rule 5.8)."""
    with pytest.raises(BadUse, match=WRONG):
        select(Output(out, make=lambda: LOCK), after(1000))


BLOCKING: list[Callable[[Any], None]] = [
    by_write,
    by_select,
    by_alternative,
    by_write_many,
    by_parallel_writes,
]


async def a_write(out: Any) -> None:
    with pytest.raises(BadUse, match=WRONG):
        await out.write(LOCK)
    await out.write(2)


async def a_select(out: Any) -> None:
    with pytest.raises(BadUse, match=WRONG):
        await co.select(Output(out, LOCK), co.after(1000))
    assert (await co.select(Output(out, 2), co.after(1000)))[0] == 0


async def an_alternative(out: Any) -> None:
    never = Channel("never")
    kept = never.writer()
    try:
        odd = co.Alternative(never.reader(), Output(out, LOCK))
    except BadUse:
        kept.retire()
        return await a_select(out)
    with odd:
        for _ in range(2):
            with pytest.raises(BadUse, match=WRONG):
                await odd.select()
    kept.retire()
    return await a_write(out)


async def a_write_many(out: Any) -> None:
    with pytest.raises(BadUse, match=WRONG):
        await out.write_many([LOCK])
    await out.write_many([2])


AWAITING: list[Any] = [a_write, a_select, an_alternative, a_write_many]

KINDS: dict[str, Any] = {
    **{f"thread {f.__name__}": th.process(f) for f in BLOCKING},
    **{f"greenlet {f.__name__}": gr.process(f) for f in BLOCKING if f is not by_parallel_writes},
    **{f"coroutine {f.__name__}": co.process(f) for f in AWAITING},
}


# --- before the OS process exists -----------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_while_its_call_begins(hosts: Hosts, kind: str) -> None:  # rule 11.1
    """The writer runs before the call of the host has begun, because the writer is started
    first."""
    c = Channel("c")
    far_process = targets.total.on(hosts)(c.reader())
    assert th.Parallel(KINDS[kind](c.writer()), far_process)[1] in (2, 6)


@pytest.mark.parametrize("capacity", [1, 5])
@pytest.mark.parametrize("kind", KINDS)
def test_with_a_buffer(hosts: Hosts, kind: str, capacity: int) -> None:  # rule 11.1
    c = Channel("c", capacity=capacity)
    far_process = targets.total.on(hosts)(c.reader())
    assert th.Parallel(KINDS[kind](c.writer()), far_process)[1] in (2, 6)


@pytest.mark.parametrize("where", ["its own", "supervised", "moved later", "a coroutine there"])
def test_wherever_it_runs(hosts: Hosts, where: str) -> None:  # rule 11.1
    c = Channel("c", capacity=1)
    if where == "its own":
        far_process = targets.total(c.reader())
    elif where == "supervised":
        far_process = targets.total.on(Supervisor(hosts))(c.reader())
    elif where == "moved later":
        far_process = targets.total(c.reader()).on(hosts)
    else:
        d = Channel("d", capacity=1)
        far_process = targets.double_async.on(hosts)(c.reader(), d.writer())
    writer = th.process(by_write)(c.writer())
    assert th.Parallel(writer, far_process)[1] in (2, None)


def test_ordinary_code_that_writes_into_the_buffer() -> None:  # rule 11.1
    c = Channel("c", capacity=2)
    w = c.writer()
    far_process = targets.total(c.reader())
    with pytest.raises(BadUse, match=WRONG):
        w.write(LOCK)
    w.write(2)
    w.retire()
    assert th.run(far_process) == 2


# --- before a process of it is made ---------------------------------------------------------------


async def waits_at(c: Any) -> None:
    while not statistics(c).waiting_writers:
        await co.yield_()


@co.process
async def then_gives(c: Any, hosts: Hosts, writer: Any, parties: int = 1) -> Any:
    """The writer waits; then a process is made in another OS process, with the reader as its
    argument."""
    async with co.Group() as group:
        group.start(writer)
        while statistics(c).waiting_writers < parties:
            await co.yield_()
        far_process = group.start(targets.total.on(hosts)(c.reader()))
    return far_process.result


@pytest.mark.parametrize("kind", KINDS)
def test_one_that_waits_already(hosts: Hosts, kind: str) -> None:  # rule 11.1
    c = Channel("c")
    parties = 3 if "parallel" in kind else 1
    assert co.run(then_gives(c, hosts, KINDS[kind](c.writer()), parties)) in (2, 6)


@pytest.mark.parametrize("capacity", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_one_that_waits_at_a_full_buffer(hosts: Hosts, kind: str, capacity: int) -> None:
    """The values in the buffer count as written, and are sent to the other OS process."""
    c = Channel("c", capacity=capacity)
    w = c.writer()
    w.write_many([100] * capacity)
    parties = 3 if "parallel" in kind else 1
    got = co.run(then_gives(c, hosts, KINDS[kind](w), parties))
    assert got - 100 * capacity in (2, 6)


@pytest.mark.parametrize("task", AWAITING)
def test_a_task_that_waits_already(hosts: Hosts, task: Any) -> None:  # rules 6.6, 11.1
    async def main() -> Any:
        c = Channel("c")

        async def writes() -> None:
            w = c.writer()
            await task(w)
            w.retire()

        writer = asyncio.create_task(writes())
        while not statistics(c).waiting_writers:
            await asyncio.sleep(0)
        got = await co.run_async(targets.total.on(hosts)(c.reader()))
        await writer
        return got

    assert asyncio.run(main()) == 2


def test_what_waits_and_can_go_goes(hosts: Hosts) -> None:  # rule 11.1
    """Of several waiting writers, only the one whose value cannot be sent gets the error."""
    c = Channel("c")
    odd = th.process(by_write)

    @th.process
    def plain(out: Any) -> None:
        out.write(40)

    @co.process
    async def main() -> Any:
        async with co.Group() as group:
            for n, writer in enumerate((plain, odd, plain), 1):
                group.start(writer(c.writer()))
                while statistics(c).waiting_writers < n:
                    await co.yield_()
            far_process = group.start(targets.total.on(hosts)(c.reader()))
        return far_process.result

    assert co.run(main()) == 82


def test_a_choice_that_commits_elsewhere_is_told_of_nothing(hosts: Hosts) -> None:  # rule 5.10
    """A choice raises no error for a value that cannot be sent if that value's guard was not
    chosen."""
    c, other = Channel("c"), Channel("other", capacity=1)
    chosen: list[int] = []

    @co.process
    async def chooses(out: Any, inp: Any) -> None:
        chosen.append((await co.select(Output(out, LOCK), inp))[0])

    @co.process
    async def main() -> None:
        async with co.Group() as group:
            group.start(chooses(c.writer(), other.reader()))
            await waits_at(c)
            await other.writer().write(1)  # the choice is decided, and its process has not run yet
            group.start(targets.total.on(hosts)(c.reader()))

    co.run(main())
    assert chosen == [1]


def test_one_that_is_cancelled_as_well_is_told_and_cancelled_later(hosts: Hosts) -> None:
    """The process's write has already ended when the cancellation arrives (rules 6.3, 11.1)."""
    c = Channel("c")
    log: list[str] = []

    @co.process
    async def writes(out: Any) -> None:
        with pytest.raises(BadUse, match=WRONG):
            await out.write(LOCK)
        log.append("bad use")
        with pytest.raises(co.Cancelled):
            await out.write(2)
        log.append("cancelled")

    @co.process
    async def main() -> Any:
        async with co.Group() as group:
            writer = group.start(writes(c.writer()))
            await waits_at(c)
            far_process = targets.total.on(hosts)(c.reader())
            writer.cancel()
            far_process = group.start(far_process)
        return far_process.result

    assert co.run(main()) == 0
    assert log == ["bad use", "cancelled"]


# --- values that were written ---------------------------------------------------------------------


def test_a_value_in_the_buffer_is_told_to_who_gives_the_end(hosts: Hosts) -> None:  # rule 11.1
    """The writer of the value has long continued. The failed call changes nothing: the values in
    the buffer can still be read in this OS process."""
    c = Channel("c", capacity=3)
    w, r = c.writer(), c.reader()
    first = [1]
    w.write(first)
    w.write(LOCK)
    with pytest.raises(BadUse, match=r"a value in the channel cannot .* lock"):
        targets.total.on(hosts)(c.reader())
    assert r.read() is first
    assert r.read() is LOCK
    far_process = targets.total.on(hosts)(r)
    w.write(7)
    w.retire()
    assert th.run(far_process) == 7


@pytest.mark.parametrize("wait", [False, True])
def test_an_end_whose_channel_has_such_a_value(hosts: Hosts, wait: bool) -> None:  # rule 2.4
    """The end is in a write to another OS process. The write fails, and the end remains in this OS
    process."""
    c, inner = Channel("c", capacity=0), Channel("inner", capacity=1)
    w = inner.writer()
    w.write(LOCK)
    kept = inner.reader()
    log: list[Any] = []

    @co.process
    async def writes(out: Any) -> None:
        with pytest.raises(BadUse, match=r"a value in the channel cannot .* lock"):
            await out.write(kept)
        log.append(await kept.read())
        await out.write(2)

    @co.process
    async def main() -> Any:
        async with co.Group() as group:
            if not wait:
                far_process = group.start(targets.total.on(hosts)(c.reader()))
            group.start(writes(c.writer()))
            if wait:
                await waits_at(c)
                far_process = group.start(targets.total.on(hosts)(c.reader()))
        return far_process.result

    assert co.run(main()) == 2
    assert log == [LOCK]


def test_a_writer_at_a_channel_whose_end_is_written(hosts: Hosts) -> None:  # rules 2.4, 11.1
    """The end is sent to another OS process as a value; the error is raised in the writer that
    waits at the end's channel."""
    c, inner = Channel("c"), Channel("inner")
    writer = th.process(by_write_at_inner)

    @co.process
    async def gives(out: Any, end: Any) -> None:
        await out.write(end)

    @co.process
    async def main() -> Any:
        async with co.Group() as group:
            group.start(writer(inner.writer()))
            await waits_at(inner)
            group.start(gives(c.writer(), inner.reader()))
            far_process = group.start(targets.sum_of_the_end.on(hosts)(c.reader()))
        return far_process.result

    assert co.run(main()) == 2


def by_write_at_inner(out: Any) -> None:
    with pytest.raises(BadUse, match=r"write on channel 'inner'.* lock"):
        out.write(LOCK)
    out.write(2)


def test_a_value_that_a_function_makes_is_told_to_both(hosts: Hosts) -> None:  # rule 5.8
    c = Channel("c")
    writer = th.process(by_a_function)
    with pytest.raises(th.PeerDied):
        th.Parallel(writer(c.writer()), targets.total.on(hosts)(c.reader()))

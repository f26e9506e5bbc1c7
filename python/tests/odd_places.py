"""The places where Weft touches a user's object in one OS process. Each place is a function that
takes an odd object. It must end, with any result or exception (odd_world.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import pickle
import weakref
from typing import Any

import odd_objects
from odd_objects import Odd, make
from odd_world import (
    FAILURE,
    FOLDER,
    FUNCTION,
    ITEMS,
    NUMBER,
    VALUE,
    WORD,
    World,
    afails,
    areads,
    atakes,
    awrites,
    ended,
    fails,
    fails_from,
    gfails,
    greads,
    gtakes,
    gwrites,
    place,
    reads,
    takes,
    waits,
    writes,
)

import weft
import weft.coroutines as co
import weft.threads as th
from weft import observe

# --- values ---------------------------------------------------------------------------------------


@place(FUNCTION)
def value_by_threads(_: World, odd: Odd) -> Any:
    c = th.Channel("c")
    return th.Parallel(writes(c.writer(), make(odd)), reads(c.reader()))


@place(VALUE)
def value_by_coroutines(_: World, odd: Odd) -> Any:
    c = co.Channel("c", capacity=1)
    return co.run(awrites(c.writer(), make(odd)), areads(c.reader()))


@place(VALUE)
def value_by_greenlets(_: World, odd: Odd) -> Any:
    c = co.Channel("c")
    return co.run(gwrites(c.writer(), make(odd)), greads(c.reader()))


@place(VALUE)
def value_that_is_dropped(_: World, odd: Odd) -> Any:
    """The value is dropped: by overflow, by poison, and together with the channel."""
    c = th.Channel("c", capacity=1, overflow="drop_oldest")
    w = c.writer()
    w.write(make(odd))
    w.write(make(odd))
    c.poison()
    d = th.Channel("d", capacity=2)
    d.writer().write([make(odd)])


@place(VALUE)
def value_that_comes_back(_: World, odd: Odd) -> Any:
    """The value is returned with the exception by which its write fails."""
    c = th.Channel("c")
    w, r = c.writer(), c.reader()
    r.retire()
    w.write(make(odd))


@place(ITEMS)
def values_at_a_time(_: World, odd: Odd) -> Any:
    c = th.Channel("c", capacity=8)
    w, r = c.writer(), c.reader()
    w.write_many([make(odd), 1])
    got = r.read_many(8)
    w.write_many(make(odd))
    return got, r.read_many(8)


@place(VALUE)
def value_of_a_select(_: World, odd: Odd) -> Any:
    c = th.Channel("c", capacity=1)
    w, r = c.writer(), c.reader()
    th.select(th.Output(w, make(odd)), th.after(0))
    return th.select(r, th.after(0))


@place(FUNCTION)
def value_that_a_function_makes(_: World, odd: Odd) -> Any:
    c = th.Channel("c", capacity=1)
    th.select(th.Output(c.writer(), make=make(odd)), th.after(0))


@place(VALUE)
def value_of_an_extended_read(_: World, odd: Odd) -> Any:
    c = th.Channel("c", capacity=1)
    w, r = c.writer(), c.reader()
    w.write(make(odd))
    with r.extended() as value:
        return value


@place(VALUE)
def value_by_tasks(_: World, odd: Odd) -> Any:
    async def main() -> Any:
        c = co.Channel("c")
        w, r = c.writer(), c.reader()
        writer = asyncio.create_task(_guarded(_task_writes(w, odd)))
        try:
            return await r.read()
        finally:
            await writer

    return asyncio.run(_guarded(main()))


async def _task_writes(w: Any, odd: Odd) -> None:
    try:
        await w.write(make(odd))
    finally:
        w.retire()


# --- processes ------------------------------------------------------------------------------------


@place(VALUE)
def argument(_: World, odd: Odd) -> Any:
    return co.run(takes(make(odd), x=make(odd)), atakes([make(odd)]), gtakes({1: make(odd)}))


@place(VALUE)
def argument_that_is_hashed(_: World, odd: Odd) -> Any:
    return co.run(takes({make(odd)}, {make(odd): 1}, frozenset([make(odd)])))


@place(VALUE)
def result_of_one(_: World, odd: Odd) -> Any:
    return th.run(takes(make(odd)))


@place(FAILURE)
def failure_of_a_thread(_: World, odd: Odd) -> Any:
    return th.Parallel(fails(make(odd)), waits(th.Channel().reader()))


@place(FAILURE)
def failure_of_a_coroutine(_: World, odd: Odd) -> Any:
    return co.run(afails(make(odd)), takes(1))


@place(FAILURE)
def failure_of_a_greenlet(_: World, odd: Odd) -> Any:
    return co.run(gfails(make(odd)), takes(1))


@place(FAILURE)
def several_failures(_: World, odd: Odd) -> Any:
    return th.Parallel(fails(make(odd)), fails(make(odd)), afails(make(odd)))


@place(FAILURE)
def failure_with_a_cause(_: World, odd: Odd) -> Any:
    return co.run(fails_from(make(odd)))


@place(FAILURE)
def failure_that_is_watched(_: World, odd: Odd) -> Any:
    with th.Group() as group:
        return ended(group.start(th.watched(fails(make(odd)))))


@place(FAILURE)
def failure_of_a_block(_: World, odd: Odd) -> Any:
    with th.Group() as group:
        group.start(takes(1))
        raise make(odd)


@place(FUNCTION)
def process_of_it(_: World, odd: Odd) -> Any:
    return th.run(th.process(make(odd))(1))


@place(FUNCTION)
def process_of_coroutines_of_it(_: World, odd: Odd) -> Any:
    return co.run(co.process(make(odd))())


@place(WORD)
def process_that_is_named(_: World, odd: Odd) -> Any:
    return th.run(takes(1).named(make(odd)))


@place(WORD)
def process_that_is_put(_: World, odd: Odd) -> Any:
    with contextlib.suppress(weft.BadUse):
        takes.on(make(odd))
    return th.run(takes(1).on(make(odd)))


@place(ITEMS)
def network_of_it(_: World, odd: Odd) -> Any:
    return th.run(make(odd))


@place(ITEMS)
def network_of_a_list_of_it(_: World, odd: Odd) -> Any:
    return th.Parallel([make(odd), takes(1)])


@place(ITEMS)
def sequence_of_it(_: World, odd: Odd) -> Any:
    return th.Sequence(takes(1), make(odd))


@place(ITEMS)
def group_that_starts_it(_: World, odd: Odd) -> Any:
    with th.Group() as group:
        group.start(make(odd))


@place(NUMBER)
def process_times_it(_: World, odd: Odd) -> Any:
    return th.Parallel(takes(1) * make(odd))


@place(NUMBER, WORD)
def network_by_options(_: World, odd: Odd) -> Any:
    return co.run(atakes(1), clock=make(odd), host=make(odd))


@place(VALUE)
def network_in_a_loop(_: World, odd: Odd) -> Any:
    return asyncio.run(_guarded(_network(odd)))


async def _network(odd: Odd) -> Any:
    return await co.run_async(atakes(make(odd)), afails(make(odd)))


async def _guarded(awaitable: Any) -> Any:
    """Awaits the object, and lets no odd exception leave the task, because asyncio would then wait
    forever for that task.
    """
    try:
        return await awaitable
    except BaseException:
        return None


@place("__await__ __aenter__ __aexit__")
def awaits_it(_: World, odd: Odd) -> Any:
    @co.process
    async def awaiting() -> Any:
        async with make(odd):
            return await make(odd)

    return co.run(awaiting())


@place("__aiter__ __anext__")
def iterates_over_it(_: World, odd: Odd) -> Any:
    @co.process
    async def iterating() -> Any:
        async for value in make(odd):
            return value
        return None

    return co.run(iterating())


@place(FUNCTION)
def io_of_it(_: World, odd: Odd) -> Any:
    thing = make(odd)

    @co.process
    async def calls() -> Any:
        with contextlib.suppress(Exception):
            await co.io(thing)()
        return await co.io(_given)(thing)

    return co.run(calls())


def _given(value: Any) -> Any:
    if issubclass(type(value), BaseException):
        raise value
    return value


# --- arguments of Weft's functions ----------------------------------------------------------------


@place(NUMBER, WORD)
def channel_by_options(_: World, odd: Odd) -> Any:
    for option in ("capacity", "overflow", "immunity", "type"):
        with contextlib.suppress(Exception):
            th.Channel("c", **{option: make(odd)})
    return th.Channel(make(odd))


@place(NUMBER)
def channels_times_it(_: World, odd: Odd) -> Any:
    if odd.more not in ("a huge number", "beyond"):  # other numbers would make too many channels
        return th.Channel() * make(odd)
    with contextlib.suppress(MemoryError, OverflowError):
        return th.Channel() * (1 << 62)
    return None


@place(VALUE)
def channel_that_is_compared(_: World, odd: Odd) -> Any:
    c = th.Channel()
    thing = make(odd)
    return c == thing, c.reader() == thing, thing in [c], getattr(c, "x", thing)


@place(NUMBER, FUNCTION)
def guards(_: World, odd: Odd) -> Any:
    thing = make(odd)
    c = th.Channel("c", capacity=1)
    r = c.reader()
    for wrong in (
        lambda: th.select(thing),
        lambda: th.select([r], thing),
        lambda: th.select(th.Input(thing), th.after(0)),
        lambda: th.select(th.Output(thing, 1), th.after(0)),
        lambda: th.select(th.after(0), mode=thing),
        lambda: th.select(th.after(0), ended=thing),
        lambda: th.select(r.when(thing), th.skip()),
        lambda: th.Alternative(r, thing),
    ):
        with contextlib.suppress(Exception):
            wrong()
    return th.select(th.after(thing), th.skip())


@place(NUMBER)
def times(_: World, odd: Odd) -> Any:
    thing = make(odd)
    for wrong in (
        lambda: th.select(th.at(thing), th.skip()),
        lambda: th.Timer(thing),
        lambda: th.timeout(thing),
        lambda: th.deadline(thing),
        lambda: th.move_on_after(0).reschedule(thing),
    ):
        with contextlib.suppress(Exception):
            wrong()
    return th.Barrier(thing)


@place(NUMBER, ITEMS)
def ends_of_it(_: World, odd: Odd) -> Any:
    thing = make(odd)
    for wrong in (
        lambda: th.retire(thing),
        lambda: th.poison(thing),
        lambda: th.poison(th.Channel(), strength=thing),
        lambda: th.statistics(thing),
        lambda: _with_a_value().read_many(thing),
        lambda: next(iter(_with_a_value().blocks(thing))),
    ):
        with contextlib.suppress(Exception):
            wrong()
    return th.Channel(capacity=1, overflow="unbounded").writer().write_many(thing)


def _with_a_value() -> Any:
    c = th.Channel(capacity=1)
    c.writer().write(1)
    return c.reader()


@place(NUMBER, ITEMS)
def typed_channels(_: World, odd: Odd) -> Any:
    thing = make(odd)
    for kind in (float, int, str, bytes, bool, list[int], dict[str, float], tuple[int, str]):
        with contextlib.suppress(Exception):
            c = th.Channel("c", type=kind, capacity=1)
            c.writer().write(thing)
            c.reader().read()
    c = th.Channel("c", capacity=1)
    c.writer().write(thing)
    return th.Channel(type=thing)


@place(NUMBER, WORD)
def observers(_: World, odd: Odd) -> Any:
    thing = make(odd)
    for wrong in (
        lambda: observe.watchdog(thing),
        lambda: observe.watching_deadlocks(thing),
        lambda: observe.deadlocks(thing),
    ):
        with contextlib.suppress(Exception):
            wrong()
    # tracing() would treat a str or bytes as a path, and make a file there
    if odd.base not in ("str", "bytes"):
        with observe.tracing(thing):
            pass


@place(VALUE)
def value_in_the_debug_mode(_: World, odd: Odd) -> Any:
    c = th.Channel("c")
    observe.debug(True, report=lambda _: None)
    try:
        return th.Parallel(writes(c.writer(), make(odd)), reads(c.reader()))
    finally:
        observe.debug(False)


@place(VALUE)
def value_in_a_trace(_: World, odd: Odd) -> Any:
    c = co.Channel("c")
    with observe.measuring(), observe.tracing(f"{FOLDER}/trace"):
        return co.run(awrites(c.writer(), make(odd)), areads(c.reader()), afails(make(odd)))


@place(VALUE)
def deadlock_beside_it(_: World, odd: Odd) -> Any:
    c = co.Channel("c")
    return co.run(areads(c.reader()), awrites(co.Channel().writer(), make(odd)), takes(c.writer()))


@place(FUNCTION)
def weak_references(_: World, odd: Odd) -> Any:
    c = th.Channel("c")
    thing = make(odd)
    ends = [c.reader(), c.writer(), c]
    kept = [weakref.ref(one, thing) for one in ends if _may_be_weak(one)]
    del ends, c
    return kept


def _may_be_weak(one: Any) -> bool:
    try:
        weakref.ref(one)
    except TypeError:
        return False
    return True


@place(VALUE, "__copy__ __deepcopy__")
def copies(_: World, odd: Odd) -> Any:
    for one in (th.Channel(), th.Channel().reader(), th.Barrier(1)):
        with contextlib.suppress(Exception):
            copy.copy([one, make(odd)])
        with contextlib.suppress(Exception):
            pickle.dumps([make(odd), one])


@place(VALUE)
def in_its_finaliser(_: World, odd: Odd) -> Any:
    """The object is finalised while the network that holds it runs."""
    c = th.Channel("c", capacity=4)
    w = c.writer()
    things = [make(odd) for _ in range(3)]
    w.write(things)
    odd_objects.holders[:] = [things, w]
    try:
        return th.Parallel(reads(c.reader()), writes(w, things))
    finally:
        odd_objects.holders.clear()

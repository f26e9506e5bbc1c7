"""Where Weft touches a user's object: each place is a function of an odd one (odd_objects.py), and
must come to an end, by whatever result or exception.

The places are sorted by what they cost: PLACES run by the thousand, AWAY use OS processes that live,
DEAR start some. What is used by many of them, hosts and a pool, must go on for others: see
World.check().
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import logging
import os
import pickle
import threading
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import odd_objects
from odd_objects import Loads, Odd, make

import weft
import weft.coroutines as co
import weft.greenlets as gr
import weft.threads as th
from weft import observe
from weft.processes import Executor, Hosts, Supervisor, process

FOLDER = os.environ.get("ODD_FOLDER", "/nonexistent")

Place = Callable[["World", Odd], Any]
PLACES: dict[str, Place] = {}
AWAY: dict[str, Place] = {}
DEAR: dict[str, Place] = {}
CALLED: dict[str, list[str]] = {}  # the methods that are likely to be called there


def _added(to: dict[str, Place], *methods: str) -> Callable[[Place], Place]:
    def add(function: Place) -> Place:
        to[function.__name__] = function
        CALLED[function.__name__] = " ".join(methods).split()
        return function

    return add


VALUE = "__eq__ __hash__ __bool__ __del__ __reduce__ __reduce_ex__ __getstate__ __getattribute__ @__class__"
FAILURE = "__str__ __repr__ __format__ __reduce__ __reduce_ex__ __getattribute__ __del__ add_note"
FAILURE += (
    " @__class__ @__cause__ @__context__ @__traceback__ @__notes__ @args @met @strength @exceptions"
)
FUNCTION = (
    "__call__ __getattr__ __getattribute__ __hash__ __eq__ @__name__ @__qualname__ @__module__"
)
FUNCTION += (
    " @__wrapped__ @__code__ @__self__ @__dict__ @_weft_body @_weft_name @call meta.__call__"
)
NUMBER = (
    "__index__ __float__ __int__ __bool__ __eq__ __lt__ __hash__ __repr__ __str__ __mul__ __rmul__"
)
WORD = "__str__ __eq__ __hash__ __fspath__ __repr__ __format__ __len__ __getitem__ __iter__ __contains__"
ITEMS = "__iter__ __next__ __len__ __length_hint__ __getitem__ __contains__ keys items __buffer__"
ITEMS += " __array__ __array_interface__ @_fields"


def place(*methods: str) -> Callable[[Place], Place]:
    return _added(PLACES, *methods)


def away(*methods: str) -> Callable[[Place], Place]:
    return _added(AWAY, *methods)


def dear(*methods: str) -> Callable[[Place], Place]:
    return _added(DEAR, *methods)


class World:
    """What the places share. It is made when it is first needed."""

    _hosts: Hosts | None = None
    _pool: Executor | None = None

    @property
    def hosts(self) -> Hosts:
        if self._hosts is None:
            self._hosts = Hosts(1, start="forkserver")
        return self._hosts

    @property
    def pool(self) -> Executor:
        if self._pool is None:
            import multiprocessing

            self._pool = Executor(2, multiprocessing.get_context("forkserver"))
        return self._pool

    def check(self) -> None:
        """What an odd object has done harms nobody else."""
        if self._hosts is not None:
            assert th.run(gives.on(self._hosts)(7)) == 7
        if self._pool is not None:
            assert list(self._pool.map(abs, range(-5, 0))) == [5, 4, 3, 2, 1]
        assert co.run(hears_nothing()) is None

    def close(self) -> None:
        if self._hosts is not None:
            self._hosts.close()
        if self._pool is not None:
            self._pool.shutdown()


# --- processes of the places ----------------------------------------------------------------------


@th.process
def writes(out: Any, value: Any) -> None:
    out.write(value)


@co.process
async def awrites(out: Any, value: Any) -> None:
    await out.write(value)


@gr.process
def gwrites(out: Any, value: Any) -> None:
    out.write(value)


@th.process
def reads(inp: Any) -> Any:
    return [value for value in inp]  # noqa: C416


@co.process
async def areads(inp: Any) -> Any:
    return [value async for value in inp]


@gr.process
def greads(inp: Any) -> Any:
    return [value for value in inp]  # noqa: C416


@th.process
def takes(*args: Any, **keywords: Any) -> Any:
    return args


@co.process
async def atakes(*args: Any, **keywords: Any) -> Any:
    return args


@gr.process
def gtakes(*args: Any, **keywords: Any) -> Any:
    return args


@th.process
def fails(error: Any) -> None:
    raise error


@co.process
async def afails(error: Any) -> None:
    raise error


@gr.process
def gfails(error: Any) -> None:
    raise error


@co.process
async def fails_from(error: Any) -> None:
    raise RuntimeError("of the test") from error


@co.process
async def hears_nothing() -> None:
    await co.yield_()


@th.process
def waits(inp: Any) -> Any:
    return inp.read()


def ended(p: Any) -> Any:
    return p.ended().wait()


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
    """By overflow, by poison, and with the channel."""
    c = th.Channel("c", capacity=1, overflow="drop_oldest")
    w = c.writer()
    w.write(make(odd))
    w.write(make(odd))
    c.poison()
    d = th.Channel("d", capacity=2)
    d.writer().write([make(odd)])


@place(VALUE)
def value_that_comes_back(_: World, odd: Odd) -> Any:
    """With the exception."""
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
    """A task that an odd exception leaves, asyncio waits for without end."""
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


# --- arguments of Weft's own ----------------------------------------------------------------------


@place(NUMBER, WORD)
def channel_by_options(_: World, odd: Odd) -> Any:
    for option in ("capacity", "overflow", "immunity", "type"):
        with contextlib.suppress(Exception):
            th.Channel("c", **{option: make(odd)})
    return th.Channel(make(odd))


@place(NUMBER)
def channels_times_it(_: World, odd: Odd) -> Any:
    if odd.more not in ("a huge number", "beyond"):  # that many are too many
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
    if odd.base not in ("str", "bytes"):  # a file of that name
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
    """It goes while the network runs that holds it."""
    c = th.Channel("c", capacity=4)
    w = c.writer()
    things = [make(odd) for _ in range(3)]
    w.write(things)
    odd_objects.holders[:] = [things, w]
    try:
        return th.Parallel(reads(c.reader()), writes(w, things))
    finally:
        odd_objects.holders.clear()


# --- in other OS processes ------------------------------------------------------------------------


@process
def gives(value: Any) -> Any:
    return value


@process
def makes(odd: Any) -> Any:
    return make(odd)


@process
def makes_what_loads(odd: Any) -> Any:
    return Loads(odd)


@process
def raises(odd: Any) -> Any:
    raise make(odd)


@process
def raises_from(odd: Any) -> Any:
    raise ValueError("of the test") from make(odd)


@process
def does(odd: Any) -> Any:
    return odd_objects.done(odd)


@process
def copies_all(inp: Any, out: Any) -> None:
    for value in inp:
        out.write(value)


@process
def writes_there(out: Any, odd: Any) -> None:
    out.write(make(odd))
    out.write(1)


@process
def writes_what_loads(out: Any, odd: Any) -> None:
    out.write(Loads(odd))


@process
def logs(odd: Any) -> None:
    logging.getLogger("odd").error("%s", make(odd), extra={"odd": make(odd)})
    warnings.warn(make(odd), stacklevel=1)


@process
def calls_its_callback(odd: Any) -> None:
    thing = make(odd)
    thread = threading.Thread(target=thing, name="odd")
    thread.start()
    thread.join()


def made(odd: Any) -> Any:
    return make(odd)


def raised(odd: Any) -> Any:
    raise make(odd)


def loads(odd: Any) -> Any:
    return Loads(odd)


def given(value: Any) -> Any:
    return value


@away(VALUE)
def away_argument(world: World, odd: Odd) -> Any:
    return th.run(gives.on(world.hosts)(make(odd)))


@away(VALUE)
def away_argument_that_loads(world: World, odd: Odd) -> Any:
    return th.run(gives.on(world.hosts)(Loads(odd)))


@away(VALUE)
def away_result(world: World, odd: Odd) -> Any:
    return th.run(makes.on(world.hosts)(odd))


@away(VALUE)
def away_result_that_loads(world: World, odd: Odd) -> Any:
    return th.run(makes_what_loads.on(world.hosts)(odd))


@away(FAILURE)
def away_failure(world: World, odd: Odd) -> Any:
    return th.run(raises.on(world.hosts)(odd))


@away(FAILURE)
def away_failure_with_a_cause(world: World, odd: Odd) -> Any:
    return th.Parallel(raises_from.on(world.hosts)(odd), takes(1))


@away(VALUE)
def away_deed(world: World, odd: Odd) -> Any:
    return th.run(does.on(world.hosts)(odd))


@away(VALUE)
def away_value(world: World, odd: Odd) -> Any:
    a, b = th.Channel("a"), th.Channel("b")
    return th.Parallel(
        writes(a.writer(), make(odd)),
        copies_all.on(world.hosts)(a.reader(), b.writer()),
        reads(b.reader()),
    )


@away(VALUE)
def away_value_that_loads(world: World, odd: Odd) -> Any:
    a, b = th.Channel("a"), co.Channel("b")
    return co.run(
        awrites(a.writer(), Loads(odd)),
        copies_all.on(world.hosts)(a.reader(), b.writer()),
        areads(b.reader()),
    )


@away(VALUE)
def away_value_from_there(world: World, odd: Odd) -> Any:
    c = th.Channel("c")
    return th.Parallel(writes_there.on(world.hosts)(c.writer(), odd), greads(c.reader()))


@away(VALUE)
def away_value_that_waits(world: World, odd: Odd) -> Any:
    """As its channel is wired."""
    c = th.Channel("c", capacity=1)
    w, r = c.writer(), c.reader()
    w.write(1)
    with th.Group() as group:
        group.start(writes(w, make(odd)))
        while not th.statistics(c).waiting_writers:
            th.yield_()
        group.start(copies_all.on(world.hosts)(r, th.Channel(capacity=9).writer()))


@away(FAILURE, WORD)
def away_words(world: World, odd: Odd) -> Any:
    return th.run(logs.on(world.hosts)(odd))


@away(FUNCTION)
def away_thread(world: World, odd: Odd) -> Any:
    return th.run(calls_its_callback.on(world.hosts)(odd))


@away(FUNCTION)
def away_function(world: World, odd: Odd) -> Any:
    thing = make(odd)
    with contextlib.suppress(Exception):
        process(thing)
    return world.hosts.call(thing, (1,), {})


@away(VALUE)
def pool_argument(world: World, odd: Odd) -> Any:
    return _of([world.pool.submit(given, make(odd)) for _ in range(3)])


@away(VALUE)
def pool_argument_that_loads(world: World, odd: Odd) -> Any:
    others = [world.pool.submit(abs, -n) for n in range(5)]
    odd_one = world.pool.submit(given, Loads(odd))
    assert [f.result() for f in others] == list(range(5))
    return _of([odd_one])


@away(VALUE)
def pool_result(world: World, odd: Odd) -> Any:
    odd_one = world.pool.submit(made, odd)
    assert world.pool.submit(abs, -4).result() == 4
    return _of([odd_one])


@away(VALUE)
def pool_result_that_loads(world: World, odd: Odd) -> Any:
    return _of([world.pool.submit(loads, odd) for _ in range(3)])


@away(FAILURE)
def pool_failure(world: World, odd: Odd) -> Any:
    return _of([world.pool.submit(raised, odd) for _ in range(3)])


@away(FUNCTION)
def pool_function(world: World, odd: Odd) -> Any:
    thing = make(odd)
    return _of([world.pool.submit(thing, 1), world.pool.submit(thing)])


@away(VALUE)
def pool_map(world: World, odd: Odd) -> Any:
    return list(world.pool.map(given, [make(odd), 1, make(odd)]))


@away(ITEMS)
def pool_map_of_it(world: World, odd: Odd) -> Any:
    return list(world.pool.map(abs, make(odd)))


@away(FUNCTION)
def pool_callback(world: World, odd: Odd) -> Any:
    future = world.pool.submit(abs, -1)
    future.add_done_callback(make(odd))
    return future.result()


def _of(futures: list[Any]) -> Any:
    """Each of them comes."""
    for future in futures:
        with contextlib.suppress(BaseException):
            future.result()
    return [future.exception() for future in futures]


@away(FAILURE)
def supervised_failure(world: World, odd: Odd) -> Any:
    return th.run(raises.on(Supervisor(world.hosts, restarts=1, backoff=0))(odd))


@away(NUMBER, WORD)
def hosts_by_options(_: World, odd: Odd) -> Any:
    thing = make(odd)
    for option in ("affinity", "nice", "max_tasks", "threads", "start", "restarts", "backoff"):
        with contextlib.suppress(Exception):
            Hosts(thing if option == "restarts" else -1, **{option: thing})
    return Supervisor(thing)


@dear(VALUE)
def own_argument(_: World, odd: Odd) -> Any:
    return th.run(gives(make(odd)))


@dear(FAILURE)
def own_failure(_: World, odd: Odd) -> Any:
    return th.Parallel(raises(odd), waits(th.Channel().reader()))


@dear(VALUE)
def own_result_that_loads(_: World, odd: Odd) -> Any:
    return th.run(makes_what_loads(odd))


@dear(VALUE)
def first_value(_: World, odd: Odd) -> Any:
    a, b = th.Channel("a"), th.Channel("b")
    return th.Parallel(
        copies_all(a.reader(), b.writer()), writes(a.writer(), make(odd)), reads(b.reader())
    )


@dear(VALUE)
def initializer(_: World, odd: Odd) -> Any:
    with Hosts(1, initializer=odd_objects.done, initargs=(odd,), start="forkserver") as hosts:
        return th.run(gives.on(hosts)(1))


@dear(VALUE)
def pool_initializer(_: World, odd: Odd) -> Any:
    with Executor(1, initializer=given, initargs=(make(odd),)) as pool:
        return _of([pool.submit(abs, -1), pool.submit(abs, -2)])


@dear(VALUE)
def pool_initializer_that_loads(_: World, odd: Odd) -> Any:
    with Executor(1, initializer=given, initargs=(Loads(odd),)) as pool:
        return _of([pool.submit(abs, -1)])

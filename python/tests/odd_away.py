"""The places where Weft touches a user's object that is sent to another OS process, or received
from it (odd_world.py).
"""

from __future__ import annotations

import contextlib
import logging
import threading
import warnings
from typing import Any

import odd_objects
from odd_objects import Loads, Odd, make
from odd_world import (
    FAILURE,
    FUNCTION,
    ITEMS,
    NUMBER,
    VALUE,
    WORD,
    World,
    areads,
    away,
    awrites,
    dear,
    gives,
    greads,
    reads,
    takes,
    waits,
    writes,
)

import weft.coroutines as co
import weft.threads as th
from weft.processes import Executor, Hosts, Supervisor, process


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
    """The value waits in its channel while the channel is connected to another OS process."""
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
    """Waits for the results of the calls. Each result must arrive."""
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

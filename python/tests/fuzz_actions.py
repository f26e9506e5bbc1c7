"""The actions of the programs of fuzz_api.py: one function for each kind of call; ACTIONS contains
their weights.
"""

from __future__ import annotations

import gc
import signal
import threading
import types
from collections.abc import Callable
from typing import Any

from fuzz_world import Hostile, World

A_WHILE = 0.5  # how many seconds a program waits for a thread that it has started


def act_process(w: World) -> Any:
    p = w.dice.choice(w.functions)(*[w.thing() for _ in range(w.dice.choice([0, 1, 2]))])
    how = w.dice.random()
    if how < 0.1:
        return p * w.dice.choice([0, 1, 2, -1, Hostile(w)])
    return p.named(w.dice.choice(["p", "", w.thing()])) if how < 0.2 else p


def act_process_use(w: World) -> Any:
    from weft._native import Process

    p = w.fitting(Process)
    which = w.dice.choice(
        ["cancel", "cancel", "result", "done", "path", "name", "id", "repr", "never", "hash"]
    )
    if which == "cancel":
        return p.cancel()
    if which == "repr":
        return repr(p)
    if which == "hash":
        return p == w.thing()
    if which == "never":
        return p._never_run()
    return getattr(p, which)


def act_channel(w: World) -> Any:
    d = w.dice
    c = w.api.Channel(
        d.choice([None, "c", "", w.thing()]),
        capacity=d.choice([0, 0, 0, 1, 2, -1, Hostile(w)]),
        overflow=d.choice(["block", "drop_oldest", "drop_newest", "unbounded", "x"]),
        immunity=d.choice([0, 1, 300]),
    )
    w.keep(c)
    w.keep(c.reader())
    return c.writer()


def act_plain_channel(w: World) -> Any:
    c = w.api.Channel()
    w.keep(c)
    w.keep(c.writer())
    return c.reader()


def act_end(w: World) -> Any:
    c = w.fitting(w.api.Channel)
    how = w.dice.choice(["reader", "writer", "+", "-", "stats", "poison", "*", "name", "repr"])
    if how == "+":
        return +c
    if how == "-":
        return -c
    if how == "*":
        return c * w.dice.choice([0, 2, -1, Hostile(w)])
    if how == "repr":
        return repr(c)
    if how == "poison":
        return c.poison(w.dice.choice([1, 2, 0, 256, Hostile(w)]))
    if how == "name":
        return c.name
    return getattr(c, how)()


def act_end_use(w: World) -> Any:
    e = w.fitting(w.api.Reader, w.api.Writer)
    how = w.dice.choice(["retire", "poison", "die", "channel", "closed", "repr", "iter"])
    if how == "poison":
        return e.poison(w.dice.choice([1, 255, -1, Hostile(w)]))
    if how == "iter":
        return iter(e)
    if how == "repr":
        return repr(e)
    return getattr(e, how)() if how in ("retire", "die") else getattr(e, how)


def moment(w: World) -> Any:
    return w.api.after(w.dice.choice([0, 1e-4, 1e-3]))


def act_communicate(w: World) -> Any:
    """Runs an operation. An operation that blocks is run as a select with a timer, so that only a
    fault makes it hang.
    """
    d = w.dice
    r, wr = w.fitting(w.api.Reader), w.fitting(w.api.Writer)
    if w.awaits:
        how = d.choice(["read", "write", "call", "anext", "extended", "sync"])
        if how == "read":
            return r.read()
        if how == "write":
            return wr.write(w.thing())
        if how == "call":
            return d.choice([lambda: r(), lambda: wr(w.thing())])()
        if how == "anext":
            return r.__anext__()
        if how == "sync":
            return w.fitting(w.api.Barrier).sync()
        return w.block(r.extended()).__aenter__()
    if d.random() < 0.5:
        return w.api.select(r, moment(w))
    return w.api.select(w.api.Output(wr, w.thing()), moment(w))


def guards(w: World) -> list[Any]:
    d = w.dice
    made: list[Any] = []
    for _ in range(d.choice([0, 1, 2, 3])):
        how = d.choice(
            ["in", "in", "out", "make", "after", "at", "skip", "barrier", "timer", "any", "when"]
        )
        if how == "in":
            made.append(w.fitting(w.api.Reader))
        elif how == "out":
            made.append(w.api.Output(w.fitting(w.api.Writer), w.thing()))
        elif how == "make":
            made.append(w.api.Output(w.fitting(w.api.Writer), make=Hostile(w)))
        elif how == "after":
            made.append(w.api.after(w.seconds()))
        elif how == "at":
            made.append(w.api.at(w.seconds()))
        elif how == "skip":
            made.append(w.api.skip())
        elif how == "barrier":
            made.append(w.fitting(w.api.Barrier))
        elif how == "timer":
            made.append(w.fitting(w.api.Timer))
        elif how == "when":
            made.append(w.api.Input(reader=w.fitting(w.api.Reader)).when(Hostile(w)))
        else:
            made.append(w.thing())
    return made


def act_select(w: World) -> Any:
    given = guards(w)
    if not w.awaits:
        given.append(moment(w))
    return w.api.select(*given, mode=w.dice.choice(["fair", "priority", "random", "x"]))


def act_alternative(w: World) -> Any:
    given = [*guards(w), moment(w)]  # a process that selects by the alternative may block
    return w.api.Alternative(*given, mode=w.dice.choice(["fair", "priority", "random"]))


def act_alternative_use(w: World) -> Any:
    a = w.fitting(w.api.Alternative)
    how = w.dice.choice(["select", "select", "enable", "close", "enter"])
    if how == "enable":  # usually not the last guard, which is the timer
        return a.enable(w.dice.choice([0, -1, 99]), Hostile(w))
    if how == "enter":
        with a:
            return w.call()
    return getattr(a, how)()


def act_operation(w: World) -> Any:
    """Steps an object that can be awaited, as a driver of the object would."""
    candidates = [
        t
        for t in w.things
        if hasattr(t, "send") and hasattr(t, "throw") and not isinstance(t, types.ModuleType)
    ]
    o = w.dice.choice(candidates) if candidates else w.thing()
    if isinstance(o, w.api.Reader) and not w.awaits:
        return None  # next() reads, and if it blocks no timer ends the read
    how = w.dice.choice(["send", "next", "throw", "close", "await", "drop"])
    if how == "send":
        return o.send(w.dice.choice([None, 1, Hostile(w)]))
    if how == "next":
        return next(o)
    if how == "throw":
        return o.throw(
            w.dice.choice([ValueError, ValueError("v"), w.api.Cancelled, GeneratorExit, 5])
        )
    if how == "close":
        return o.close()
    if how == "drop":
        w.things = [t for t in w.things if t is not o]
        return None
    return o.__await__()


def act_timer(w: World) -> Any:
    d = w.dice
    how = d.choice(["Barrier", "Timer", "sleep", "tick", "enrol", "resign", "when", "now"])
    if how == "Barrier":
        return w.api.Barrier(d.choice([0, 1, 2, -1, Hostile(w)]))
    if how == "Timer":
        return w.api.Timer(period=d.choice([1e-3, 0, Hostile(w)]))
    if how == "sleep":
        return w.api.sleep(d.choice([0, 1e-4, -1, True]))
    if how == "tick":
        return w.api.Timer(1e-4).tick()
    if how == "now":
        return w.api.now()
    if how == "when":
        return w.fitting(w.api.Barrier, w.api.Timer).when(Hostile(w))
    return getattr(w.fitting(w.api.Barrier), how)()


def processes(w: World) -> list[Any]:
    from weft._native import Process

    made: list[Any] = []
    for _ in range(w.dice.choice([0, 1, 1, 2])):
        made.append(act_process(w) if w.dice.random() < 0.7 else w.fitting(Process))
    # Iterating over a reader would read.
    return [p for p in made if w.awaits or not isinstance(p, w.api.Reader)]


def act_compose(w: World) -> Any:
    how = w.dice.choice([w.api.Parallel, w.api.Parallel, w.api.Sequence, w.api.Spawn])
    return how(*processes(w))


def act_run(w: World) -> Any:
    if w.depth > 2:
        return None
    if w.dice.random() < 0.2:
        return w.api.run_async(*processes(w))
    return w.api.run(*processes(w), clock=w.dice.choice(["steady", "virtual", "x"]))


def act_group(w: World) -> Any:
    d = w.dice
    g = w.of(w.api.Group)
    if g is None or d.random() < 0.25:
        return w.api.Group(clock=d.choice(["steady", "steady", "virtual", "x"]))
    how = d.choice(
        [
            "start",
            "start",
            "cancel",
            "enter",
            "enter",
            "exit",
            "exit",
            "aenter",
            "aexit",
            "with",
            "drop",
        ]
    )
    if how == "start":
        return g.start(act_process(w) if d.random() < 0.8 else w.thing())
    if how == "cancel":
        return g.cancel()
    if how == "enter":
        return g.__enter__()
    if how == "exit":
        return g.__exit__(None, d.choice([None, ValueError("left")]), None)
    if how == "aenter":
        return g.__aenter__()
    if how == "aexit":
        return g.__aexit__(None, d.choice([None, ValueError("left")]), None)
    if how == "drop":
        w.things = [t for t in w.things if t is not g]
        return None
    with w.api.Group() as inner:
        w.keep(inner)
        inner.start(act_process(w))
        w.call()
    return None


def act_generator(w: World) -> Any:
    def holds() -> Any:
        with w.api.Group() as g:
            g.start(act_process(w))
            yield g
            w.call()
            yield

    generators = [t for t in w.things if isinstance(t, types.GeneratorType)]
    if generators and w.dice.random() < 0.6:
        g = w.dice.choice(generators)
        if w.dice.random() < 0.5:
            return next(g)
        return g.close()
    made = holds()
    w.keep(next(made))
    return made


def act_thread(w: World) -> Any:
    t = threading.Thread(target=w.calls, args=(w.dice.choice([1, 2]),), daemon=True)
    t.start()
    t.join(A_WHILE)
    return None


def act_io(w: World) -> Any:
    call = w.api.io(Hostile(w) if w.dice.random() < 0.3 else (lambda *_: w.thing()))(1)
    if hasattr(call, "run") and w.dice.random() < 0.3:
        return w.dice.choice([call.run, call.wait])()
    return call


def act_misc(w: World) -> Any:
    d = w.dice
    from weft import observe

    actions: list[Callable[[], Any]] = [
        lambda: w.api.poison(w.thing(), w.thing(), strength=w.thing()),
        lambda: w.api.retire(w.thing()),
        lambda: w.api.statistics(w.thing()),
        lambda: w.api.process(w.thing()),
        lambda: w.api.current_process(),
        lambda: observe.deadlocks(),
        lambda: d.choice(w.functions).on(w.thing()),
        lambda: d.choice(w.functions).__get__(w.thing(), object),
        lambda: repr(d.choice(w.functions)),
        lambda: gc.collect(),
        lambda: w.things.clear(),
        lambda: w.api.ChannelArray([w.thing()]),
        lambda: w.thing() == w.thing(),
    ]
    return d.choice(actions)()


def act_observe(w: World) -> Any:
    from weft import observe

    manager = w.dice.choice(
        [
            lambda: observe.measure(),
            lambda: observe.debug(),
            lambda: observe.watching_deadlocks("warn"),
        ]
    )()
    with manager:
        return w.call()


def act_alarm(w: World) -> Any:
    """Sets a timer to a moment in the near future; the handler of its signal raises."""
    if threading.current_thread() is not threading.main_thread():
        return None
    if w.backend in ("tasks", "guest"):
        # An exception that is raised within asyncio's own code may stop that code forever.
        # test_asyncio_signals.py tests Weft's own code.
        return None
    signal.setitimer(signal.ITIMER_REAL, w.dice.choice([1e-6, 1e-5, 1e-4, 1e-3]))
    return None


ACTIONS: list[tuple[str, Callable[[World], Any]]] = [
    (f.__name__, f)
    for f, weight in [
        (act_process, 3),
        (act_process_use, 3),
        (act_channel, 2),
        (act_plain_channel, 3),
        (act_end, 2),
        (act_end_use, 1),
        (act_communicate, 6),
        (act_select, 4),
        (act_alternative, 2),
        (act_alternative_use, 4),
        (act_operation, 5),
        (act_timer, 3),
        (act_compose, 4),
        (act_run, 2),
        (act_group, 5),
        (act_generator, 2),
        (act_thread, 1),
        (act_io, 1),
        (act_misc, 2),
        (act_observe, 1),
        (act_alarm, 1),
    ]
    for _ in range(weight)
]

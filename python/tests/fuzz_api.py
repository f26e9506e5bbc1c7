"""Abuses the whole public API at random: nothing may crash the interpreter, and nothing may hang (rules 11.1, 12.1).

    python python/tests/fuzz_api.py [--seed A[:B]] [--seconds N] [--backend NAME] [--shrink] [--steps N]

Each seed is a program of calls with wrong and right arguments, among them objects that raise, collect or re-enter where the
interpreter calls them, in wrong orders, with signals that raise. Programs run in child processes; one that dies, or makes no
progress for a while, is run again alone, shrunk to the calls that it takes, and printed with its seed. The last line counts.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import faulthandler
import gc
import os
import random
import signal
import subprocess
import sys
import threading
import time
import types
import warnings
from collections.abc import Callable
from typing import Any

BACKENDS = ("coroutines", "threads", "greenlets", "tasks", "guest", "plain")
HANG = float(
    os.environ.get("FUZZ_HANG", "12")
)  # seconds in which a program of some dozens of calls does not end
EACH = 25  # programs in one child


class Bell(BaseException):
    """What the handler of the alarm raises."""


# ------------------------------------------------------------------------------------------------ objects that misbehave


class Hostile:
    """Wherever the interpreter calls it, it does what its world's dice say: raises, collects, calls the API again."""

    def __init__(self, world: World) -> None:
        self.world = world

    def _act(self) -> None:
        self.world.reenter()

    def __bool__(self) -> bool:
        self._act()
        return self.world.dice.random() < 0.5

    def __index__(self) -> int:
        self._act()
        return self.world.dice.choice([0, 1, -1, 3])

    def __float__(self) -> float:
        self._act()
        return self.world.dice.choice([0.0, 1e-4, -1.0, 1e308, float("nan")])

    def __eq__(self, other: object) -> bool:
        self._act()
        return self.world.dice.random() < 0.5

    def __hash__(self) -> int:
        return 7

    def __repr__(self) -> str:
        self._act()
        return "<hostile>"

    def __iter__(self) -> Any:
        self._act()
        return iter([self.world.thing(), self.world.thing()])

    def __call__(self, *_: Any, **__: Any) -> Any:
        self._act()
        return self.world.thing()

    def __await__(self) -> Any:
        self._act()
        yield self.world.dice.choice([None, 1, self])

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self._act()


# ------------------------------------------------------------------------------------------------ a world


class World:
    """The things of one program, and what may be done with them."""

    DEPTH = 3  # of calls from within calls

    def __init__(self, seed: int, backend: str, only: set[int] | None, steps: int) -> None:
        self.seed = seed
        self.dice = random.Random(f"{seed} {backend}")
        self.backend = backend
        self.api = api_of(backend)
        self.only = only
        self.steps = steps
        self.count = 0
        self.depth = 0
        self.things: list[Any] = []
        self.over = False
        self.trace = os.environ.get("FUZZ_TRACE") == "1"
        self.functions = functions_of(self)

    @property
    def awaits(self) -> bool:
        """Whether operations are awaited where this is called; elsewhere they block, and are given a bound."""
        from weft._native import where

        return where() in (1, 4)

    # --- what calls are made with

    def keep(self, thing: Any) -> None:
        if thing is None or isinstance(thing, (int, float, str, bool)):
            return
        if isinstance(thing, (list, tuple)):
            for one in thing[:4]:
                self.keep(one)
            return
        self.things.append(thing)
        if len(self.things) > 40:
            self.things.pop(self.dice.randrange(len(self.things)))

    def of(self, *kinds: type) -> Any:
        found = [t for t in self.things if isinstance(t, kinds)]
        return self.dice.choice(found) if found else None

    def thing(self) -> Any:
        d = self.dice
        pick = d.random()
        if pick < 0.5 and self.things:
            return d.choice(self.things)
        if pick < 0.6:
            return Hostile(self)
        return d.choice(
            [
                None,
                0,
                1,
                -1,
                2.5,
                0.0,
                "",
                "steady",
                "threads",
                [],
                (),
                {},
                10**30,
                float("inf"),
                object(),
            ]
        )

    def fitting(self, *kinds: type) -> Any:
        """Mostly what is wanted."""
        if self.dice.random() < 0.85:
            found = self.of(*kinds)
            if found is not None:
                return found
        return self.thing()

    def seconds(self) -> Any:
        return self.dice.choice([0, 1e-4, 1e-3, -1, True, Hostile(self)])

    # --- doing

    def reenter(self) -> None:
        d = self.dice
        what = d.random()
        if self.over or self.depth >= self.DEPTH or what < 0.4:
            return
        if what < 0.55:
            gc.collect(0)
        elif what < 0.7:
            raise d.choice([ValueError, RuntimeError, KeyError, StopIteration])("hostile")
        else:
            self.call()

    def call(self) -> Any:
        """One call of the API, unless this program is a shrunk one that leaves it out."""
        self.count += 1
        n = self.count
        if n > self.steps or self.over:
            return None
        name, action = self.dice.choice(ACTIONS)
        dice = self.dice
        self.dice = random.Random(
            f"{self.seed} {self.backend} {n}"
        )  # so that leaving one out changes no other
        if self.only is not None and n not in self.only:
            self.dice = dice
            return None
        if self.trace:
            where = threading.current_thread().name
            print(f"{n}: {'  ' * self.depth}{name} [{where}]", file=sys.stderr, flush=True)
        self.depth += 1
        try:
            result = action(self)
            self.keep(result)
            return result
        except Bell:
            raise
        except BaseException as e:  # whatever it is, it was raised
            del e
            return None
        finally:
            self.depth -= 1
            self.dice = dice

    async def await_it(self, thing: Any) -> Any:
        try:
            return await thing
        except (GeneratorExit, asyncio.CancelledError, Bell):
            raise
        except self.api.Cancelled:
            return None
        except Exception as e:
            del e
            return None

    async def body(self, n: int) -> None:
        for _ in range(n):
            result = self.call()
            if (
                self.dice.random() < 0.7
                and hasattr(result, "__await__")
                and not isinstance(result, types.CoroutineType)
            ):
                await self.await_it(bounded(self, result))
            elif self.dice.random() < 0.2:
                await self.await_it(self.api.yield_())

    def calls(self, n: int) -> None:
        for _ in range(n):
            self.call()


def api_of(backend: str) -> Any:
    import weft.coroutines
    import weft.greenlets
    import weft.threads

    return {"threads": weft.threads, "greenlets": weft.greenlets, "plain": weft.threads}.get(
        backend, weft.coroutines
    )


def bounded(w: World, awaitable: Any) -> Any:
    """Awaited for a moment only: what nobody would ever answer is withdrawn by its driver."""

    @types.coroutine
    def drive() -> Any:
        steps = awaitable.__await__()
        value = None
        rounds = w.dice.choice([1, 3, 8])
        for _ in range(rounds):
            try:
                waited = steps.send(value) if hasattr(steps, "send") else next(steps)
            except StopIteration as e:
                return e.value
            if waited is not None:  # a future: it may be long
                with contextlib.suppress(Exception):
                    steps.close()
                waited.cancel() if hasattr(waited, "cancel") else None
                return None
            if w.dice.random() < 0.5:
                how = w.dice.random()
                if how < 0.4 and hasattr(steps, "close"):
                    steps.close()
                elif how < 0.8 and hasattr(steps, "throw"):
                    with contextlib.suppress(ValueError):
                        steps.throw(ValueError("driver"))
                break
            yield
        return None

    return drive()


# ------------------------------------------------------------------------------------------------ processes


def functions_of(w: World) -> list[Any]:
    import weft.coroutines
    import weft.greenlets
    import weft.threads

    @weft.coroutines.process
    async def coroutine(*_: Any, **__: Any) -> Any:
        await w.body(w.dice.choice([0, 1, 2, 4]))
        if w.dice.random() < 0.15:
            raise ValueError("process")
        return w.thing()

    @weft.threads.process
    def thread(*_: Any, **__: Any) -> Any:
        w.calls(w.dice.choice([0, 1, 2]))
        return w.thing()

    @weft.greenlets.process
    def green(*_: Any, **__: Any) -> Any:
        w.calls(w.dice.choice([0, 1, 2, 4]))
        if w.dice.random() < 0.15:
            raise ValueError("process")
        return None

    return [coroutine, coroutine, green, thread, coroutine.on("threads")]


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
    """An operation: where it blocks, as a select with a bound, so that only a fault hangs."""
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
        return r.extended().__aenter__()
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
    given = [*guards(w), moment(w)]  # whoever selects by it may block
    return w.api.Alternative(*given, mode=w.dice.choice(["fair", "priority", "random"]))


def act_alternative_use(w: World) -> Any:
    a = w.fitting(w.api.Alternative)
    how = w.dice.choice(["select", "select", "enable", "close", "enter"])
    if how == "enable":  # mostly not the last one, which is the bound
        return a.enable(w.dice.choice([0, -1, 99]), Hostile(w))
    if how == "enter":
        with a:
            return w.call()
    return getattr(a, how)()


def act_operation(w: World) -> Any:
    """Steps something that may be awaited by anybody."""
    candidates = [
        t
        for t in w.things
        if hasattr(t, "send") and hasattr(t, "throw") and not isinstance(t, types.ModuleType)
    ]
    o = w.dice.choice(candidates) if candidates else w.thing()
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
        return w.api.Timer(period=d.choice([1e-3, 1e308, 0, Hostile(w)]))
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
    return made


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
    t.join(HANG / 4)
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
    """A signal whose handler raises, at some point that is near."""
    if threading.current_thread() is not threading.main_thread():
        return None
    if w.backend in ("tasks", "guest"):
        return None  # raised within asyncio's own code it may stop that for ever: test_asyncio_signals.py has ours
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


# ------------------------------------------------------------------------------------------------ one program


def on_alarm(*_: Any) -> None:
    raise Bell


def play(seed: int, backend: str, only: set[int] | None, steps: int) -> None:
    w = World(seed, backend, only, steps)
    signal.signal(signal.SIGALRM, on_alarm)

    def until_quiet(step: Callable[[], Any]) -> None:
        with contextlib.suppress(BaseException):
            step()

    rounds = steps // 4
    if backend == "plain":
        for _ in range(steps):
            until_quiet(w.call)
    elif backend == "tasks":

        async def main() -> None:
            await asyncio.wait(
                [asyncio.ensure_future(w.body(rounds)) for _ in range(3)], timeout=HANG / 4
            )

        until_quiet(lambda: asyncio.run(main()))
    elif backend == "guest":

        async def hosts() -> None:
            network = [
                asyncio.ensure_future(
                    w.api.run_async([w.api.process(w.body)(rounds) for _ in range(3)])
                )
            ]
            await asyncio.wait(network, timeout=HANG / 4)
            # One request raises one Cancelled (rule 6.1), and a body goes on after it: it begins nothing more.
            w.over = True
            network[0].cancel()
            await network[0]

        until_quiet(lambda: asyncio.run(hosts()))
    elif backend == "coroutines":
        until_quiet(lambda: w.api.run([w.api.process(w.body)(rounds) for _ in range(3)]))
    else:
        until_quiet(lambda: w.api.run([w.api.process(w.calls)(rounds) for _ in range(3)]))
    signal.setitimer(signal.ITIMER_REAL, 0)
    w.over = True
    until_quiet(w.things.clear)
    until_quiet(gc.collect)


# ------------------------------------------------------------------------------------------------ children


def child(seeds: range, backend: str, only: set[int] | None, steps: int) -> None:
    """Plays programs; says on its output which one, so that whoever watches knows at which it died."""
    faulthandler.enable()
    warnings.simplefilter("ignore")
    sys.unraisablehook = lambda _: None
    threading.excepthook = lambda _: None
    for seed in seeds:
        print(seed, flush=True)
        try:
            play(seed, backend, only, steps)
        except Bell:  # the alarm came between two steps, where nothing of Weft runs
            signal.setitimer(signal.ITIMER_REAL, 0)
    print("done", flush=True)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # threads of programs that were left are no part of what is tested


def start(
    seeds: range, backend: str, steps: int, only: set[int] | None = None, trace: bool = False
) -> Any:
    given = [
        sys.executable,
        __file__,
        "--child",
        f"{seeds.start}:{seeds.stop}",
        "--backend",
        backend,
    ]
    given += ["--steps", str(steps)]
    if only is not None:
        given += ["--only", ",".join(map(str, sorted(only)))]
    env = {**os.environ, "FUZZ_TRACE": "1" if trace else "0", "PYTHONHASHSEED": "0"}
    return subprocess.Popen(
        given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", env=env
    )


def outcome(
    seeds: range, backend: str, steps: int, only: set[int] | None = None, trace: bool = False
) -> Any:
    """(how it ended or None, the seed at which, what it said)"""
    p = start(seeds, backend, steps, only, trace)
    said: list[str] = []
    errors: list[str] = []
    reader = threading.Thread(target=lambda: errors.extend(p.stderr))
    reader.start()
    stalled = threading.Event()
    limit: list[Any] = []

    def stall() -> None:
        stalled.set()
        p.send_signal(signal.SIGABRT)  # faulthandler says where
        try:
            p.wait(5)
        except subprocess.TimeoutExpired:
            p.kill()

    def begin() -> None:
        t = threading.Timer(HANG * (4 if os.environ.get("WEFT_SANITIZED") else 1), stall)
        t.daemon = True
        t.start()
        limit[:] = [t]

    begin()
    for line in p.stdout:
        limit[0].cancel()
        said.append(line.strip())
        begin()
    limit[0].cancel()
    p.wait()
    reader.join()
    if said and said[-1] == "done":
        return None, None, ""
    seed = int(said[-1]) if said else seeds.start
    how = (
        "hang"
        if stalled.is_set()
        else f"signal {-p.returncode}"
        if p.returncode < 0
        else f"status {p.returncode}"
    )
    return how, seed, "".join(errors)


def shrink(seed: int, backend: str, steps: int, how: str, seconds: float) -> set[int] | None:
    """Calls without which it does not fail so any more, by halves."""
    until = time.monotonic() + seconds
    kept = sorted(range(1, steps + 1))

    def fails(calls: list[int]) -> bool:
        ended, _, _ = outcome(range(seed, seed + 1), backend, steps, set(calls))
        return ended is not None and (ended == how or ended.startswith("signal"))

    if not fails(kept):
        return None
    size = len(kept) // 2
    while size >= 1 and time.monotonic() < until:
        at = 0
        while at < len(kept) and time.monotonic() < until:
            fewer = kept[:at] + kept[at + size :]
            if fewer and fails(fewer):
                kept = fewer
            else:
                at += size
        size //= 2
    return set(kept)


def fuzz(
    seeds: range, backends: list[str], seconds: float, steps: int, shrinking: float
) -> tuple[int, int]:
    passed = failed = 0
    end = time.monotonic() + seconds
    at = dict.fromkeys(backends, seeds.start)
    while time.monotonic() < end and any(at[b] < seeds.stop for b in backends):
        for backend in backends:
            some = range(at[backend], min(at[backend] + EACH, seeds.stop))
            if not some or time.monotonic() >= end:
                continue
            how, seed, said = outcome(some, backend, steps)
            if how is None:
                passed += len(some)
                at[backend] = some.stop
                continue
            passed += seed - some.start
            failed += 1
            at[backend] = seed + 1
            print(f"FAILED: {how}: fuzz_api.py --seed {seed} --backend {backend} --steps {steps}")
            print("\n".join(said.splitlines()[-30:]))
            if shrinking and (kept := shrink(seed, backend, steps, how, shrinking)):
                _, _, trace = outcome(range(seed, seed + 1), backend, steps, kept, trace=True)
                print(f"shrunk to --only {','.join(map(str, sorted(kept)))}")
                print("\n".join(trace.splitlines()[:60]))
            sys.stdout.flush()
    return passed, failed


def main() -> int:
    say = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    say.add_argument("--seed", default="0:1000000000", help="one, or A:B")
    say.add_argument("--seconds", type=float, default=30.0)
    say.add_argument("--backend", default="all", help=f"{', '.join(BACKENDS)}, or all")
    say.add_argument("--steps", type=int, default=60, help="calls in a program")
    say.add_argument(
        "--shrink", type=float, default=0.0, help="seconds to spend on shrinking each failure"
    )
    say.add_argument("--only", default=None, help="the calls of a shrunk program")
    say.add_argument("--child", default=None, help=argparse.SUPPRESS)
    given = say.parse_args()
    first, _, last = (given.child or given.seed).partition(":")
    seeds = range(int(first), int(last) if last else int(first) + 1)
    only = {int(n) for n in given.only.split(",")} if given.only else None
    if given.child:
        child(seeds, given.backend, only, given.steps)
    backends = list(BACKENDS) if given.backend == "all" else [given.backend]
    if only is not None:
        how, _, said = outcome(seeds, given.backend, given.steps, only, trace=True)
        print(said, how or "fine", sep="\n")
        return int(how is not None)
    passed, failed = fuzz(seeds, backends, given.seconds, given.steps, given.shrink)
    print(f"{passed} passed, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())

"""A toy package with weft's names, over the model, so that tests can run the Python driver without
any runtime.

The toy has one scheduler, first come, first served. A process is a coroutine, or a thread that runs
only while the scheduler lets it. Both types of process pass a function that starts the operation to
the scheduler, and receive the outcome. `package(...)` makes the module; `broken` names a defect
that the module has.
"""

from __future__ import annotations

import threading
import types
from collections import deque
from collections.abc import Callable
from typing import Any

from conformance.model import World
from conformance.objects import READ, WRITE, BadUse, Chan, Guard, Op
from conformance.objects import Barrier as BarrierState


class _Error(Exception):
    def __init__(self, **what: Any):
        super().__init__(str(what))
        self.__dict__.update(what)


class Retired(_Error): ...


class Poisoned(_Error): ...


class PeerDied(_Error): ...


class Cancelled(_Error): ...


class Deadlock(_Error): ...


class Many(_Error): ...  # several failures


class NoResult(_Error): ...  # stands for a missing result: `how` its process ended (rule 7.1)


ERRORS = {"Retired": Retired, "Poisoned": Poisoned, "PeerDied": PeerDied, "Cancelled": Cancelled}


class Some:
    """A guard: its kind, its channel, barrier or time, and its precondition."""

    def __init__(self, kind: str, what: Any = None, value: Any = None, make: Any = None):
        self.kind, self.what, self.value, self.make, self.pre = kind, what, value, make, True
        self.ends = False

    def when(self, holds: bool) -> Some:
        self.pre = holds
        return self

    def ending(self, ended: str) -> Some:
        self.ends = ended == "raise"
        return self


def Input(end: Any, ended: str = "") -> Some:
    return Some("in", end).ending(ended)


def Output(end: Any, value: Any = None, make: Any = None, ended: str = "") -> Some:
    return Some("out", end, value, make).ending(ended)


def after(span: int) -> Some:
    return Some("time", world.now + span) if span > 0 else Some("skip")  # 5.7


def at(time: int) -> Some:
    return Some("time", time)


def skip() -> Some:
    return Some("skip")


class Process:
    def __init__(self, function: Callable[..., Any], args: tuple):
        self.function, self.args = function, args
        self.ends = [a for a in args if hasattr(a, "side")]
        for e in self.ends:
            world.hold(e.number, id(self))
        self.parent: Any = None
        self.kids: list[Process] = []
        self.cancel = self.done = self.started = False
        self.error: BaseException | None = None
        self.result: Any = NoResult(how="cancelled")  # remains until the process has returned
        self.wake: Any = None  # the function that makes the process continue
        # returns (ok, value or error) once the process can continue
        self.waits: Callable[[], Any] | None = None
        self.path = function.__name__

    # resume() and throw() run a process up to its next operation.
    def resume(self, how: tuple[bool, Any]) -> None:
        global current
        current, self.started = self, True
        if threaded:
            if self.wake is None:
                self.wake, self.back = threading.Semaphore(0), threading.Semaphore(0)
                threading.Thread(target=self._thread, daemon=True).start()
            self.how = how
            self.wake.release()
            self.back.acquire()
            return
        if self.wake is None:
            self.wake = self.function(*self.args)
        try:
            ok, value = how
            self.waits = self.wake.send(value) if ok else self.wake.throw(value)
        except StopIteration as end:
            self.result = end.value
            finish(self)
        except BaseException as error:
            self.error = error
            finish(self)

    def _thread(self) -> None:
        self.wake.acquire()
        try:
            self.result = self.function(*self.args)
        except BaseException as error:
            self.error = error
        finish(self)
        self.back.release()


world: World
current: Process
threaded = False
broken = ""
everyone: list[Process] = []


@types.coroutine
def _pause(waits: Callable[[], Any]) -> Any:
    return (yield waits)


def operate(start: Callable[[Process], Callable[[], Any]]) -> Any:
    """Starts an operation now; returns its result (threads) or an awaitable of the result."""
    if threaded:
        p = current
        p.waits = start(p)
        p.back.release()
        p.wake.acquire()
        ok, value = p.how
        if not ok:
            raise value
        return value

    async def awaited() -> Any:
        return await _pause(start(current))

    return awaited()


def commits(op: Op, shape: Callable[[tuple], Any]) -> Callable[[Process], Callable[[], Any]]:
    """Does an operation in the model's world. `shape` makes its result, or raises."""

    def start(p: Process) -> Callable[[], Any]:
        pid = op.pid = id(p)
        if p.cancel:
            p.cancel = False
            return lambda: (False, Cancelled())
        try:
            world.begin(op)
        except BadUse as error:
            wrong = error
            return lambda: (False, wrong)
        hot = world.choices(op)
        if hot:
            # A fair select starts at another guard each time.
            p.turn = getattr(p, "turn", 0) + (op.kind == "select")
            world.commit(
                pid,
                hot[0]
                if op.mode == "priority" or broken == "unfair"
                else min(hot, key=lambda i: (i + p.turn) % len(op.guards)),
            )
            if op.state == "making":
                world.make(pid)
        else:
            for i in range(len(op.guards)):
                world.enrol(pid, i)

        def ask() -> Any:
            if world.ops[pid].state == "making":
                world.make(pid)
            if world.ops[pid].state != "done":
                return None
            try:
                return True, shape(world.take(pid))
            except BaseException as error:
                return False, error

        return ask

    return start


def failing(out: tuple, value: Any = None) -> BaseException:
    if out[0] == "Fail":
        from conformance.python_player import Fail

        return Fail()
    more = {"strength": out[2]} if out[0] == "Poisoned" else {}
    guard = out[1] if len(out) > 1 else None
    return ERRORS[out[0]](
        # the outcome may name any of several guards (5.6)
        guard=guard[0] if isinstance(guard, tuple) else guard,
        value=None if broken == "no value back" else value,
        **more,
    )


def result(out: tuple, index: bool = False, value: Any = None) -> Any:
    if out[0] != "ok":
        raise failing(out, value)
    got = out[2] if len(out) > 2 else None
    if isinstance(got, tuple):
        got = End(world.ends[got[1]].chan, world.ends[got[1]].side, got[1])
        current.ends.append(got)
    return (out[1], got) if index else got


class End:
    def __init__(self, chan: int, side: int, number: int | None = None):
        if number is None:
            number, why = world.make_end(chan, side)
            if why:
                raise ERRORS[why](guard=None, value=None, strength=world.chans[chan].poison)
        self.chan, self.side, self.number = chan, side, number

    def guard(self, **more: Any) -> Guard:
        return Guard("in" if self.side == READ else "out", self.chan, self.number, **more)

    def read(self) -> Any:
        def shape(out: tuple) -> Any:
            return f"{result(out)}0" if broken == "wrong value" and out[0] == "ok" else result(out)

        return operate(commits(Op(0, "read", (Guard("in", self.chan, self.number),)), shape))

    def write(self, value: Any) -> Any:
        sent = ("end", value.number) if isinstance(value, End) else value
        return operate(
            commits(
                Op(0, "write", (Guard("out", self.chan, self.number, sent),)),
                lambda out: result(out, value=value),
            )
        )

    def __aiter__(self) -> Any:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.read()
        except Retired:
            raise StopAsyncIteration from None

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        try:
            return self.read()
        except Retired:
            raise StopIteration from None

    def extended(self) -> Any:
        end = self

        class Block:
            def enter(self) -> Any:
                return operate(
                    commits(Op(0, "ext", (Guard("in", end.chan, end.number),), ext=True), result)
                )

            def leave(self, *_: Any) -> Any:
                world.release(id(current))
                return operate(lambda p: lambda: (True, None))

            __aenter__ = __enter__ = enter
            __aexit__ = __exit__ = leave

        return Block()

    def retire(self) -> None:
        if broken != "deaf retire":
            world.close(self.number, "retired")

    def die(self) -> None:
        world.close(self.number, "died", died=True)

    def poison(self, strength: int = 1) -> None:
        world.poison(self.chan, strength)


class Channel:
    def __init__(self, **spec: Any):
        world.chans.append(Chan(**spec))
        self.number = len(world.chans) - 1

    def reader(self) -> End:
        return End(self.number, READ)

    def writer(self) -> End:
        return End(self.number, WRITE)

    def stats(self) -> types.SimpleNamespace:
        return types.SimpleNamespace(dropped=world.chans[self.number].dropped)


class Barrier:
    def __init__(self, n: int):
        world.barriers.append(BarrierState(n))
        self.number, self.kind, self.pre = len(world.barriers) - 1, "barrier", True
        self.what = self.number

    def when(self, holds: bool) -> Some:
        some = Some("barrier", self.number)
        return some.when(holds)

    def sync(self) -> Any:
        return operate(commits(Op(0, "sync", (Guard("barrier", self.number),)), result))

    def enrol(self) -> None:
        world.enrol_party(self.number)

    def resign(self) -> None:
        world.resign(self.number)


def select(*guards: Any, mode: str = "fair") -> Any:
    made: list[Guard] = []
    functions: dict[int, Any] = {}
    for k, g in enumerate(guards):
        if g.kind == "in":
            made.append(Guard("in", g.what.chan, g.what.number, pre=g.pre, ends=g.ends))
        elif g.kind == "out":
            value, raises, function = g.value, False, g.make
            if (
                function
                # The toy must know beforehand what the function returns or raises, so it reads the
                # function's closure. The function itself is called later.
            ):
                functions[k] = function
                cells = dict(
                    zip(
                        function.__code__.co_freevars,
                        (c.cell_contents for c in function.__closure__),
                        strict=True,
                    )
                )
                value, raises = cells["value"], cells["g"]["fn"] == "raise"
            made.append(
                Guard(
                    "out", g.what.chan, g.what.number, value, raises, g.pre, bool(function), g.ends
                )
            )
        elif g.kind == "time":
            made.append(Guard("time", value=g.what, pre=g.pre))
        elif g.kind == "barrier":
            made.append(Guard("barrier", g.what, pre=g.pre))
        else:
            made.append(Guard("skip", pre=g.pre))

    def shape(out: tuple) -> Any:
        if out[0] in ("ok", "Fail") and out[1] in functions:
            functions[out[1]]()
        if broken == "eager functions":
            for f in functions.values():
                f()
        return result(out, index=True)

    return operate(commits(Op(0, "select", tuple(made), mode), shape))


def sleep(span: int) -> Any:
    return operate(commits(Op(0, "sleep", (Guard("time", value=world.now + span),)), result))


def yield_() -> Any:
    return operate(lambda p: lambda: (True, None))


def now() -> int:
    return world.now


def process(function: Callable[..., Any]) -> Callable[..., Process]:
    return lambda *args: Process(function, args)


def start(p: Process, parent: Any) -> None:
    p.parent, p.waits = parent, lambda: (True, None)
    everyone.append(p)


def group(kids: tuple[Process, ...], one_by_one: bool) -> Any:
    def begin(p: Process) -> Callable[[], Any]:
        p.kids = list(kids)
        for k in kids[:1] if one_by_one else kids:
            start(k, p)
        if p.cancel:
            request_cancel(p)

        def ask() -> Any:
            if one_by_one and not p.cancel and not any(k.error and failed(k) for k in p.kids):
                for k in p.kids:
                    if not k.done:
                        if k.parent is None:
                            start(k, p)
                        return None
            for k in p.kids:
                if k.parent is None and not k.done:
                    finish(k)
            if not all(k.done for k in p.kids):
                return None
            bad = [k.error for k in p.kids if failed(k)]
            answer = [came_to(k) for k in p.kids]
            p.kids = []
            if p.cancel:
                p.cancel = False
                return False, Cancelled()
            if bad:
                return False, bad[0] if len(bad) == 1 else Many(exceptions=bad)
            return True, answer

        return ask

    return operate(begin)


def Parallel(*kids: Process) -> Any:
    return group(kids, False)


def Sequence(*kids: Process) -> Any:
    return group(kids, True)


def Spawn(p: Process) -> None:
    start(p, "root")


def failed(p: Process) -> bool:
    return p.error is not None and not isinstance(p.error, (Retired, Poisoned, Cancelled))


def came_to(p: Process) -> Any:
    """Returns the result of a process, or its NoResult."""
    return p.result if p.error is None else NoResult(how=type(p.error).__name__.lower())


def request_cancel(p: Process) -> None:
    if p.done:
        return
    if p.kids:
        p.cancel = True
        for k in p.kids:
            request_cancel(k)
    elif not world.cancel(id(p)):
        p.cancel = True


def finish(p: Process) -> None:
    if isinstance(p.error, Poisoned) and broken != "no spread":
        for e in p.ends:
            if not world.ends[e.number].how:
                world.poison(e.chan, p.error.strength)
    for e in p.ends:
        world.let_go(e.number, id(p))
    p.done = True
    if failed(p):
        for q in everyone if p.parent == "root" else p.parent.kids:
            if q is not p and q.parent == p.parent:
                request_cancel(q)


def run(root: Process, clock: str) -> Any:
    global current
    start(root, "root")
    stuck = None
    queue: deque[Process] = deque()
    while True:
        moved = False
        queue.extend(p for p in everyone if p not in queue)
        for p in list(queue):
            current = p
            how = p.waits() if not p.done and p.waits else None
            if how:
                queue.remove(p)
                queue.append(p)
                p.resume(how)
                moved = True
        if moved or len(queue) < len(everyone):  # a Sequence might have started its next process
            continue
        if world.due():
            world.fire()
        elif world.timers:
            world.advance()
        elif any(not p.done for p in everyone):
            assert stuck is None, "the toy hangs"
            stuck = [p for p in everyone if not p.done]
            for p in everyone:
                if not p.done and not p.kids:
                    request_cancel(p)
                p.cancel |= not p.done and bool(p.kids)
        else:
            break
    if stuck:
        raise Deadlock(processes=stuck)
    bad = [p.error for p in everyone if p.parent == "root" and failed(p)]
    if bad:
        raise bad[0] if len(bad) == 1 else Many(exceptions=bad)


def reset(with_threads: bool, defect: str = "") -> None:
    """Makes a new world, for the next run."""
    global world, threaded, broken
    world, threaded, broken = World(), with_threads, defect
    everyone.clear()

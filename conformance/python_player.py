"""Plays the statements of one process of a network on a Python backend: starts each operation and
makes its two records.

The same generator plays the processes of every backend. It yields a function that starts an
operation; its driver (python_play.py, task_driver.py) awaits what the function returns, or takes
the returned value as the result.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Generator
from typing import Any, Protocol

from . import task_driver

Thunk = Callable[[], Any]


class Fail(Exception):
    """Raised by the statement `fail`, and by the function of an output that must raise."""


class Network(Protocol):
    """The network of a process, as its player sees it (python_play.Play)."""

    names: Any
    records: Any
    barriers: list[Any]
    made: dict[int, Any] | None
    returned: set[int]

    def names_of(self, pid: int) -> Any: ...

    def make(self, proc: dict[str, Any], slots: list[Any]) -> Any: ...

    def process(self, player: Player, body: list[Any]) -> Generator[Thunk, Any, Any]: ...

    def results(self, processes: list[dict[str, Any]], got: Any) -> list[Any]: ...

    def cancel(self, pid: int) -> None: ...

    def end_of(self, pid: int) -> Any: ...

    def pids(self, error: BaseException, name: str) -> dict[str, Any]: ...

    def written(self, done: Any, awaits: bool) -> Any: ...

    def has_arrived(self, done: Any, awaits: bool) -> Any: ...


class Player:
    """Plays the statements of one process."""

    def __init__(self, play: Network, pid: int, slots: list[Any]):
        self.play, self.names, self.pid, self.slots = (
            play,
            play.names_of(pid),
            pid,
            _Slots(play.names.m.BadUse, slots),
        )
        self.made = 0
        self.limits: list[Any] = []  # the limits of the blocks in which the process is (7.12)

    def value(self) -> str:
        self.made += 1
        return f"{self.pid}.{self.made - 1}"

    def body(self, body: list[Any]) -> Generator[Thunk, Any, None]:
        for s in body:
            yield from self.statement(s)

    def record(self, event: str, **what: Any) -> None:
        entry = {"p": self.pid, "e": event, **what}
        if event == "ret" and (now := self.names.now()) is not None:
            entry["t"] = now
        self.play.records.append(entry)

    def operate(
        self,
        kind: str,
        start: Thunk,
        made: tuple[str, ...] = (),
        shown: Callable[[Any], list[Any]] = lambda _: [],
    ) -> Generator[Thunk, Any, Any]:
        """Does one operation, and makes the records before and after it."""
        self.record("call", op=[kind, *made])
        try:
            if self.names.tasks and kind in ("par", "seq", "spawn"):
                start = task_driver.Composition(start, waits=kind != "spawn")
            result = yield start
        except GeneratorExit:
            raise
        except BaseException as error:
            self.record("ret", out=self.failure(error, kind))
            raise
        self.record("ret", out=["ok", *shown(result)])
        return result

    def failure(self, error: BaseException, kind: str) -> list[Any]:
        name = self.names.name_of(error)
        more: dict[str, Any] = {}
        if kind in ("par", "seq"):
            more = self.play.pids(error, name)
        elif name in ("Retired", "Poisoned", "PeerDied"):
            if kind == "select":
                more["guard"] = getattr(error, "guard", "missing")
            if kind == "write" and name != "PeerDied":
                more["value"] = getattr(error, "value", "missing")
            if name == "Poisoned" and hasattr(error, "strength"):
                more["strength"] = error.strength
        return [name, more] if more else [name]

    def received(self, value: Any) -> list[Any]:
        if isinstance(value, str):
            return [value]
        self.slots.append(value)  # the value is an end
        return ["end"]

    def statement(self, s: list[Any]) -> Generator[Thunk, Any, None]:
        kind, slots, names = s[0], self.slots, self.names
        if kind == "read":
            yield from self.operate("read", lambda: slots[s[1]].read(), shown=self.received)
        elif kind == "write":
            value = self.value()
            yield from self.operate("write", lambda: self.written(slots[s[1]], value), (value,))
        elif kind == "send":
            yield from self.operate("send", lambda: self.written(slots[s[1]], slots[s[2]]))
        elif kind == "iter":
            yield from self.iterate(s)
        elif kind == "ext":
            yield from self.extended(s)
        elif kind == "select":
            yield from self.select(s)
        elif kind == "sync":
            yield from self.operate("sync", lambda: self.play.barriers[s[1]].sync())
        elif kind == "enrol":
            yield from self.operate("enrol", lambda: self.play.barriers[s[1]].enrol())
        elif kind == "resign":
            yield from self.operate("resign", lambda: self.play.barriers[s[1]].resign())
        elif kind == "sleep":
            yield from self.operate("sleep", lambda: names.sleep(s[1]))
        elif kind == "cancel":
            yield from self.operate("cancel", lambda: self.play.cancel(s[1]))
        elif kind == "ended":
            yield from self.operate(
                "ended",
                lambda: self.play.end_of(s[1]).wait(),
                shown=lambda end: [{"how": end.how}],
            )
        elif kind == "limit":
            yield from self.limited(s)
        elif kind == "reschedule":
            yield from self.operate("reschedule", lambda: self.reschedule(s[1]))
        elif kind == "yield":
            yield from self.operate("yield", lambda: names.m.yield_())
        elif kind == "retire":
            yield from self.operate("retire", lambda: self.arrived(slots[s[1]].retire()))
        elif kind == "poison":
            yield from self.operate("poison", lambda: self.arrived(names.poison(slots[s[1]], s[2])))
        elif kind == "die":
            yield from self.operate("die", lambda: self.arrived(names.die(slots[s[1]])))
        elif kind == "fail":
            yield from self.operate("fail", self.fail)
        elif kind in ("par", "seq"):
            compose = names.m.Parallel if kind == "par" else names.m.Sequence
            yield from self.operate(
                kind,
                lambda: self.compose(compose, s[1]),
                shown=lambda r: [self.play.results(s[1], r)],
            )
        elif kind == "spawn":
            yield from self.operate(
                "spawn", lambda: self.compose(names.m.Spawn, [s[1]]), shown=lambda _: []
            )
        elif kind == "loop":
            for _ in range(s[1]):
                yield from self.body(s[2])
        elif kind == "try":
            try:
                yield from self.body(s[1])
                return
            except GeneratorExit:
                raise
            except BaseException as error:
                if names.name_of(error) not in s[2]:
                    raise
            yield from self.body(s[3])
        else:
            raise ValueError(f"a statement of unknown kind {kind!r}")

    def written(self, end: Any, value: Any) -> Any:
        """Writes the value. The write is recorded as over only once the value is at the channel or
        the write has failed.
        """
        return self.play.written(end.write(value), self.names.awaits)

    def arrived(self, done: Any) -> Any:
        return self.play.has_arrived(done, self.names.awaits)

    def compose(self, how: Callable[..., Any], processes: list[Any]) -> Any:
        # The list is not kept in a variable: otherwise the traceback of a failure would keep alive
        # a process that was never started, together with its ends.
        try:
            composed = how(*[self.play.make(p, self.slots) for p in processes])
        except BaseException:
            self.forget(processes)
            raise
        if self.play.made is None or not self.names.awaits or how is self.names.m.Spawn:
            return composed
        return self.watched(composed, processes)

    async def watched(self, composed: Any, processes: list[Any]) -> Any:
        try:
            return await composed
        except BaseException:
            self.forget(processes)
            raise

    def forget(self, processes: list[Any]) -> None:
        """Drops references to processes after a failure: nothing must keep alive those that were
        never started.
        """
        for p in processes if self.play.made is not None else ():
            self.play.made.pop(p["id"], None)

    @staticmethod
    def fail() -> None:
        raise Fail

    def iterate(self, s: list[Any]) -> Generator[Thunk, Any, None]:
        """Plays `for value in reader`, step by step through the iterator protocol (3.4)."""
        turns = 0
        it = None
        while len(s) < 4 or turns < s[3]:
            turns += 1
            self.record("call", op=["read"])
            try:
                if it is None:
                    end = self.slots[s[1]]  # one iterator for the whole loop
                    it = aiter(end) if self.names.awaits else iter(end)
                advance = anext if self.names.awaits else _next
                value = yield functools.partial(advance, it)
            except GeneratorExit:
                raise
            except (StopAsyncIteration, _Stop):
                self.record("ret", out=["stop"])
                return
            except BaseException as error:
                self.record("ret", out=self.failure(error, "read"))
                raise
            self.record("ret", out=["ok", *self.received(value)])
            yield from self.body(s[2])

    def extended(self, s: list[Any]) -> Generator[Thunk, Any, None]:
        """Plays `with reader.extended() as value`; leaving the block is an operation of its own,
        "release".
        """
        names = self.names
        block: list[Any] = []

        def enter() -> Any:
            block.append(self.slots[s[1]].extended())
            return block[0].__aenter__() if names.awaits else block[0].__enter__()

        def leave() -> Any:
            return (
                block[0].__aexit__(None, None, None)
                if names.awaits
                else block[0].__exit__(None, None, None)
            )

        yield from self.operate("ext", enter, shown=self.received)
        try:
            yield from self.body(s[2])
        except GeneratorExit:
            raise
        except BaseException:
            yield from self.operate("release", leave)
            raise
        yield from self.operate("release", leave)

    def limited(self, s: list[Any]) -> Generator[Thunk, Any, None]:
        """Plays a block of `timeout`, `deadline` or `move_on_after`; leaving the block is an
        operation of its own, "leave".
        """
        names = self.names
        error: BaseException | None = None

        def enter() -> Any:
            self.limits.append(names.limit(s[1], s[3]))
            return self.limits[-1].__aenter__() if names.awaits else self.limits[-1].__enter__()

        def leave() -> Any:
            limit, what = self.limits.pop(), (type(error) if error else None, error, None)
            done.append(limit)
            return limit.__aexit__(*what) if names.awaits else limit.__exit__(*what)

        done: list[Any] = []
        yield from self.operate("limit", enter, shown=lambda _: [])
        try:
            try:
                yield from self.body(s[2])
            except GeneratorExit:
                raise
            except BaseException as raised:
                error = raised
            swallowed = yield from self.operate(
                "leave", leave, shown=lambda _: [{"expired": done[0].expired}]
            )
            if error is not None and not swallowed:
                raise error
        finally:  # the exception would keep this frame, and the objects that the process holds
            error = None

    def reschedule(self, t: int) -> None:
        if not self.limits:
            raise self.names.m.BadUse("no limit to reschedule")
        self.limits[-1].reschedule(t * self.names.unit)

    def select(self, s: list[Any]) -> Generator[Thunk, Any, None]:
        made: list[str] = []
        calls = [0] * len(s[2])

        def output(k: int, g: dict[str, Any]) -> Any:
            value = self.value()
            made.append(value)
            if "fn" not in g:
                return value

            def make() -> str:
                calls[k] += 1
                if g["fn"] == "raise":
                    raise Fail
                return value

            make.value = value  # type: ignore[attr-defined]
            return make

        values = [output(k, g) if g["g"] == "out" else None for k, g in enumerate(s[2])]

        def start() -> Any:
            guards = [
                self.names.guard(
                    g,
                    self.slots[g["end"]] if "end" in g else None,
                    values[k],
                    self.play.barriers[g["b"]]
                    if "b" in g
                    else self.play.end_of(g["p"])
                    if "p" in g
                    else None,
                )
                for k, g in enumerate(s[2])
            ]
            return self.names.select(guards, s[1])

        def shown(result: Any) -> list[Any]:
            index, value = result
            if s[2][index]["g"] == "in":
                return [index, *self.received(value)]
            if s[2][index]["g"] == "ended":
                return [index, {"how": value.how}]
            wrong = [
                k for k, n in enumerate(calls) if n != (1 if k == index and "fn" in s[2][k] else 0)
            ]
            return (
                [index]
                if not wrong
                else [index, f"the functions of the guards {wrong} were called {calls} times (5.8)"]
            )

        yield from self.operate("select", start, tuple(made), shown)


class _Slots(list[Any]):
    """The ends of a process by number. A number without an end is bad use, as in the model."""

    def __init__(self, bad_use: type[Exception], ends: list[Any]):
        super().__init__(ends)
        self.bad_use = bad_use

    def __getitem__(self, k: Any) -> Any:
        if k >= len(self):
            raise self.bad_use(f"there is no end in slot {k}")
        return super().__getitem__(k)


class _Stop(Exception):
    """Stands for StopIteration, which must not leave a generator."""


def _next(it: Any) -> Any:
    try:
        return next(it)
    except StopIteration:
        raise _Stop from None


# -------------------------------------------------------------------------- the drivers of players


def drive(play: Network, proc: dict[str, Any], given: Any) -> Any:
    """Plays a process as a plain function."""
    player = Player(play, proc["id"], list(given))
    steps, result, failure = play.process(player, proc["body"]), None, None
    del player, given
    while True:
        try:
            start = steps.throw(failure) if failure else steps.send(result)
        except StopIteration as end:
            return end.value
        finally:  # a kept exception would keep this frame, and the objects that the process holds
            result, failure = None, None
        try:
            result = start()
        except BaseException as error:
            failure = error


async def drive_awaiting(play: Network, proc: dict[str, Any], given: Any) -> Any:
    """Plays a process as a coroutine."""
    player = Player(play, proc["id"], list(given))
    steps, result, failure = play.process(player, proc["body"]), None, None
    del player, given
    while True:
        try:
            start = steps.throw(failure) if failure else steps.send(result)
        except StopIteration as end:
            return end.value
        finally:  # a kept exception would keep this frame, and the objects that the process holds
            result, failure = None, None
        try:
            result = start()
            if inspect.isawaitable(result):
                result = await result
        except BaseException as error:
            failure = error
        del start

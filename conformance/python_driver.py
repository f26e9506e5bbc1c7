"""Runs networks on a Python backend of weft (`weft.coroutines`, `weft.threads`, `weft.greenlets`), in tasks of asyncio
(task_driver.py), or on several of them at once ("tasks+threads"), and records their histories.

What the driver believes about the package stands in one place, the class `Names`; where the package
differs, adapt it there.  The player below it is one generator for both kinds of process: it yields
a function that starts an operation; the coroutine backend awaits what the function returns, the
others take it as the result.  A record is made just before an operation starts and just
after it returns, in the process itself, so a list that every process appends to is the order of the
records.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import inspect
import json
import os
import re
import select
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Generator
from typing import Any

from . import task_driver
from .interp import Record
from .networks import DEFAULT, Net

Thunk = Callable[[], Any]


class Fail(Exception):
    """What the statement `fail`, and an output function that raises, raise."""


class Names:
    """The package's names, as the driver expects them."""

    def __init__(self, module: str, unit: float = 0):
        """`unit`: of real time, in seconds; 0: virtual time."""
        # "weft.guest": coroutine processes as guests of an asyncio loop (rule 13)
        self.how = {"host": "asyncio"} if module == "weft.guest" else {}
        self.tasks = module == "weft.tasks"
        module = "weft.coroutines" if self.how or self.tasks else module
        self.m = importlib.import_module(module)
        m = self.m
        self.real, self.unit, self.origin = unit > 0, unit or 1, 0.0
        self.errors: list[tuple[type[BaseException], str]] = [
            (m.Retired, "Retired"),
            (m.Poisoned, "Poisoned"),
            (m.PeerDied, "PeerDied"),
            (m.Cancelled, "Cancelled"),
            (asyncio.CancelledError, "Cancelled"),
            (m.BadUse, "BadUse"),
            (m.Deadlock, "Deadlock"),
            (Fail, "Fail"),
            (TimeoutError, "Timeout"),
        ]
        self.awaits = module.endswith("coroutines")
        self.one_scheduler = not module.endswith("threads")

    def name_of(self, error: BaseException) -> str:
        for kind, name in self.errors:
            if isinstance(error, kind):
                return name
        if hasattr(error, "exceptions"):
            return "Group"
        return f"{type(error).__name__}: {error}"  # never what the model says: shown as it is

    # channels and ends
    def channel(self, spec: dict[str, Any]) -> Any:
        return self.m.Channel(**spec)

    def end(self, channel: Any, side: str) -> Any:
        return channel.reader() if side == "r" else channel.writer()

    def die(self, end: Any) -> None:
        end.die()

    def poison(self, end: Any, strength: int) -> None:
        end.poison(strength)

    def dropped(self, channel: Any) -> int:
        return int(channel.stats().dropped)

    # choice
    def guard(self, g: dict[str, Any], end: Any, value: Any, there: Any) -> Any:
        """`value` is what an output guard sends, or the function that makes it; `there` what is a guard by itself."""
        m, kind = self.m, g["g"]
        how = {"ended": "raise"} if g.get("ends") else {}
        if kind == "in":
            made = m.Input(end, **how)
        elif kind == "out":
            made = m.Output(
                end, **({"make": value} if callable(value) else {"value": value}), **how
            )
        elif kind in ("barrier", "ended"):
            made = there
        else:
            t = self.unit * g.get("t", 0)
            made = {
                "skip": m.skip,
                "timeout": lambda: m.after(t),
                "deadline": lambda: m.at(self.origin + t),
            }[kind]()
        return made if g.get("pre", True) else made.when(False)

    def select(self, guards: list[Any], mode: str) -> Any:
        """Gives (index, value)."""
        return self.m.select(*guards, mode=mode)

    # composition
    def process(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        function.__name__ = function.__qualname__ = name
        return self.m.process(function)

    def run(self, root: Any) -> Any:
        return self.m.run(root, clock="virtual", **self.how)

    def run_async(self, root: Any) -> Any:
        return self.m.run_async(root)

    def limit(self, how: str, t: float) -> Any:
        """The scope of a block (7.12)."""
        if how == "deadline":
            return self.m.deadline(self.origin + t * self.unit)
        return (self.m.timeout if how == "timeout" else self.m.move_on_after)(t * self.unit)

    def sleep(self, t: float) -> Any:
        return self.m.sleep(t * self.unit)

    def now(self) -> int | None:
        """The virtual time, in the network's units (seconds); None if it cannot be told."""
        return round(self.m.now()) if hasattr(self.m, "now") and not self.real else None

    def deadlock(self, error: Any) -> dict[str, Any]:
        """Who is blocked, and the knot, by the report."""
        named = [self.pid_of(p.path) for p in error.processes]
        knot = [self.pid_of(path) for path in getattr(error, "knot", ())]  # a package need not tell
        found: dict[str, Any] = {"blocked": [pid for pid in named if pid is not None]}
        if knot and None not in knot:
            found["knot"] = knot
        return found

    @staticmethod
    def pid_of(path: str) -> int | None:
        """The number of a process by its path (7.8), like main/p3; None for main, which is called p0."""
        last = re.search(r"p(\d+)(\[\d+\])?$", path.split("/")[-1])
        return int(last.group(1)) if last else None


MIXED = ("coroutines", "greenlets", "threads")


def names_of(backend: str) -> list[Names]:
    """The names of the backends between which the processes of a network take turns."""
    each = backends_of(backend)
    unit = task_driver.UNIT if "tasks" in each else 0
    return [Names(b if "." in b else f"weft.{b}", unit) for b in each]


def backends_of(backend: str) -> tuple[str, ...]:
    return MIXED if backend == "mixed" else tuple(backend.split("+"))


def grain_of(backend: str) -> str:
    atomic = {"coroutines", "greenlets", "guest"}.issuperset(backends_of(backend))
    return "atomic" if atomic else "cores"


def clock_of(backend: str) -> str:
    return "real" if "tasks" in backends_of(backend) else "virtual"


class PythonDriver:
    """A Driver over a Python backend: "coroutines", "threads", "greenlets", "guest" (coroutines, of an asyncio loop), "tasks"
    (of asyncio), or the full name of a module with the same names; "greenlets+threads": the processes take turns between
    them; "mixed": between the first three.
    """

    def __init__(
        self, backend: str, features: frozenset[str] = DEFAULT, names: Names | None = None
    ):
        self.names = [names] if names else names_of(backend)
        self.name = backend
        self.grain = (
            grain_of(backend) if not names else "atomic" if names.one_scheduler else "cores"
        )
        self.clock, self.features = clock_of(backend), features

    def run(self, net: Net, seed: int) -> list[Record]:
        return _Play(self.names, net).history()


class ApartDriver:
    """A Driver over a Python backend in a process of its own, so that a network that hangs or crashes the runtime is a
    history that breaks off, not the end of the tests.

    The process serves network after network, a JSON line each way, until `close` or until it is lost.
    """

    def __init__(self, backend: str, features: frozenset[str] = DEFAULT, seconds: float = 5):
        self.name, self.features, self.seconds = backend, features, seconds
        self.grain, self.clock = grain_of(backend), clock_of(backend)
        self.server: subprocess.Popen[str] | None = None

    def run(self, net: Net, seed: int) -> list[Record]:
        if self.server is None:
            self.server = subprocess.Popen(
                [sys.executable, "-m", __spec__.name, self.name, str(self.seconds)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        asked, told = self.server.stdin, self.server.stdout
        assert asked is not None and told is not None
        line = ""
        try:
            asked.write(json.dumps(net) + "\n")
            asked.flush()
            # the server gives up by itself after `seconds`; beyond twice that nothing of it runs any more
            if select.select([told], [], [], 2 * self.seconds + 5)[0]:
                line = told.readline()
        except BrokenPipeError:
            pass
        answer = json.loads(line) if line.endswith("\n") else {"history": [], "lost": True}
        if answer["lost"]:
            status = self.close()
            print(
                f"{self.name}: the network of seed {seed} "
                + (
                    f"did not end within {self.seconds} s"
                    if line
                    else f"ended its process: status {status}"
                ),
                file=sys.stderr,
            )
        history: list[Record] = answer["history"]
        return history

    def close(self) -> int | None:
        """End the process; its status."""
        if self.server is None:
            return None
        server, self.server = self.server, None
        server.kill()
        server.communicate()
        return server.returncode


def serve(backend: str, seconds: float) -> None:
    """Run the networks that come as lines on the standard input. One that takes longer than `seconds` is answered with
    the records made so far, and the process ends, for what the network started cannot be stopped."""
    names = names_of(backend)
    out = os.fdopen(os.dup(1), "w")
    warnings.simplefilter("ignore")  # of processes that a Sequence never started
    os.dup2(2, 1)  # what the runtime prints is no answer
    for line in sys.stdin:
        play = _Play(names, json.loads(line))

        # By a signal: a watching thread might hold ends, for all that a runtime knows, and hide a deadlock (10.3).
        def give_up(*_: Any, play: _Play = play) -> None:
            json.dump({"history": play.records, "lost": True}, out)
            out.write("\n")
            out.flush()
            os._exit(1)

        signal.signal(signal.SIGALRM, give_up)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        history = play.history()
        signal.setitimer(signal.ITIMER_REAL, 0)
        json.dump({"history": history, "lost": False}, out)
        out.write("\n")
        out.flush()


class _Play:
    """One run of one network."""

    def __init__(self, each: list[Names], net: Net):
        names = each[0]
        self.each, self.names, self.net, self.records = each, names, net, []  # type: ignore[var-annotated]
        self.channels = [names.channel(c) for c in net["channels"]]
        self.barriers = [names.m.Barrier(n) for n in net.get("barriers", [])]
        # the process objects, if they are needed: otherwise it is the runtime that keeps them, or not
        asked_for = any(f'"{word}"' in json.dumps(net) for word in ("cancel", "ended"))
        self.made: dict[int, Any] | None = {} if asked_for else None
        self.desks: dict[int, task_driver.Desk] = {}

    def history(self) -> list[Record]:
        out: list[Any] = ["ok"]
        try:
            if self.run_network():
                out = ["Deadlock"]
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            name = self.names.name_of(error)
            out = [
                name,
                self.names.deadlock(error) if name == "Deadlock" else self.pids(error, name),
            ]
        self.records.append({"e": "run", "out": out})
        self.records.append(
            {"e": "stat", "dropped": [self.names.dropped(c) for c in self.channels]}
        )
        return self.records

    def run_network(self) -> bool:
        """Whether the driver had to end it as a deadlock."""
        if not self.names.real:
            self.names.run(self.make(self.net["main"], []))
            return False
        for names in self.each:
            names.origin = names.m.now()

        async def main() -> None:
            await self.names.run_async(self.make(self.net["main"], []))

        alone = all(names.one_scheduler for names in self.each)
        return task_driver.run(main, None if alone else lambda: len(self.records))[1]

    @staticmethod
    def pids(error: BaseException, name: str) -> dict[str, Any]:
        inner = (
            getattr(error, "exceptions", None)
            if name == "Group" and not hasattr(error, "weft_pid")
            else None
        )
        failed = [getattr(e, "weft_pid", None) for e in (inner or [error])]
        return {"pids": failed} if None not in failed else {}

    def make(self, proc: dict[str, Any], slots: list[Any]) -> Any:
        """A process object with its ends: fresh ones, and some of its maker's."""
        ends = [
            slots[e] if isinstance(e, int) else self.names.end(self.channels[e[0]], e[1])
            for e in proc["ends"]
        ]
        pid, body, play = proc["id"], proc["body"], self
        names = self.names_of(pid)
        if names.tasks and task_driver.in_loop():  # else a thread makes it, and it runs there

            def steps(given: list[Any]) -> tuple[task_driver.Steps, list[Any]]:
                player = _Player(self, pid, given)
                return self.process(player, body), player.slots

            desk = self.desks[pid] = task_driver.Desk()
            function = task_driver.function_of(
                steps, names.m.Cancelled, names.m.current_process, desk
            )
        elif names.awaits:

            async def function(*given: Any) -> Any:
                player = _Player(play, pid, list(given))
                steps, result, failure = play.process(player, body), None, None
                del player
                del given
                while True:
                    try:
                        start = steps.throw(failure) if failure else steps.send(result)
                    except StopIteration as end:
                        return end.value
                    finally:  # an exception kept here would keep this frame, and with it what the process holds
                        result, failure = None, None
                    try:
                        result = start()
                        if inspect.isawaitable(result):
                            result = await result
                    except BaseException as error:
                        failure = error
                    del start
        else:

            def function(*given: Any) -> Any:  # type: ignore[misc]
                player = _Player(play, pid, list(given))
                steps, result, failure = play.process(player, body), None, None
                del player
                while True:
                    try:
                        start = steps.throw(failure) if failure else steps.send(result)
                    except StopIteration as end:
                        return end.value
                    finally:  # an exception kept here would keep this frame, and with it what the process holds
                        result, failure = None, None
                    try:
                        result = start()
                    except BaseException as error:
                        failure = error

        process = names.process(function, f"p{pid}")(*ends)
        if self.made is not None:
            self.made[pid] = process
        return names.m.watched(process) if proc.get("watched") else process

    def cancel(self, pid: int) -> None:
        """The statement: a process that has a task is cancelled by it."""
        if pid in self.desks and self.desks[pid].task is not None:
            self.desks[pid].cancel()
        elif self.made and pid in self.made:
            self.made[pid].cancel()

    def end_of(self, pid: int) -> Any:
        """The guard (7.11)."""
        assert self.made is not None
        return self.made[pid].ended()

    def names_of(self, pid: int) -> Names:
        return self.each[pid % len(self.each)]

    # ------------------------------------------------------------------------------------------------ the player

    def process(self, player: _Player, body: list[Any]) -> Generator[Thunk, Any, Any]:
        """A process as the network says; its end, too, is recorded, and a failure knows who failed."""
        pid = player.pid
        try:
            yield from player.body(body)
        except GeneratorExit:
            raise
        except BaseException as error:
            name = self.names.name_of(error)
            if name not in ("Retired", "Poisoned", "Cancelled"):
                error.weft_pid = pid  # type: ignore[attr-defined]
            self.records.append({"p": pid, "e": "end", "out": [name]})
            raise
        self.records.append({"p": pid, "e": "end", "out": ["ok"]})
        return pid


class _Player:
    """Plays the statements of one process."""

    def __init__(self, play: _Play, pid: int, slots: list[Any]):
        self.play, self.names, self.pid, self.slots = (
            play,
            play.names_of(pid),
            pid,
            _Slots(play.names.m.BadUse, slots),
        )
        self.made = 0
        self.limits: list[Any] = []  # those of the blocks it is in (7.12)

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
        """One operation between its two records."""
        self.record("call", op=[kind, *made])
        try:
            if self.names.tasks and kind in ("par", "seq", "spawn"):
                start = task_driver.Composition(start, waits=kind != "spawn")
            result = yield start
        except GeneratorExit:
            raise
        except BaseException as error:
            self.record("ret", out=self.failure(error, kind, made))
            raise
        self.record("ret", out=["ok", *shown(result)])
        return result

    def failure(self, error: BaseException, kind: str, made: tuple[str, ...]) -> list[Any]:
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
        self.slots.append(value)  # an end
        return ["end"]

    def statement(self, s: list[Any]) -> Generator[Thunk, Any, None]:
        kind, slots, names = s[0], self.slots, self.names
        if kind == "read":
            yield from self.operate("read", lambda: slots[s[1]].read(), shown=self.received)
        elif kind == "write":
            value = self.value()
            yield from self.operate("write", lambda: slots[s[1]].write(value), (value,))
        elif kind == "send":
            yield from self.operate("send", lambda: slots[s[1]].write(slots[s[2]]))
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
            yield from self.operate("retire", lambda: slots[s[1]].retire())
        elif kind == "poison":
            yield from self.operate("poison", lambda: names.poison(slots[s[1]], s[2]))
        elif kind == "die":
            yield from self.operate("die", lambda: names.die(slots[s[1]]))
        elif kind == "fail":
            yield from self.operate("fail", self.fail)
        elif kind in ("par", "seq"):
            compose = names.m.Parallel if kind == "par" else names.m.Sequence
            yield from self.operate(
                kind,
                lambda: self.compose(compose, s[1]),
                shown=lambda r: [list(r)],
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

    def compose(self, how: Callable[..., Any], processes: list[Any]) -> Any:
        # In no variable: the traceback of a failure would keep a process that was never started, and its ends.
        composed = how(*[self.play.make(p, self.slots) for p in processes])
        if self.play.made is None or not self.names.awaits or how is self.names.m.Spawn:
            return composed
        return self.watched(composed, processes)

    async def watched(self, composed: Any, processes: list[Any]) -> Any:
        """If it fails there may be some that were never started, and that nobody must keep."""
        try:
            return await composed
        except BaseException:
            for p in processes:
                self.play.made.pop(p["id"], None)  # type: ignore[union-attr]
            raise

    @staticmethod
    def fail() -> None:
        raise Fail

    def iterate(self, s: list[Any]) -> Generator[Thunk, Any, None]:
        """`for value in reader`, by the iterator's own protocol (3.4)."""
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
                self.record("ret", out=self.failure(error, "read", ()))
                raise
            self.record("ret", out=["ok", *self.received(value)])
            yield from self.body(s[2])

    def extended(self, s: list[Any]) -> Generator[Thunk, Any, None]:
        """`with reader.extended() as value`; leaving the block is an operation of its own, "release"."""
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
        """A block of `timeout`, `deadline` or `move_on_after`; leaving it is an operation of its own, "leave"."""
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
        finally:  # kept here it would keep this frame, and with it what the process holds
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
    """The ends of a process by number; one that is not there is bad use, as in the model."""

    def __init__(self, bad_use: type[Exception], ends: list[Any]):
        super().__init__(ends)
        self.bad_use = bad_use

    def __getitem__(self, k: Any) -> Any:
        if k >= len(self):
            raise self.bad_use(f"there is no end in slot {k}")
        return super().__getitem__(k)


class _Stop(Exception):
    """StopIteration, which must not leave a generator."""


def _next(it: Any) -> Any:
    try:
        return next(it)
    except StopIteration:
        raise _Stop from None


if __name__ == "__main__":
    serve(sys.argv[1], float(sys.argv[2]))

"""Runs networks on a Python backend of weft (`weft.coroutines`, `weft.threads`, `weft.greenlets`),
in tasks of asyncio (task_driver.py), or on several of them at once ("tasks+threads"), and
records their histories.

All that the driver assumes about the package is in one place, the class `Names`; if the package
changes, change that class. The player (python_player.py) is one generator for both kinds of
process: it yields a function that starts an operation. The coroutine backend awaits what the
function returns; the other backends take it as the result. The process itself makes a record just
before an operation starts and just after it returns. All processes append to one list, which thus
has the order of the records.
"""

from __future__ import annotations

import asyncio
import importlib
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
from .python_player import Fail, Player, Thunk, drive, drive_awaiting

if not os.environ.get("WEFT_PURE"):  # the pure package has no OS processes and no components
    from . import host_driver, native_driver


class Names:
    """The package's names, as the driver expects them."""

    def __init__(self, module: str, unit: float = 0):
        """`unit` is how many seconds of real time a unit of the network's time lasts; 0 for virtual
        time.
        """
        # "weft.guest": coroutine processes as guests of an asyncio loop (rule 13)
        self.how = {"host": "asyncio"} if module == "weft.guest" else {}
        self.tasks, self.machines = module == "weft.tasks", module == "weft.machines"
        module = "weft.processes" if self.machines else module
        self.away = module == "weft.processes"
        self.native = module == "weft.native"  # threads play the processes that no component can
        module = "weft.coroutines" if self.how or self.tasks else module
        module = "weft.threads" if self.native else module
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
        self.one_scheduler = not module.endswith(("threads", "processes"))

    def name_of(self, error: BaseException) -> str:
        for kind, name in self.errors:
            if isinstance(error, kind):
                return name
        if not os.environ.get("WEFT_PURE"):
            if isinstance(error, native_driver.Said):
                return error.name
            if failed := native_driver.behind(error):
                return failed[0]
        if hasattr(error, "exceptions"):
            return "Group"
        return f"{type(error).__name__}: {error}"  # the model never says this: it is shown as it is

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
        """The guard that `g` describes. `value` is what an output guard sends, or the function that
        makes it. `there` is an object that is a guard by itself (a barrier, the end of a
        process).
        """
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
        """Selects over `guards`; gives (index, value)."""
        return self.m.select(*guards, mode=mode)

    # composition
    def process(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        function.__name__ = function.__qualname__ = name
        if self.away:  # the process stays here: see host_driver.py
            return host_driver.stays(function)
        return self.m.process(function)

    def run(self, root: Any) -> Any:
        return self.m.run(root, clock="steady" if self.real else "virtual", **self.how)

    def run_async(self, root: Any) -> Any:
        return self.m.run_async(root)

    def limit(self, how: str, t: float) -> Any:
        """The context manager of a block with a limit (7.12)."""
        if how == "deadline":
            return self.m.deadline(self.origin + t * self.unit)
        return (self.m.timeout if how == "timeout" else self.m.move_on_after)(t * self.unit)

    def sleep(self, t: float) -> Any:
        return self.m.sleep(t * self.unit)

    def now(self) -> int | None:
        """The virtual time, in the network's units (seconds); None if it is not known."""
        return round(self.m.now()) if hasattr(self.m, "now") and not self.real else None

    def deadlock(self, error: Any) -> dict[str, Any]:
        """The blocked processes and the knot, as the report says; {} for a network over several OS
        processes, because on a busy machine such a report may leave out a process.
        """
        if self.away:
            return {}
        named = [self.pid_of(p.path) for p in error.processes]
        # a package need not report it
        knot = [self.pid_of(path) for path in getattr(error, "knot", ())]
        found: dict[str, Any] = {"blocked": [pid for pid in named if pid is not None]}
        # In the pure package a process holds a barrier once it has used the barrier. So knots are
        # compared only in its scenarios.
        if knot and None not in knot and not os.environ.get("WEFT_PURE"):
            found["knot"] = knot
        return found

    @staticmethod
    def pid_of(path: str) -> int | None:
        """The number of a process by its path (7.8), such as main/p3; None for main, which is
        called p0.
        """
        last = re.search(r"p(\d+)(\[\d+\])?$", path.split("/")[-1])
        return int(last.group(1)) if last else None


MIXED = ("coroutines", "greenlets", "threads")
PURE = {"pure": "coroutines", "pure-threads": "threads"}  # no extension module; ApartDriver only


def names_of(backend: str) -> list[Names]:
    """The Names of each backend of "A+B". The processes of a network are dealt to the backends in
    turn.
    """
    each = backends_of(backend)
    unit = task_driver.UNIT if clock_of(backend) == "real" else 0
    return [Names(b if "." in b else f"weft.{b}", unit) for b in each]


def backends_of(backend: str) -> tuple[str, ...]:
    return MIXED if backend == "mixed" else tuple(PURE.get(backend, backend).split("+"))


def grain_of(backend: str) -> str:
    atomic = {"coroutines", "greenlets", "guest"}.issuperset(backends_of(backend))
    return "atomic" if atomic else "cores"


def clock_of(backend: str) -> str:
    return "real" if {"tasks", "processes", "machines"} & {*backends_of(backend)} else "virtual"


class PythonDriver:
    """A Driver over a Python backend: "coroutines", "threads", "greenlets", "guest" (coroutines in
    an asyncio loop), "tasks" (of asyncio), or the full name of a module with the same names.
    With "greenlets+threads" the processes are dealt to both in turn; with "mixed", to
    coroutines, greenlets and threads.
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
    """A Driver over a Python backend in an OS process of its own. If a network hangs or crashes the
    runtime, its history breaks off, but the tests go on.

    The OS process serves one network after another, each with a JSON line as question and answer,
    until `close` or until the OS process is lost.
    """

    def __init__(self, backend: str, features: frozenset[str] = DEFAULT, seconds: float = 60):
        self.name, self.features, self.seconds = backend, features, seconds
        self.grain, self.clock = grain_of(backend), clock_of(backend)
        self.server: subprocess.Popen[str] | None = None
        # How many processes of its networks have run in other OS processes or in a component.
        self.away = 0

    def run(self, net: Net, seed: int) -> list[Record]:
        if self.server is None:
            if "native" in backends_of(self.name):
                native_driver.component()  # built here: it takes longer than a network may
            self.server = subprocess.Popen(
                [sys.executable, "-m", __spec__.name, self.name, str(self.seconds)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "WEFT_PURE": "1"} if self.name in PURE else None,
            )
        asked, told = self.server.stdin, self.server.stdout
        assert asked is not None and told is not None
        line = ""
        try:
            asked.write(json.dumps(net) + "\n")
            asked.flush()
            # The server gives up by itself after `seconds`; if twice that time has passed, it is
            # dead.
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
        self.away = answer.get("away", 0)
        history: list[Record] = answer["history"]
        return history

    def close(self) -> int | None:
        """Ends the OS process; returns its exit status."""
        if self.server is None:
            return None
        server, self.server = self.server, None
        server.kill()
        server.communicate()
        return server.returncode


def serve(backend: str, seconds: float) -> None:
    """Runs the networks that come as lines on the standard input. If a network takes longer than
    `seconds`, the answer has the records made so far, and the OS process ends, because the
    network's processes cannot be stopped.
    """
    names = names_of(backend)
    machines = any(n.machines for n in names)
    away = host_driver.Away(machines) if any(n.away for n in names) else None
    native = 0
    if any(n.native for n in names):
        native_driver.component()
    out = os.fdopen(os.dup(1), "w")
    warnings.simplefilter("ignore")  # about processes that a Sequence never started
    os.dup2(2, 1)  # what the runtime prints must not be taken for an answer
    for line in sys.stdin:
        journal = away.journal() if away else None
        play = _Play(names, json.loads(line), journal, away)

        # A signal is used, not a thread: the runtime must assume that a thread might hold ends,
        # which would hide a deadlock (10.3).
        def give_up(*_: Any, play: _Play = play) -> None:
            json.dump({"history": play.so_far(), "lost": True}, out)
            out.write("\n")
            out.flush()
            os._exit(1)

        signal.signal(signal.SIGALRM, give_up)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        history = play.history()
        signal.setitimer(signal.ITIMER_REAL, 0)
        if journal is not None:
            journal.close()
        native += play.native
        went = away.went if away else native
        json.dump({"history": history, "lost": False, "away": went}, out)
        out.write("\n")
        out.flush()


def _pid_of(error: BaseException) -> int | None:
    """The number of the process that failed with this error."""
    if (pid := getattr(error, "weft_pid", None)) is not None:
        return int(pid)
    failed = None if os.environ.get("WEFT_PURE") else native_driver.behind(error)
    return failed[1] if failed else None


class _Play:
    """One run of one network."""

    def __init__(self, each: list[Names], net: Net, records: Any = None, away: Any = None):
        names = each[0]
        self.each, self.names, self.net, self.away = each, names, net, away
        self.records: Any = [] if records is None else records
        self.channels = [names.channel(c) for c in net["channels"]]
        self.barriers = [names.m.Barrier(n) for n in net.get("barriers", [])]
        # The process objects, if a statement needs them; otherwise only the runtime keeps them.
        asked_for = any(f'"{word}"' in json.dumps(net) for word in ("cancel", "ended"))
        self.made: dict[int, Any] | None = {} if asked_for else None
        self.desks: dict[int, task_driver.Desk] = {}
        self.native = 0  # processes of a component
        self.returned: set[int] = set()  # the native ones that ended normally

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
        return self.so_far()

    def so_far(self) -> list[Record]:
        return self.records if isinstance(self.records, list) else self.records.records()

    def run_network(self) -> bool:
        """Runs the network. Returns True if the driver had to end it as a deadlock."""
        if not any(names.tasks for names in self.each):
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
        failed = [_pid_of(e) for e in (inner or [error])]
        return {"pids": failed} if None not in failed else {}

    def make(self, proc: dict[str, Any], slots: list[Any]) -> Any:
        """Makes a process object with its ends: some are new, some come from the maker's slots."""
        ends = [
            slots[e] if isinstance(e, int) else self.names.end(self.channels[e[0]], e[1])
            for e in proc["ends"]
        ]
        pid, body, play = proc["id"], proc["body"], self
        names = self.names_of(pid)
        if names.native and not native_driver.asks_for(proc):
            self.native += 1
            return self.kept(proc, native_driver.process(self, proc, ends))
        if self.goes(proc):
            buffers = any("capacity" in c for c in self.net["channels"])
            return self.kept(
                proc, self.away.process(self.records, proc, ends, buffers, self.barriers)
            )  # type: ignore[union-attr, arg-type]
        # otherwise a thread makes the process and runs it
        if names.tasks and task_driver.in_loop():

            def steps(given: list[Any]) -> tuple[task_driver.Steps, list[Any]]:
                player = Player(self, pid, given)
                return self.process(player, body), player.slots

            desk = self.desks[pid] = task_driver.Desk()
            function = task_driver.function_of(
                steps, names.m.Cancelled, names.m.current_process, desk
            )
        elif names.awaits:

            async def function(*given: Any) -> Any:
                return await drive_awaiting(play, proc, given)
        else:

            def function(*given: Any) -> Any:  # type: ignore[misc]
                return drive(play, proc, given)

        return self.kept(proc, names.process(function, f"p{pid}")(*ends))

    def kept(self, proc: dict[str, Any], process: Any) -> Any:
        if self.made is not None:
            self.made[proc["id"]] = process
        return self.names.m.watched(process) if proc.get("watched") else process

    def cancel(self, pid: int) -> None:
        """The statement `cancel`. A process that has a task is cancelled through the task."""
        if pid in self.desks and self.desks[pid].task is not None:
            self.desks[pid].cancel()
        elif self.made and pid in self.made:
            self.made[pid].cancel()

    def end_of(self, pid: int) -> Any:
        """The end of a process, as a guard (7.11)."""
        assert self.made is not None
        return self.made[pid].ended()

    def results(self, processes: list[dict[str, Any]], got: Any) -> list[Any]:
        """The results of a composition, as the model gives them: for a process without a result,
        how it ended (7.1).
        """
        none = self.names.m.NoResult
        got = [f"<{r.how}>" if isinstance(r, none) else r for r in got]
        return native_driver.results(self.returned, processes, got) if self.native else got

    def goes(self, proc: dict[str, Any]) -> bool:
        """Whether a process runs in another OS process."""
        if (
            self.away is None
            or not self.names_of(proc["id"]).away
            or host_driver.shares_ends(self.net, proc)
        ):
            return False
        return not host_driver.asks_for(proc)

    def has_arrived(self, done: Any, awaits: bool) -> Any:
        """What a process must wait for before it records a retirement, a poison or a death: here
        nothing, because it has already happened.
        """
        return done

    def written(self, done: Any, awaits: bool) -> Any:
        """As has_arrived(), for a write."""
        return done

    def names_of(self, pid: int) -> Names:
        return self.each[pid % len(self.each)]

    # ---------------------------------------------------------------------------------- the player

    def process(self, player: Player, body: list[Any]) -> Generator[Thunk, Any, Any]:
        """Plays a process as the network describes it. The end of the process is recorded too, and
        a failure carries the number of the process.
        """
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


if __name__ == "__main__":
    serve(sys.argv[1], float(sys.argv[2]))

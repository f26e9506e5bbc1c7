"""The names of the package weft, as the drivers of the Python backends expect them, and the names of
the backends. All assumptions of the drivers about the package are in the class `Names`; if the
package changes, change that class.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import re
from collections.abc import Callable
from typing import Any

from . import task_driver
from .python_player import Fail


class ComponentError(Exception):
    """The exception that an operation of the component threw; `kept` is the exception's number in
    the component.
    """

    def __init__(self, name: str, kept: int, guard: int, value: str | None) -> None:
        super().__init__(name)
        self.name, self.kept = name, kept
        if guard >= 0:
            self.guard = guard
        if value is not None:
            self.value = value  # a write in C++ leaves the value with its caller


def behind(error: BaseException) -> tuple[str, int] | None:
    """Returns the name and the number of the error with which a process of the component failed;
    None for any other error.
    """
    found = re.fullmatch(r"(\w+) of p(\d+)", getattr(error, "message", ""))
    return (found[1], int(found[2])) if found else None


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
        # Threads play the processes that threads of a component cannot, and coroutines those that
        # its coroutines cannot.
        self.native = module in ("weft.native", "weft.pool")
        self.pool = module == "weft.pool"
        module = "weft.coroutines" if self.how or self.tasks or self.pool else module
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
        self.one_scheduler = not (module.endswith(("threads", "processes")) or self.pool)

    def name_of(self, error: BaseException) -> str:
        for kind, name in self.errors:
            if isinstance(error, kind):
                return name
        if isinstance(error, ComponentError):
            return error.name
        if failed := behind(error):
            return failed[0]
        if hasattr(error, "exceptions"):
            return "Group"
        # The model never records such a text, so a message shows the error as it is.
        return f"{type(error).__name__}: {error}"

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
        """Returns the guard that `g` describes. `value` is the value that an output guard sends, or
        the function that makes the value. `there` is an object that is itself a guard (a barrier,
        the end of a process).
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
        """Selects over `guards`; returns (index, value)."""
        return self.m.select(*guards, mode=mode)

    # composition
    def process(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        function.__name__ = function.__qualname__ = name
        if self.away:  # the process stays in this OS process, on a thread: see host_driver.py
            threads: Any = importlib.import_module("weft.threads")
            return threads.process(function)
        return self.m.process(function)

    def run(self, root: Any) -> Any:
        return self.m.run(root, clock="steady" if self.real else "virtual", **self.how)

    def run_async(self, root: Any) -> Any:
        return self.m.run_async(root)

    def limit(self, how: str, t: float) -> Any:
        """Returns the context manager of a block with a limit (7.12)."""
        if how == "deadline":
            return self.m.deadline(self.origin + t * self.unit)
        return (self.m.timeout if how == "timeout" else self.m.move_on_after)(t * self.unit)

    def sleep(self, t: float) -> Any:
        return self.m.sleep(t * self.unit)

    def now(self) -> int | None:
        """Returns the virtual time, in the network's units (seconds); None if it is not known."""
        return round(self.m.now()) if hasattr(self.m, "now") and not self.real else None

    def deadlock(self, error: Any) -> dict[str, Any]:
        """Returns the blocked processes and the knot, as the report names them; {} for a network
        over several OS processes, because on a busy machine such a report can leave out a process.
        """
        if self.away:
            return {}
        named = [self.pid_of(p.path) for p in error.processes]
        # the pure package need not report a knot
        knot = [self.pid_of(path) for path in getattr(error, "knot", ())]
        found: dict[str, Any] = {"blocked": [pid for pid in named if pid is not None]}
        # In the pure package a process holds a barrier once it has used the barrier. So the knots
        # of the pure package are compared only in its scenarios.
        if knot and None not in knot and not os.environ.get("WEFT_PURE"):
            found["knot"] = knot
        return found

    @staticmethod
    def pid_of(path: str) -> int | None:
        """Returns the number of a process by its path (7.8), such as main/p3; None for main, which
        is called p0.
        """
        last = re.search(r"p(\d+)(\[\d+\])?$", path.split("/")[-1])
        return int(last.group(1)) if last else None


MIXED = ("coroutines", "greenlets", "threads")
PURE = {"pure": "coroutines", "pure-threads": "threads"}  # no extension module; ApartDriver only


def names_of(backend: str) -> list[Names]:
    """Returns the Names of each backend of "A+B". The processes of a network are dealt to the
    backends in turn.
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

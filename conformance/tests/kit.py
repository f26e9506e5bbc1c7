"""Helpers for the tests: networks, their outcomes, and worlds played by hand."""

from __future__ import annotations

from typing import Any

from conformance.driver import conform
from conformance.explore import outcomes
from conformance.interp import Sim
from conformance.model import World
from conformance.objects import READ, WRITE, Chan, Guard, Op
from conformance.python_driver import ApartDriver


def proc(pid: int, ends: list[Any], *body: list[Any]) -> dict[str, Any]:
    """Returns a process of a network. Its ends are "0r", "1w" (fresh ends of channels) or numbers
    (the parent's slots).
    """
    return {
        "id": pid,
        "ends": [[int(e[:-1]), e[-1]] if isinstance(e, str) else e for e in ends],
        "body": list(body),
    }


def net(
    channels: Any,
    *procs: dict[str, Any],
    barriers: list[int] | None = None,
    before: list[Any] | None = None,
) -> dict[str, Any]:
    """Returns a network whose main is one Parallel. `channels` is the number of rendezvous
    channels, or a list of channel arguments.
    """
    chans = [{} for _ in range(channels)] if isinstance(channels, int) else channels
    return {
        "channels": chans,
        "barriers": barriers or [],
        "main": {"id": 0, "ends": [], "body": [*(before or []), ["par", list(procs)]]},
    }


def agrees(on: ApartDriver, each: int, least: int, **how: Any) -> None:
    """Asserts that the driver's histories are possible in the model, in `each` random networks, and
    that at least `least` of their processes ran in other OS processes or in a component (otherwise
    the test would prove nothing). `how` is passed to conform().
    """
    messages: list[str] = []
    before = on.away
    passed, failed, unknown = conform(on, range(each), say=messages.append, **how)
    assert (passed, failed) == (each, 0), "\n".join(messages)
    assert unknown <= each // 5, "the checker's budget ran out too often to have compared anything"
    assert on.away - before >= least


def logs(network: dict[str, Any], pid: Any, grain: str = "atomic") -> set[tuple]:
    """Returns the possible observations of process `pid`: a set of tuples of outcomes, without the
    `end` entry.
    """
    return {
        tuple(x for x in dict(o).get(pid, ()) if x[0] != "end") for o in outcomes(network, grain)
    }


def both(network: dict[str, Any], pid: Any) -> set[tuple]:
    """Returns the possible observations of process `pid`, which must be the same in both grains.
    The network's outcome must not depend on fairness or priority.
    """
    one = logs(network, pid, "atomic")
    assert one <= logs(network, pid, "cores")
    return one


def runs(network: dict[str, Any], grain: str = "atomic") -> set[str]:
    """Returns how the run can end: "ok", "Deadlock", …"""
    return {dict(o)["run"][0][0] for o in outcomes(network, grain)}


def drops(network: dict[str, Any]) -> set[tuple]:
    return {dict(o)["dropped"] for o in outcomes(network)}


def values(log: tuple) -> list[Any]:
    """Returns the values that reads of a log returned."""
    return [x[-1] for x in log if x[0] == "ok" and len(x) > 1]


class Table(World):
    """A world with channels whose processes are played by hand: `read(pid, chan)` and so on start
    operations; `out(pid)` returns their outcome.
    """

    def __init__(self, *channels: dict[str, Any]):
        super().__init__()
        self.chans = [Chan(**c) for c in channels]
        self.r: list[int] = []
        self.w: list[int] = []
        for c in range(len(channels)):
            self.r.append(self.make_end(c, READ)[0])
            self.w.append(self.make_end(c, WRITE)[0])

    def start(self, op: Op) -> None:
        self.begin(op)
        hot = self.choices(op)
        if hot:
            self.commit(op.pid, hot[0])
            if op.state == "making":
                self.make(op.pid)
        else:
            for i in range(len(op.guards)):
                self.enrol(op.pid, i)
        self.check_invariants()

    def g_in(self, chan: int, **more: Any) -> Guard:
        return Guard("in", chan, self.r[chan], **more)

    def g_out(self, chan: int, value: Any, **more: Any) -> Guard:
        return Guard("out", chan, self.w[chan], value, **more)

    def read(self, pid: int, chan: int = 0, ext: bool = False) -> None:
        self.start(Op(pid, "read", (self.g_in(chan),), ext=ext))

    def write(self, pid: int, value: Any, chan: int = 0) -> None:
        self.start(Op(pid, "write", (self.g_out(chan, value),)))

    def select(self, pid: int, *guards: Guard, mode: str = "fair") -> None:
        self.start(Op(pid, "select", guards, mode))

    def out(self, pid: int) -> Any:
        """Returns the outcome of the operation; None while the operation waits or is held."""
        op = self.ops[pid]
        return op.out if op.state == "done" else None

    def waits(self, pid: int) -> bool:
        return self.ops[pid].state == "waiting"


__all__ = [
    "Guard",
    "Op",
    "Sim",
    "Table",
    "both",
    "drops",
    "logs",
    "net",
    "outcomes",
    "proc",
    "runs",
    "values",
]

"""Networks with some processes in other OS processes (`weft.processes`): "processes", or
"processes+threads+coroutines" and so on; or on hosts of a network of machines: "machines+threads".

    _Play.make ──► goes(proc)? ──► played.on(hosts)(…) ──► there: a _Play of that process alone, whose records go to the same file

Invariants
- The history is one file, to which every OS process appends each record by one write(). So the
  kernel orders them, and a record of what happened earlier comes first.
- A process goes away only if nothing in it asks for anything in STAYS. What it starts itself runs
  there too, on threads, greenlets and coroutines in turn.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from weft import net, threads
from weft.processes import Cancelled, Channel, Hosts, current_process, process

from .interp import Record

# What a process cannot do from another OS process, and why. A process that does it runs here.
STAYS: dict[str, str] = {
    "a fresh end": "the home hands out the ends of a channel: what runs elsewhere has those that it was given",
    "a barrier beside more": "its home alone decides such a choice (WIRE.md 4.10): no guard that is off, none with `ends`",
    "a limit on an end": "the driver waits until a poison or a retirement has arrived, and the limit would be on that too",
    "another process": "to cancel one, or to wait for its end, is for who has the object",
}


stays = threads.process  # makes a process of the network that does not go away


def asks_for(proc: dict[str, Any], top: bool = True) -> set[str]:
    """What a process, or one that it starts, asks for that is in STAYS."""
    found = (
        {"a fresh end"} if not top and any(not isinstance(e, int) for e in proc["ends"]) else set()
    )
    return found | {what for s in _statements(proc["body"]) for what in _asked(s)}


def _statements(body: list[Any]) -> Iterator[list[Any]]:
    for s in body:
        yield s
        if s[0] in ("loop", "iter", "ext", "limit"):
            yield from _statements(s[2])
        elif s[0] == "try":
            yield from _statements(s[1])
            yield from _statements(s[3])


ENDS = ("retire", "poison", "die")


def _asked(s: list[Any]) -> set[str]:
    kind = s[0]
    if kind in ("par", "seq", "spawn"):
        return {what for p in (s[1] if kind != "spawn" else [s[1]]) for what in asks_for(p, False)}
    if kind == "select":
        more = any(not g.get("pre", True) or g.get("ends") for g in s[2])
        barrier = more and any(g["g"] == "barrier" for g in s[2])
        ended = any(g["g"] == "ended" for g in s[2])
        return ({"a barrier beside more"} if barrier else set()) | (
            {"another process"} if ended else set()
        )
    return {
        **{k: {"another process"} for k in ("cancel", "ended")},
        "limit": {
            "a limit on an end"
            for inner in _statements(s[2] if kind == "limit" else [])
            if inner[0] in ENDS
        },
    }.get(kind, set())


def shares_ends(net: dict[str, Any], proc: dict[str, Any]) -> bool:
    """Does it share an end with its maker, in a network where ends are closed? In another OS
    process that would be another end (WIRE.md 15, rule 2.3)."""
    closes = any(f'["{how}",' in json.dumps(net) for how in ("retire", "die"))
    return closes and any(isinstance(e, int) for e in proc["ends"])


class Journal:
    """A history in a file that several OS processes write."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._to = os.open(path, os.O_WRONLY | os.O_APPEND)

    def append(self, entry: Record) -> None:
        line = json.dumps(entry).encode() + b"\n"
        assert os.write(self._to, line) == len(line)

    def __len__(self) -> int:
        return os.fstat(self._to).st_size

    def records(self) -> list[Record]:
        text = Path(self.path).read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()]

    def close(self) -> None:
        os.close(self._to)


class Away:
    """The hosts of a server, and the history of the network that runs.

    Args:
        machines: they are those of the network that $WEFT_NET and $WEFT_SERVER say, two at least,
            which allow `played` and `played_awaiting`, and are on this machine: so they write the
            same file. $WEFT_TRUST: values are pickled.
    """

    def __init__(self, machines: bool = False) -> None:
        self.machines = machines
        if machines:
            self.hosts: Any = net.join(trust="WEFT_TRUST" in os.environ).hosts(2)
        else:
            self.hosts = Hosts(2)
        self.file = tempfile.NamedTemporaryFile(suffix=".history")  # noqa: SIM115 – as long as this lives
        # Nobody reads it. Its writers come and go, and a process that ends by poison does not
        # poison it.
        self.tick = Channel("tick", capacity=1, overflow="drop_oldest", immunity=255)
        self.kept = self.tick.writer()
        self.went = 0  # processes that ran elsewhere

    def journal(self) -> Journal:
        """An empty history, for the next network."""
        os.truncate(self.file.name, 0)
        return Journal(self.file.name)

    def process(
        self,
        journal: Journal,
        proc: dict[str, Any],
        ends: list[Any],
        buffers: bool,
        barriers: list[Any],
    ) -> Any:
        """The process as one that runs in a host: a coroutine there if its number is odd.

        Args:
            buffers: whether the network has buffers, so that writes may be on credit.
        """
        self.went += 1
        made = (played_awaiting if proc["id"] % 2 else played).on(self.hosts)
        proc = {**proc, "buffers": buffers}
        assert not (self.machines and barriers), "barriers do not reach over machines"
        return made(journal.path, proc, self.tick.writer(), barriers, *ends).named(f"p{proc['id']}")


KINDS = ("threads", "greenlets", "coroutines")


def _there(
    path: str, proc: dict[str, Any], tick: Any, barriers: list[Any], kind: str
) -> tuple[Any, Journal]:
    from .python_driver import Names, _Play
    from .task_driver import UNIT

    class There(_Play):
        def names_of(self, pid: int) -> Names:
            return by_kind[kind if pid == proc["id"] else kinds[pid % len(kinds)]]

        def has_arrived(self, done: Any, awaits: bool) -> Any:
            """When the operation returns it is still under way to the home (WIRE.md 15). A write
            sent after it is not done before it has arrived."""
            return awaited() if awaits else waited()

        def written(self, done: Any, awaits: bool) -> Any:
            """A write on credit is over before its value has arrived (WIRE.md 6.3)."""
            if not proc["buffers"]:
                return done
            return both(done) if awaits else waited()

    async def both(write: Any) -> None:
        await write
        await awaited()

    def waited() -> None:
        try:
            tick.write(None)
        except (
            Cancelled
        ):  # for what comes next: none of these operations is a point of cancellation
            tick.write(None)
            current_process().cancel()

    async def awaited() -> None:
        try:
            await tick.write(None)
        except Cancelled:
            await tick.write(None)
            current_process().cancel()

    # A coroutine's thread is its scheduler's: no greenlets but its own.
    kinds = KINDS if kind == "threads" else ("threads", "coroutines")
    by_kind = {k: Names(f"weft.{k}", UNIT) for k in KINDS}
    journal = Journal(path)
    play = There([by_kind[kind]], {"channels": [], "main": proc}, journal)
    play.barriers = barriers
    return play, journal


@process
def played(path: str, proc: dict[str, Any], tick: Any, barriers: list[Any], *ends: Any) -> Any:
    from .python_player import drive

    play, journal = _there(path, proc, tick, barriers, "threads")
    try:
        return drive(play, proc, ends)
    finally:
        journal.close()


@process
async def played_awaiting(
    path: str, proc: dict[str, Any], tick: Any, barriers: list[Any], *ends: Any
) -> Any:
    from .python_player import drive_awaiting

    play, journal = _there(path, proc, tick, barriers, "coroutines")
    try:
        return await drive_awaiting(play, proc, ends)
    finally:
        journal.close()

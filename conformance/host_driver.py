"""Networks with some processes in other OS processes (`weft.processes`): "processes", or
"processes+threads+coroutines" and so on; or on hosts of a network of machines:
"machines+threads".

    Play.make ──► goes(proc)? ──► played.on(hosts)(…) ──► in the host: a Play of that process
                                                           alone, which writes to the same file

Invariants
- The history is one file, to which every OS process appends each record by one write(). So the
  kernel orders the records, and the record of an earlier event precedes those of later events.
- A process runs in another OS process only if nothing in it needs anything in STAYS. Processes that
  it starts run in the same OS process, on threads, greenlets and coroutines in turn.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from weft import net
from weft.processes import Cancelled, Channel, Hosts, current_process, process

from .interp import Record
from .python_names import Names
from .python_play import Play
from .python_player import drive, drive_awaiting
from .task_driver import UNIT

# The operations that a process cannot perform from another OS process, and why. A process that
# needs one of these runs in this OS process.
STAYS: dict[str, str] = {
    "a fresh end": "the home hands out the ends of a channel: what runs elsewhere has those that it was given",
    "a barrier beside more": "its home alone decides such a choice (WIRE.md 4.10): no guard that is off, none with `ends`",
    "a limit on an end": "the driver waits until a poison or a retirement has arrived, and the limit would be on that too",
    "another process": "to cancel one, or to wait for its end, is for who has the object",
}


def asks_for(proc: dict[str, Any], top: bool = True) -> set[str]:
    """Returns the operations in STAYS that a process, or a process that it starts, needs."""
    found = (
        {"a fresh end"} if not top and any(not isinstance(e, int) for e in proc["ends"]) else set()
    )
    return found | {what for s in _statements(proc["body"]) for what in _needs_of(s)}


def _statements(body: list[Any]) -> Iterator[list[Any]]:
    for s in body:
        yield s
        if s[0] in ("loop", "iter", "ext", "limit"):
            yield from _statements(s[2])
        elif s[0] == "try":
            yield from _statements(s[1])
            yield from _statements(s[3])


ENDS = ("retire", "poison", "die")


def _needs_of(s: list[Any]) -> set[str]:
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
    """Returns whether the process shares an end with its maker, in a network where ends are closed.
    In another OS process it would have an end of its own (WIRE.md 15, rule 2.3).
    """
    closes = any(f'["{how}",' in json.dumps(net) for how in ("retire", "die"))
    return closes and any(isinstance(e, int) for e in proc["ends"])


class Journal:
    """A history in a file to which several OS processes write."""

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
    """The hosts of a server, and the history of the running network.

    Args:
        machines: use the hosts of the network that $WEFT_NET and $WEFT_SERVER name. The network
        must have at least two hosts; they allow `played` and `played_awaiting`, and run on this
        machine, so that they write the same file. With $WEFT_TRUST values are pickled.
    """

    def __init__(self, machines: bool = False) -> None:
        self.machines = machines
        if machines:
            self.hosts: Any = net.join(trust="WEFT_TRUST" in os.environ).hosts(2)
        else:
            self.hosts = Hosts(2)
        self.file = tempfile.NamedTemporaryFile(suffix=".history")  # noqa: SIM115 – as long as this lives
        # This channel has no reader, and processes write to it all the time. It is immune, so a
        # process that ends by poison does not poison it.
        self.tick = Channel("tick", capacity=1, overflow="drop_oldest", immunity=255)
        self.kept = self.tick.writer()
        self.went = 0  # how many processes have run elsewhere so far

    def journal(self) -> Journal:
        """Returns an empty history, for the next network."""
        os.truncate(self.file.name, 0)
        return Journal(self.file.name)

    def takes(self, net: dict[str, Any], proc: dict[str, Any]) -> bool:
        """Returns whether the process can run in another OS process."""
        return not shares_ends(net, proc) and not asks_for(proc)

    def process(
        self,
        journal: Journal,
        proc: dict[str, Any],
        ends: list[Any],
        buffers: bool,
        barriers: list[Any],
    ) -> Any:
        """Makes the process run in a host: as a coroutine if its number is odd."""
        self.went += 1
        made = (played_awaiting if proc["id"] % 2 else played).on(self.hosts)
        proc = {**proc, "buffers": buffers}
        assert not (self.machines and barriers), "barriers do not reach over machines"
        return made(journal.path, proc, self.tick.writer(), barriers, *ends).named(f"p{proc['id']}")


KINDS = ("threads", "greenlets", "coroutines")


def _play_in_host(
    path: str, proc: dict[str, Any], tick: Any, barriers: list[Any], kind: str
) -> tuple[Any, Journal]:
    class There(Play):
        def names_of(self, pid: int) -> Names:
            return by_kind[kind if pid == proc["id"] else kinds[pid % len(kinds)]]

        def has_arrived(self, done: Any, awaits: bool) -> Any:
            """Waits until the frame of an operation has arrived. When the operation returns, its
            frame might still be on its way to the home (WIRE.md 15); a write that is sent after
            that frame completes only once the frame has arrived.
            """
            return awaited() if awaits else waited()

        def written(self, done: Any, awaits: bool) -> Any:
            """Waits until the value of a write has arrived: a write on credit returns before that
            (WIRE.md 6.3).
            """
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
            # A request to cancel must stay pending until the next operation, since none of these
            # operations is a point of cancellation.
        ):
            tick.write(None)
            current_process().cancel()

    async def awaited() -> None:
        try:
            await tick.write(None)
        except Cancelled:
            await tick.write(None)
            current_process().cancel()

    # A coroutine runs on its scheduler's thread, where only the scheduler's own greenlets can run.
    kinds = KINDS if kind == "threads" else ("threads", "coroutines")
    by_kind = {k: Names(f"weft.{k}", UNIT) for k in KINDS}
    journal = Journal(path)
    play = There([by_kind[kind]], {"channels": [], "main": proc}, journal)
    play.barriers = barriers
    return play, journal


@process
def played(path: str, proc: dict[str, Any], tick: Any, barriers: list[Any], *ends: Any) -> Any:
    play, journal = _play_in_host(path, proc, tick, barriers, "threads")
    try:
        return drive(play, proc, ends)
    finally:
        journal.close()


@process
async def played_awaiting(
    path: str, proc: dict[str, Any], tick: Any, barriers: list[Any], *ends: Any
) -> Any:
    play, journal = _play_in_host(path, proc, tick, barriers, "coroutines")
    try:
        return await drive_awaiting(play, proc, ends)
    finally:
        journal.close()

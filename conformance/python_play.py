"""Runs one network once on Python backends: makes the network's processes, and the record of how
the run ended.

Other drivers make the processes that run in a component (native_driver.py) or in another OS process
(host_driver.py, by way of `away`).
"""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any

from . import native_driver, task_driver
from .interp import Record
from .networks import Net
from .python_names import Names, behind
from .python_player import Player, Thunk, drive, drive_awaiting


def _pid_of(error: BaseException) -> int | None:
    """Returns the number of the process that failed with this error; None if it is not known."""
    if (pid := getattr(error, "weft_pid", None)) is not None:
        return int(pid)
    failed = behind(error)
    return failed[1] if failed else None


class Play:
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
        self.returned: set[int] = set()  # the native processes that ended normally

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
        """Makes a process object with its ends: some are new, some are taken from the maker's
        slots."""
        ends = [
            slots[e] if isinstance(e, int) else self.names.end(self.channels[e[0]], e[1])
            for e in proc["ends"]
        ]
        pid, body, play = proc["id"], proc["body"], self
        names = self.names_of(pid)
        if names.native and not native_driver.asks_for(proc, names.pool):
            self.native += 1
            return self.kept(proc, native_driver.process(self, proc, ends))
        if self.goes(proc):
            buffers = any("capacity" in c for c in self.net["channels"])
            return self.kept(
                proc, self.away.process(self.records, proc, ends, buffers, self.barriers)
            )  # type: ignore[union-attr, arg-type]
        # if there is no loop, a thread makes the process and runs it
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
        """Plays the statement `cancel`. A process that has a task is cancelled through the task."""
        if pid in self.desks and self.desks[pid].task is not None:
            self.desks[pid].cancel()
        elif self.made and pid in self.made:
            self.made[pid].cancel()

    def end_of(self, pid: int) -> Any:
        """Returns the end of a process, as a guard (7.11)."""
        assert self.made is not None
        return self.made[pid].ended()

    def results(self, processes: list[dict[str, Any]], got: Any) -> list[Any]:
        """Returns the results of a composition, as the model does: for a process without a result,
        how it ended (7.1).
        """
        none = self.names.m.NoResult
        got = [f"<{r.how}>" if isinstance(r, none) else r for r in got]
        return native_driver.results(self.returned, processes, got) if self.native else got

    def goes(self, proc: dict[str, Any]) -> bool:
        """Returns whether the process will run in another OS process."""
        if self.away is None or not self.names_of(proc["id"]).away:
            return False
        return bool(self.away.takes(self.net, proc))

    def has_arrived(self, done: Any, awaits: bool) -> Any:
        """Returns the operation for which a process must wait before it records a retirement, a
        poison or a death. Within one OS process that is `done` itself, whose effect is immediate.
        """
        return done

    def written(self, done: Any, awaits: bool) -> Any:
        """Returns the operation for which a process must wait after a write, as has_arrived()
        does."""
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

"""In another OS process a process can use the same names of Weft as in this one, and for the
processes in this one it is a process like any other (rules 7.11, 7.12, 15.1)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import os_process_targets_names as targets_names
import pytest
from test_processes import nobody_is_left as nobody_is_left

import weft.coroutines as co
from weft.processes import (
    Channel,
    Group,
    Hosts,
    Parallel,
    ProcessDied,
    Retired,
    Spawn,
    after,
    move_on_after,
    process,
    run,
    select,
    watched,
)


def test_every_name_in_another_os_process() -> None:
    """Rule 15.1: Group, Spawn, Sequence, io, timers, choice, limits, the end of a process."""
    assert run(targets_names.by_every_name()) == {
        "Spawn": [0, 1],
        "Group": [0, 1],
        "Sequence": [0, 1, 2],
        "io": True,
        "Timer": True,
        "sleep": True,
        "after": 1,
        "at": 1,
        "Alternative": 1,
        "move_on_after": True,
        "timeout": True,
        "deadline": True,
        "current_process": "main/by_every_name",
        "arrays": [[0], [1]],
        "read": 5,
        "ended": "returned",
    }


def test_its_end_is_a_guard_here() -> None:
    """Rule 7.11: the end of a process in another OS process is a guard in a choice, and gives the
    result or the exception of the process.
    """

    def here() -> tuple[int, Any, str]:
        with Hosts(1) as hosts, Group() as group:
            p = targets_names.returns.on(hosts)(7)
            q = watched(targets_names.returns.on(hosts)())  # a call with wrong arguments
            failed = q.ended()  # a process that asks about the end before the failure is a watcher
            group.start(p)
            group.start(q)
            index, ended = select(after(1000), p.ended())
            return index, ended.result, type(failed.wait().error).__name__

    assert run(process(here).on("threads")()) == (1, 7, "TypeError")


def test_one_that_is_killed_ends_as_failed() -> None:
    """Rules 7.11, 15.1: the end of a killed process has how="failed", with the signal."""
    import os_process_targets as targets

    def here() -> str:
        with Group() as group:
            p = watched(targets.die("kill"))
            died = p.ended()
            group.start(p)
            ended = died.wait()
            assert isinstance(ended.error, ProcessDied)
            return str(ended.how)

    assert run(process(here).on("threads")()) == "failed"


def test_one_that_is_spawned_outlives_who_spawned_it() -> None:
    """Rule 7.4: a spawned process continues after its spawner has ended."""
    c = Channel("c")

    def spawns(out: Any) -> None:
        Spawn(targets_names.one(out, 3))

    def here(inp: Any) -> list[int]:
        return list(inp)

    assert Parallel(
        process(spawns).on("threads")(c.writer()), process(here).on("threads")(c.reader())
    ) == [None, [3]]


def test_a_limit_here_cancels_it_there(tmp_path: Path) -> None:
    """Rules 6.1, 7.12: the limit ends the process, and its ends are released."""
    ready, never, report = Channel("ready"), Channel("never"), tmp_path / "said"
    keep = never.writer()

    @co.process
    async def here(inp: Any, worker: Any) -> bool:
        async with co.move_on_after(None) as limit, co.Group() as group:
            group.start(worker)
            await inp.read()
            limit.reschedule(0)
        return limit.expired

    with Hosts(1) as hosts:
        worker = targets_names.waits.on(hosts)(ready.writer(), never.reader(), report)
        assert run(here(ready.reader(), worker))
    assert report.exists()
    with pytest.raises(Retired):
        keep.write(1)


def test_context_variables_do_not_cross() -> None:
    """Rule 15.1: a context variable is passed neither to the other OS process nor back."""
    targets_names.variable.set("here")
    with Hosts(1) as hosts:
        assert Parallel(targets_names.says_variable(), targets_names.says_variable.on(hosts)()) == [
            "outside",
            "outside",
        ]
        with move_on_after(None):
            assert run(targets_names.says_variable.on(hosts)()) == "outside"
    assert targets_names.variable.get() == "here"

"""The answers of a host to an observer on another machine: what the host's OS processes do now, the
files of their flight recorders, and the host's clock (WIRE-NETWORKS.md 17.9; rule 14.17).

    the observer (_commands/host_observer.py) ──a question──► tells_observer(), in one of the host's OS
        processes ──the door (rule 14.9) of each OS process of the agent──► the answer

Each agent runs tells_observer(), whatever else it allows. It reports nothing about OS processes
that have no door (WEFT_INSPECT=0).

Invariants
- A question is a list: its name, and its arguments. An answer is one value; the answer to `flight`
  is several values, of which the last is None.
- Nothing is changed in the OS processes that are inspected.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from weft import threads
from weft._watching import visit as _visit

PART = 200_000  # the largest number of bytes of a part of a file


@threads.process
def tells_observer(asks: Any, tells: Any) -> None:
    # One visit serves all looks, because a program reports how long a process has been at its
    # place, and at which channel a thread waits, only to a visitor that has looked before.
    visits: dict[int, _visit.Visit] = {}
    try:
        for what, *args in asks:
            if what == "time":
                tells.write(time.monotonic_ns())
            elif what == "look":
                tells.write(_look(visits, *args))
            else:
                for part in _files():
                    tells.write(part)
                tells.write(None)
    finally:
        for visit in visits.values():
            visit.__exit__()


def _look(visits: dict[int, _visit.Visit], interval: float, most: int) -> dict[str, Any]:
    """Returns the answers of the OS processes of this agent, by their pids, and a sentence for each
    that does not answer. `visits` are the visits of earlier looks; this look can open new visits
    and close some of these.
    """
    try:
        pids = _family()
    except _visit.NoLook as error:
        return {"answers": {}, "silent": [str(error)]}
    answers: dict[str, Any] = {}
    silent: list[str] = []
    asked: list[int] = []
    before = {pid: _visit.used(pid) for pid in pids}

    def lost(pid: int, error: _visit.NoLook | None) -> None:
        if (visit := visits.pop(pid, None)) is not None:
            visit.__exit__()
        if error is not None and not _visit.has_ended(pid):
            silent.append(str(error))

    for pid in visits.keys() - pids:
        lost(pid, None)
    for pid in pids:
        try:
            if pid not in visits:
                visits[pid] = _visit.Visit(pid)
            visits[pid].send("look", interval=interval, most=most)
            asked.append(pid)
        except _visit.NoLook as error:
            lost(pid, error)
    until = time.monotonic() + interval + _visit.PATIENCE
    for pid in asked:
        try:
            answer = visits[pid].receive(max(until - time.monotonic(), 0.1))
        except _visit.NoLook as error:
            lost(pid, error)
            continue
        now, then = _visit.used(pid), before[pid]
        cpu = None
        if now is not None and then is not None and now.at > then.at:
            cpu = (now.cpu - then.cpu) / (now.at - then.at)
        answer["os"] = {"cpu": cpu, "memory": now.memory if now else 0}
        if answer.get("parent") == os.getppid():
            _leave_out_agents(answer)
        answers[str(pid)] = answer
    return {"answers": answers, "silent": silent, "own": os.getpid()}


def _leave_out_agents(answer: dict[str, Any]) -> None:
    """Leaves out the process with which the agent begins a call in a separate OS process
    (_net/calls.py: serve()). That process waits for the call outside Weft, so it looks busy. The
    agent's calls are named by ends, "end4"; the names of calls from other machines begin with other
    letters.
    """
    agents = {
        int(number) for number, (call, _) in answer["calls"].items() if call.startswith("end")
    }
    answer["processes"] = [one for one in answer["processes"] if one["id"] not in agents]


def _family() -> list[int]:
    """Returns the OS processes of this agent that have a door."""
    with_door = set(_visit.doors())
    return [pid for pid in _visit.family(os.getppid()) if pid in with_door]


def _files() -> Iterator[Any]:
    """Yields pairs. For each OS process of this agent that has a flight recorder: its pid, and a
    part of its file, for each part. For each other OS process: its pid, and a sentence that says why
    there is no file.
    """
    try:
        pids = _family()
    except _visit.NoLook as error:
        yield 0, str(error)
        return
    for pid in pids:
        with tempfile.TemporaryDirectory(prefix="weft-flight-") as folder:
            path = Path(folder) / "flight"
            try:
                with _visit.Visit(pid) as visit:
                    visit.ask("flight", path=str(path))
                data = path.read_bytes()
            except (_visit.NoLook, OSError) as error:
                yield pid, str(error)
                continue
        for at in range(0, len(data), PART):
            yield pid, data[at : at + PART]

"""A check in several OS processes: `weft check -j N`, `jobs=N` (rule 17.7).

The first child searches as the options say; the others draw schedules at random, from other seeds.
The parent replays a failure that a child has found, makes it short and reports it.

Invariants
- A child ends by os._exit, so nothing that the program does at its end is done twice.
- However the search ends, also by Ctrl-C, each child has ended, and the parent has waited for it.
"""

from __future__ import annotations

import contextlib
import functools
import os
import pickle
import selectors
import signal
import struct
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from weft import _forks
from weft._checking import engine as _engine
from weft._checking import patches as _patches
from weft._checking.report import Search, counted

if TYPE_CHECKING:
    from weft._checking.checker import _Check

_OTHER_SEEDS = 1_000_003  # the distance between the seeds of two children
# How many schedules a child draws by one way of searching before it changes to the next.
_BLOCK = 500
_HEAD = struct.Struct("<I")


def search(check: _Check) -> None:
    """Searches, and makes the report of the failures that were found."""
    children: dict[int, int] = {}  # pid by descriptor
    messages: dict[int, dict[str, Any]] = {}  # the last message of each child, by descriptor
    try:
        for number in range(check.options.jobs):
            read, write = os.pipe()
            pid = _forks.fork(functools.partial(children.__setitem__, read))
            if pid == 0:
                _child(check, number, write)  # never returns
            os.close(write)
        found = _wait(check, children, messages)
    finally:
        for fd, pid in children.items():
            os.close(fd)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
        _figures(check, messages)
    if found is None:
        return check.conclude([])
    return check.conclude_elsewhere(found)


def _wait(
    check: _Check, children: dict[int, int], messages: dict[int, dict[str, Any]]
) -> list[dict[str, Any]] | None:
    found: list[dict[str, Any]] = []
    parts: dict[int, bytearray] = {fd: bytearray() for fd in children}
    with selectors.DefaultSelector() as selector:
        for fd in children:
            selector.register(fd, selectors.EVENT_READ)
        over: set[int] = set()
        while len(over) < len(children):
            # Each child has an alarm of its own. So the alarm of this process must not go off.
            check.looks += 1
            for key, _ in selector.select(0.5):
                data = os.read(key.fd, 65536)
                parts[key.fd] += data
                while (message := _taken(parts[key.fd])) is not None:
                    messages[key.fd] = message
                    found += message["found"]
                    if message["end"] is not None:
                        check.report.kind, check.report.what = message["end"]
                        check.raise_end()
                    if (found and not check.options.keep_going) or message["complete"]:
                        return found or None
                if not data:
                    selector.unregister(key.fd)
                    over.add(key.fd)
            runs = sum(message["runs"] for message in messages.values())
            check.progress(
                f"{counted(runs, 'schedule')} in {len(children)} OS processes, {check.seconds():.0f} s"
            )
    return found or None


def _taken(part: bytearray) -> dict[str, Any] | None:
    """Removes a whole message from the beginning of `part`, and returns it. Returns None if the
    message is not whole yet.
    """
    if len(part) < _HEAD.size:
        return None
    (size,) = _HEAD.unpack_from(part)
    if len(part) < _HEAD.size + size:
        return None
    message: dict[str, Any] = pickle.loads(bytes(part[_HEAD.size : _HEAD.size + size]))
    del part[: _HEAD.size + size]
    return message


def _figures(check: _Check, messages: dict[int, dict[str, Any]]) -> None:
    """Adds up the figures of the children for the report."""
    ways: dict[str, int] = {}
    for message in messages.values():
        for way, runs in message["ways"].items():
            ways[way] = ways.get(way, 0) + runs
        for sentence in message["told"]:
            check.world.tell(sentence)
        check.left.update(message["left"])
        check.shared = check.shared or message["shared"]
    r = check.report
    r.schedules = sum(ways.values())
    r.searches = [Search(way, runs) for way, runs in ways.items()]
    r.races = max((message["races"] for message in messages.values()), default=(0, 0))
    r.estimate = max((message["estimate"] for message in messages.values()), default=0.0)
    r.timed = any(message["timed"] for message in messages.values())
    r.complete = any(message["complete"] for message in messages.values()) and not check.shared
    r.seconds = check.seconds()


def _child(check: _Check, number: int, write: int) -> None:
    status = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        # The handler of the alarm is the parent's: a child sets its own.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        with _patches.alarm(_patches.NOTHING_FOR, check._steps):
            for one in _searches(check, number):
                _one(check, one, write)
        status = 0
    finally:
        os._exit(status)


def _searches(check: _Check, number: int) -> Any:
    """Yields the searches of the child with this number, one after the other."""
    asked = check._engine_options()
    if number == 0:
        yield _engine.Search(check._watched, asked)
        return
    turn = 0
    ways = (asked.search,) if asked.search in ("walk", "pct") else ("walk", "pct")
    while (left := check.options.seconds - check.seconds()) > 0 and check.report.kind == "":
        options = replace(
            asked,
            search=ways[(number + turn) % len(ways)],
            seed=asked.seed + number * _OTHER_SEEDS + turn * _BLOCK,
            depth=2 + turn % 3,
            schedules=_BLOCK,
            seconds=left,
        )
        yield _engine.Search(check._watched, options)
        turn += 1


def _one(check: _Check, one: _engine.Search, write: int) -> None:
    from weft._checking.checker import _End

    before = dict(check.ways_before)
    shown = [_patches.real.clock()]

    def say(found: list[Any], end: tuple[str, str] | None = None, complete: bool = False) -> None:
        ways = dict(before)
        for way, runs in one.ways.items():
            ways[way] = ways.get(way, 0) + runs
        check.ways_before = ways
        message = {
            "runs": sum(ways.values()), "ways": ways, "found": found, "complete": complete, "end": end,
            "told": list(check.world.notes), "left": dict(check.left), "shared": check.shared,
            "races": one.races, "estimate": one.estimate, "timed": one.timed,
        }  # fmt: skip
        data = pickle.dumps(message)
        data = _HEAD.pack(len(data)) + data
        while data:
            data = data[os.write(write, data) :]
        shown[0] = _patches.real.clock()

    check.progress = lambda text: say([]) if _patches.real.clock() - shown[0] > 0.3 else None
    try:
        failures = check.find(one)
    except _End:
        say([], (check.report.kind, check.report.what))
        return
    whole = one.complete and one.options.search in ("auto", "reduced", "all", "few")
    say(
        [
            {
                "kind": f.kind,
                "what": f.what,
                "numbers": f.outcome.numbers,
                "time": f.outcome.time,
                "at": f.found_at,
            }
            for f in failures
        ],
        complete=whole and not failures,
    )

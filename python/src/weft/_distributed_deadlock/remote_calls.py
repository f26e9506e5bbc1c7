"""Calls on other machines, as who presses Ctrl-C here sees them (rule 6.7): where each is, and what
gives it up. Their OS processes are not asked in rounds (WIRE.md 17.23); their agents are (17.12).

Invariants
- A signal's handler calls what is here in the middle of anything: it takes no lock, and waits for
  nobody for longer than it was told to.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import concurrent.futures as cf

__all__ = ["FarCall", "asked", "called", "forget", "give_up_by", "heard", "lines", "ways_out"]

MOST = 40  #: calls that are asked: more lines are not shown


class FarCall(NamedTuple):
    """One that an OS process of another machine's host runs."""

    host: str
    pid: object  #: of that OS process, as its agent says
    #: Asks the call's agent; gives the lines, or None if nobody answers.
    ask: Callable[[], cf.Future[list[str] | None]]
    #: The process here that waits for the call, if a process does.
    caller: Any = None

    def __str__(self) -> str:
        return f"in OS process {self.pid} on host {self.host!r}"


_given_up: set[Callable[[], object]] = set()  # by a second Ctrl-C
_calls: set[FarCall] = set()


@contextlib.contextmanager
def called(call: FarCall) -> Iterator[None]:
    """It runs in the block."""
    _calls.add(call)
    try:
        yield
    finally:
        _calls.discard(call)


@contextlib.contextmanager
def give_up_by(give_up: Callable[[], object]) -> Iterator[None]:
    """In the block a second Ctrl-C calls that: somebody waits here for another machine's process."""
    _given_up.add(give_up)
    try:
        yield
    finally:
        _given_up.discard(give_up)


def ways_out() -> list[Callable[[], object]]:
    """What gives up all calls that there are."""
    return list(_given_up)


def heard(call: FarCall, asked: cf.Future[list[str] | None], seconds: float) -> list[str] | None:
    """Where it is, if that is said within so many seconds."""
    import concurrent.futures as cf  # who asks has it; an OS process does without

    with contextlib.suppress(cf.TimeoutError, cf.CancelledError, OSError, ValueError):
        return asked.result(max(seconds, 0.0))
    asked.cancel()
    return None


Asked = list[tuple[FarCall, "cf.Future[list[str] | None]"]]


def asked() -> Asked:
    """All that there are have been asked where they are."""
    answers: Asked = []
    for call in list(_calls)[:MOST]:
        with contextlib.suppress(Exception):  # its network has been left
            answers.append((call, call.ask()))
    return answers


def lines(asked: Asked, until: float) -> list[tuple[int | None, str]]:
    """What the agents answer before `until` (time.monotonic()): a line for each process of the
    calls, with the number of the process here that waits for the call."""
    said: list[tuple[int | None, str]] = []
    for call, answer in asked:
        number, whose = None, ""
        if call.caller is not None:
            number, whose = call.caller.id, f"{call.caller.path}: "
        silent = [f"{whose}a call that does not say where it is"]
        found = heard(call, answer, until - time.monotonic())
        said += [(number, f"{line} {call}") for line in found or silent]
    return said


def forget() -> None:
    """In the child of a fork: they are the parent's."""
    _given_up.clear()
    _calls.clear()

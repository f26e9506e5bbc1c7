"""Calls on other machines, as needed when a user presses Ctrl-C in this program (rule 6.7): where
each call is, and how to give it up. The OS processes of such calls are not asked in rounds
(WIRE-NETWORKS.md 17.23); their agents are asked (17.12).

Invariants
- A signal handler may call these functions between any two steps of other code. So they take no
  lock, and wait no longer than the caller has allowed.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import concurrent.futures as cf

__all__ = [
    "FarCall",
    "answer_within",
    "asked",
    "called",
    "forget",
    "give_up_by",
    "lines",
    "ways_out",
]

MAX_CALLS = 40  #: the largest number of calls to ask agents about, since no more lines are shown


class FarCall(NamedTuple):
    """A call that an OS process of a host on another machine runs."""

    host: str
    pid: object  #: the pid of that OS process, as its agent has reported it
    #: Asks the agent where the call is. The result is the lines of the answer, or None if the agent
    #: does not answer.
    ask: Callable[[], cf.Future[list[str] | None]]
    #: The process here that waits for the call, if there is one.
    caller: Any = None

    def __str__(self) -> str:
        return f"in OS process {self.pid} on host {self.host!r}"


_given_up: set[Callable[[], object]] = set()  # the functions that a second Ctrl-C calls
_calls: set[FarCall] = set()


@contextlib.contextmanager
def called(call: FarCall) -> Iterator[None]:
    """Keeps the call in `_calls` while the block runs."""
    _calls.add(call)
    try:
        yield
    finally:
        _calls.discard(call)


@contextlib.contextmanager
def give_up_by(give_up: Callable[[], object]) -> Iterator[None]:
    """Makes a second Ctrl-C call `give_up` while the block runs. In the block this program waits
    for a process on another machine.
    """
    _given_up.add(give_up)
    try:
        yield
    finally:
        _given_up.discard(give_up)


def ways_out() -> list[Callable[[], object]]:
    """Returns the functions that give up all calls on other machines."""
    return list(_given_up)


def answer_within(
    call: FarCall, asked: cf.Future[list[str] | None], seconds: float
) -> list[str] | None:
    """Returns where the call is, if its agent answers within `seconds`; otherwise None."""
    import concurrent.futures as cf  # the code that asks has already imported this module

    with contextlib.suppress(cf.TimeoutError, cf.CancelledError, OSError, ValueError):
        return asked.result(max(seconds, 0.0))
    asked.cancel()
    return None


Asked = list[tuple[FarCall, "cf.Future[list[str] | None]"]]


def asked() -> Asked:
    """Asks the agents of all calls where the calls are. Returns the calls, each with the future of
    its answer.
    """
    answers: Asked = []
    for call in list(_calls)[:MAX_CALLS]:
        with contextlib.suppress(Exception):  # raised if the network of the call was left already
            answers.append((call, call.ask()))
    return answers


def lines(asked: Asked, until: float) -> list[tuple[int | None, str]]:
    """Returns what the agents answer before `until` (time.monotonic()): a line for each process of
    the calls, with the number of the process here that waits for the call.
    """
    lines_of_calls: list[tuple[int | None, str]] = []
    for call, answer in asked:
        number, whose = None, ""
        if call.caller is not None:
            number, whose = call.caller.id, f"{call.caller.path}: "
        silent = [f"{whose}a call that does not say where it is"]
        found = answer_within(call, answer, until - time.monotonic())
        lines_of_calls += [(number, f"{line} {call}") for line in found or silent]
    return lines_of_calls


def forget() -> None:
    """Clears the tables in the child of a fork: the calls belong to the original."""
    _given_up.clear()
    _calls.clear()

"""The observers of a run. The extension module calls one function of this module, which calls all
of them.

Invariants
- Without observers the extension module has no function to call, and operations cost nothing more.
- Observers are called in the order in which they were added, with (what, process, operation,
  target, detail), which python/native/watching/observe.hpp describes. `process` is None for a
  thread that is not a process. This module itself reports one more `what`: "away", when a process
  begins to run elsewhere; then `detail` is the pid of the OS process, or the name of a host of a
  network.
- Operations by which Weft itself hands work to another OS process, and channels for these, are not
  shown: hide().
- A child of a fork observes nothing.

begin_everywhere() extends an observation to the other OS processes of the program (rule 14.7).
_hosts/remote_observers.py, which is imported for the first of these, does that.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Protocol

from weft._extension import native as _native

_PACKAGE = __file__.rsplit(os.sep, 2)[0]

Observer = Callable[[str, Any, "str | None", Any, Any], None]

# Protects _observers, and the function that is installed for them. It is re-entrant: a signal
# handler can add an observer.
_lock = threading.RLock()
_observers: list[Observer] = []
_in_child: list[Callable[[], None]] = []
_hidden: dict[int, int] = {}  # key of a process or thread → how often its operations are hidden
_own: dict[int, Any] = {}  # the channels that are hidden, by id()


def _call(what: str, process: Any, operation: str | None, target: Any, detail: Any) -> None:
    if what == "lent":
        if id(target) in _own:
            return
    elif what in ("begin", "park", "commit", "raise") and _hidden and key_of(process) in _hidden:
        return
    for observer in tuple(_observers):
        observer(what, process, operation, target, detail)


def _install() -> None:
    _native._set_observer(_call if _observers else None)


def add(observer: Observer) -> None:
    """Adds an observer, which is called from now on."""
    with _lock:
        _observers.append(observer)
        _install()


def remove(observer: Observer) -> None:
    """Removes an observer, which is no longer called. Does nothing if it was not added."""
    with _lock:
        if observer in _observers:
            _observers.remove(observer)
            _install()


def own(channel: Any) -> None:
    """Records that this channel is one of Weft's own, and is not shown."""
    _own[id(channel)] = channel


def own_no_more(channel: Any) -> None:
    _own.pop(id(channel), None)


def is_own(channel: Any) -> bool:
    return id(channel) in _own


def hide() -> Callable[[], None]:
    """Hides the operations of the calling process or thread, as Weft's own, until the returned
    function is called.
    """
    key = key_of(_native.current_process())
    _hidden[key] = _hidden.get(key, 0) + 1
    _native._flight_hide(True)

    def show() -> None:
        _native._flight_hide(False)
        _hidden[key] -= 1
        if not _hidden[key]:
            del _hidden[key]

    return show


def elsewhere(where: int | str, *channels: Any) -> Callable[[], None]:
    """Records that the calling process runs elsewhere, in the OS process or on the host `where`,
    until the returned function is called. The operations of the process here are Weft's own, and so
    are these channels.
    """
    if (process := _native.current_process()) is not None:
        _native._flight_away(f"OS process {where}" if isinstance(where, int) else where)
        if _observers:
            _call("away", process, None, None, where)
    show = hide()
    for channel in channels:
        own(channel)

    def show_all() -> None:
        show()
        for channel in channels:
            own_no_more(channel)

    return show_all


# --- in other OS processes too (rule 14.7) ------------------------------------------------------

Key = tuple[int, int]  # the key of an observation: the OS process that began it, and a number


class Everywhere(Protocol):
    """An observation that includes other OS processes."""

    kind: str  #: the key in KINDS of _hosts/host_recorders.py

    def _for_others(self) -> Any:
        """Returns the setting that other OS processes need."""

    def _add_records(self, source: tuple[int, int], records: list[dict[str, Any]]) -> None:
        """Receives the records of an OS process, in order. `source` is the pid of that OS process,
        and a number that distinguishes it from an earlier OS process with this pid.
        """

    def _host_ended(self, pid: int) -> None:
        """Records that an OS process has died, or does not answer. Records that it had not sent yet
        are lost.
        """


wanted: dict[Key, Everywhere] = {}  # observations that have not ended
# The observations in `wanted`, and those that are ending and still receive records.
known: dict[Key, Everywhere] = {}
_numbers = itertools.count(1)


def _nobody() -> None:
    """Does nothing, since there are no other OS processes."""


# Sends the list of wanted observations to other OS processes, and returns once they have received
# it.
tell_others: Callable[[], None] = _nobody


def begin_everywhere(observation: Everywhere) -> None:
    key = os.getpid(), next(_numbers)
    known[key] = wanted[key] = observation
    tell_others()


def end_everywhere(observation: Everywhere) -> None:
    """Ends an observation. When this returns, all records have arrived. Does nothing if the
    observation has not begun.
    """
    keys = [key for key, one in list(wanted.items()) if one is observation]
    for key in keys:
        del wanted[key]
    if keys:
        try:
            tell_others()
        finally:
            for key in keys:
                known.pop(key, None)


def in_child_of_fork(forget: Callable[[], None]) -> None:
    """Makes the child of a fork call `forget`."""
    _in_child.append(forget)


def _after_fork() -> None:
    global _lock
    _lock = threading.RLock()
    for one in (_observers, _hidden, _own, wanted, known):
        one.clear()
    _install()
    for forget in _in_child:
        forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@contextlib.contextmanager
def observing_this_thread(*observers: Observer) -> Iterator[None]:
    """Within the block, shows only the operations of the calling thread to these observers."""
    here = threading.get_ident()

    def of_this_thread(observer: Observer) -> Observer:
        def see(what: str, process: Any, operation: str | None, target: Any, detail: Any) -> None:
            if threading.get_ident() == here:
                observer(what, process, operation, target, detail)

        return see

    seeing = [of_this_thread(observer) for observer in observers]
    for see in seeing:
        add(see)
    try:
        yield
    finally:
        for see in seeing:
            remove(see)


def key_of(process: Any) -> int:
    """Returns a number that identifies a process; it is below 0 for a thread that is not a
    process."""
    return process.id if process is not None else -threading.get_ident()


def channel_of(end: Any) -> Any:
    """Returns the channel of a reader or writer; None for anything else."""
    return getattr(end, "channel", None)


def is_reader(end: Any) -> bool:
    return type(end) is _native.Reader


def is_ours(frame: FrameType) -> bool:
    """Returns whether the frame runs code of this package. (Plug-and-play processes and the like do
    not count.)
    """
    folder = frame.f_code.co_filename.rpartition(os.sep)[0]
    return folder == _PACKAGE or folder.startswith(f"{_PACKAGE}{os.sep}_")

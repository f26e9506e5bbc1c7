"""The exceptions that the operations of Weft raise. SEMANTICS.md uses their names."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

if sys.version_info < (3, 11):
    from exceptiongroup import BaseExceptionGroup

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "BadUse",
    "BlockedProcess",
    "Cancelled",
    "ChannelEnd",
    "Deadlock",
    "Ended",
    "NoResult",
    "PeerDied",
    "Poisoned",
    "ProcessDied",
    "Retired",
    "WeftError",
    "WeftWarning",
]

# The folder of this package, for native/processes/no_result.cpp.
_FOLDER = __file__.rpartition(os.sep)[0] + os.sep


class WeftWarning(RuntimeWarning):
    """The warning about something that an observer has noticed: a process that hogs its scheduler,
    a partial deadlock, a changed object (rule 14).
    """


class WeftError(Exception):
    """The base of Weft's errors. :class:`Cancelled` does not derive from it, so that ``except
    Exception`` does not catch Cancelled.
    """


class ChannelEnd(WeftError):
    """The channel has ended for this operation. This class is the base of Retired, Poisoned and
    PeerDied.

    Attributes:
        channel: the channel.
        guard: the index of the guard of the select that met the end (rule 5.6); ``None`` for a
            plain operation.
        value: the value that a write has not written (rules 3.3, 4.2); ``None`` for a read.
        met: whether an operation raised the exception (rule 3.5): only then does a process that the
            exception leaves end quietly. `met` is false if the exception was raised for a new end
            of the channel (rule 2.5), or made by the program. It stays the same when the exception
            is raised again.
    """

    # Most of these exceptions have neither guard nor value, and processes commonly end by such an
    # exception. So only values other than None are stored.
    guard: int | None = None
    value: Any = None
    _at: str | None = None  # FILE:LINE, if the exception was raised in another OS process

    def __init__(
        self,
        message: str = "the channel has ended",
        channel: Any = None,
        guard: int | None = None,
        value: Any = None,
        strength: int = 0,
        _met: bool = False,
    ) -> None:
        super().__init__(message)
        self.channel = channel
        if guard is not None:
            self.guard = guard
        if value is not None:
            self.value = value
        self.met = _met

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the exception without its channel, which does not exist in another OS process."""
        return type(self), self.args, {**self.__dict__, "channel": None}


class Retired(ChannelEnd):
    """The other side has retired: the normal end of a channel (rule 3). If an operation met this
    exception, a process that it leaves has ended quietly.
    """


class Poisoned(ChannelEnd):
    """The channel was poisoned: the abort (rule 4). A process that this exception leaves poisons
    the channels whose ends it holds.

    Attributes:
        strength: the strength of the poison, from 1 to 255.
    """

    def __init__(
        self,
        message: str = "the channel was poisoned",
        channel: Any = None,
        guard: int | None = None,
        value: Any = None,
        strength: int = 1,
        _met: bool = False,
    ) -> None:
        super().__init__(message, channel, guard, value, strength, _met)
        self.strength = strength


class PeerDied(ChannelEnd):
    """The other side was killed (rule 4.5). A process that the exception leaves has failed; it has
    not ended quietly.

    Attributes:
        in_doubt: true for a write to a channel whose home is another OS process, if its value may
            have been taken (WIRE.md 8.1).
    """

    in_doubt = False


_WROTE = "; the last that it wrote to its standard error"


class ProcessDied(WeftError):
    """An OS process ended before it could report how the process in it ended: it was killed, it
    crashed, or it called os._exit().

    Attributes:
        process: the name of the process that ran in it.
        pid: the pid of the OS process.
        signal: the number of the signal that ended it; ``None``: no signal did.
        status: its exit status; ``None``: a signal ended it, or the status is not known.
        stack: where its threads were when it crashed, as faulthandler writes it; empty: it was
            killed from outside, or ended itself.
        out_of_memory: whether it was killed (SIGKILL) and, since it began, the system has killed
            processes because memory ran out, so that it probably killed this one too.
        stderr: the last lines that it had written to its standard error.
        refused: why this program ended the session with it, and so ended the OS process; empty:
            this program did not do so.
        host: the name of the host on another machine where the OS process ran; empty: it ran on
            this machine.
    """

    def __init__(
        self,
        process: str,
        pid: int,
        returncode: int | None,
        stack: str = "",
        out_of_memory: bool = False,
        stderr: str = "",
        host: str = "",
        refused: str = "",
    ) -> None:
        self.process = process
        self.pid = pid
        self._returncode, self.host = returncode, host
        self.refused = refused
        self.signal = -returncode if returncode is not None and returncode < 0 else None
        self.status = returncode if returncode is not None and returncode >= 0 else None
        import signal

        try:
            name = "" if self.signal is None else signal.Signals(self.signal).name
        except ValueError:
            name = f"signal {self.signal}"
        how = f"was ended by {name}" if name else f"exited with status {returncode}"
        if returncode is None:
            how = "is lost (its machine or its agent has ended, or the connection broke)"
        self.stack = stack
        self.out_of_memory = out_of_memory
        if out_of_memory:
            how += " (probably by the system, which was out of memory)"
        where = f" on host {host!r}" if host else ""
        text = f"the OS process {pid} of {process!r}{where} {how} before its process had ended"
        if refused:
            text = f"the session with the OS process {pid} of {process!r} was ended by this program, which could not read what it got: {refused}"
        self.stderr = stderr
        if stderr:
            text += f"{_WROTE}:\n{stderr}"
        if stack:
            text += f"\nwhere it was:\n{stack}" if stderr else f":\n{stack}"
        super().__init__(text)

    def __reduce__(self) -> tuple[Any, ...]:
        return ProcessDied, (
            self.process,
            self.pid,
            self._returncode,
            self.stack,
            self.out_of_memory,
            self.stderr,
            self.host,
            self.refused,
        )


class Cancelled(BaseException):
    """This process was asked to end (rule 6). Nothing was lost: the value of a withdrawn write is
    in ``value``.
    """

    _at: str | None = None  # the place of the operation, as in ChannelEnd

    def __init__(self, value: Any = None, _by: Any = None) -> None:
        super().__init__("cancelled" if _by is None else "cancelled: a timeout has expired")
        self.value = value
        # the limit that asked the process to end (rule 7.12), or None if something else asked
        self._by = _by


class BadUse(WeftError):
    """Weft was used wrongly (rule 11). Nothing was changed. The message says what to do."""


class BlockedProcess(NamedTuple):
    """One blocked process in the report of a deadlock."""

    path: str  #: such as "main/worker[3]" (rule 7.8)
    operation: str  #: the operation in words, such as "read of 'c'" or "select of 2 guards"
    places: tuple[str, ...]  #: the names of the channels and barriers at which it waits
    at: str  #: FILE:LINE of the operation


class Ended(NamedTuple):
    """How a process ended (rule 7.11). `process.ended()` returns it."""

    how: str  #: "returned", "retired", "poisoned", "cancelled" or "failed"
    result: Any  #: the value that it returned; ``None``: it did not return
    error: BaseException | None  #: the exception with which it failed; ``None``: it did not fail


class _Why(NamedTuple):
    """The facts in a NoResult. In the program where the process ended, an extension type with the
    same attributes takes the place of this class; when it is pickled, it becomes this class.
    """

    process: str
    how: str
    where: str
    reason: str


class NoResult(WeftError):
    """Takes the place of a process's result if the process ended without one (rule 7.1): in the
    lists that `run`, `Parallel` and `Sequence` return, and in `process.result`.

    A NoResult is false, and equal only to itself. Its text says which process it was, where the
    process ended and why; a copied or pickled NoResult says the same. Any other use raises a copy
    of it: an operator, a call, iteration, an attribute that it does not have (then the copy is an
    AttributeError too). A NoResult keeps no traceback and no frame.
    """

    # `args` contains a _Why, or an object of the extension that makes the texts when they are read.

    @property
    def process(self) -> str:
        """The path of the process, such as main/worker[3] (rule 7.8)."""
        return str(self.args[0].process)

    @property
    def how(self) -> str:
        """How the process ended: "retired", "poisoned", "cancelled", or "failed" if the failure
        went to its watchers.
        """
        return str(self.args[0].how)

    @property
    def where(self) -> str:
        """FILE:LINE of the operation that ended the process; "?" if that is not known."""
        return str(self.args[0].where)

    @property
    def reason(self) -> str:
        """The text of the exception that ended the process."""
        return str(self.args[0].reason)

    def __repr__(self) -> str:
        at = "" if self.where == "?" else f" at {self.where}"
        return f"process {self.process} gave no result: it ended{at} ({self.reason})"

    def __str__(self) -> str:
        return (
            f"{self!r}; ask isinstance(result, NoResult) before the result is used, or catch in the process what "
            "ended it"
        )

    def __bool__(self) -> bool:
        return False

    def __reduce__(self) -> tuple[Any, ...]:
        return NoResult, self.args

    def __getattr__(self, name: str) -> NoReturn:
        # Python itself looks up names like __deepcopy__, and expects this answer.
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(f"'NoResult' object has no attribute {name!r}")
        raise _NoAttribute(*self.args)

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name.startswith("__") and name.endswith("__")):
            raise _NoAttribute(*self.args)
        super().__setattr__(name, value)


class _NoAttribute(NoResult, AttributeError):
    """The copy that an attribute raises: `hasattr` and `getattr` with a default expect an
    AttributeError.
    """

    __qualname__ = "NoResult"

    def __setattr__(self, name: str, value: Any) -> None:
        # Python itself sets these two attributes of an AttributeError. If Python is not allowed to
        # set them, it leaks the exception.
        if name in ("name", "obj"):
            AttributeError.__setattr__(self, name, value)
        else:
            super().__setattr__(name, value)


def _refuses(self: NoResult, *what: Any) -> NoReturn:
    raise NoResult(*self.args)


_OPERATIONS = """
add aenter aexit and call contains delitem divmod enter exit float floor floordiv ge getitem gt
index int invert iter le len lshift lt matmul mod mul neg next or pos pow radd rand rdivmod
reversed rfloordiv rlshift rmatmul rmod rmul ror round rpow rrshift rshift rsub rtruediv rxor
setitem sub truediv trunc xor abs complex ceil bytes fspath await aiter anext
"""
for _name in _OPERATIONS.split():
    setattr(NoResult, f"__{_name}__", _refuses)


class Deadlock(WeftError):
    """Every process was blocked, and nothing outside could wake any of them (rule 10).

    Attributes:
        report: the whole text.
        knot: the paths of a smallest set of processes each of which waits only for processes in the
            set.
        processes: every blocked process.
    """

    def __init__(
        self, report: str, knot: Sequence[str] = (), processes: Sequence[BlockedProcess] = ()
    ) -> None:
        super().__init__(report)
        self.report = report
        self.knot = list(knot)
        self.processes = list(processes)


def _several(failures: list[BaseException]) -> BaseExceptionGroup[BaseException]:
    return BaseExceptionGroup(f"{len(failures)} processes failed", failures)


for _c in (
    WeftError,
    WeftWarning,
    ChannelEnd,
    Retired,
    Poisoned,
    PeerDied,
    ProcessDied,
    Cancelled,
    BadUse,
    BlockedProcess,
    Deadlock,
    Ended,
    NoResult,
    _NoAttribute,
):
    _c.__module__ = "weft"
del _c, _name, _OPERATIONS

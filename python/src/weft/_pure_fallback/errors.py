"""weft.errors without the extension module: the errors of the pure-Python package, as the classes
of `weft`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, NamedTuple

if sys.version_info < (3, 11):
    from exceptiongroup import BaseExceptionGroup

_errors: Any = import_module("weft._pure.errors")


class WeftWarning(RuntimeWarning):
    """A warning about something that an observer has noticed."""


def _several(failures: list[BaseException]) -> BaseExceptionGroup[BaseException]:
    return BaseExceptionGroup(f"{len(failures)} processes failed", failures)


class BlockedProcess(NamedTuple):
    """One blocked process in the report of a deadlock. The pure-Python package does not know where
    in the program the process is.
    """

    path: str
    operation: str
    places: tuple[str, ...] = ()
    at: str = ""


def _processes(deadlock: Any) -> list[BlockedProcess]:
    lines = (line.strip() for line in deadlock.report.splitlines())
    fields = dict(line.split(": ", 1) for line in lines if ": " in line)
    return [BlockedProcess(path, fields.get(path, "")) for path in deadlock.blocked]


_errors.Deadlock.processes = property(_processes)
_errors.Failures = _several  # must be set before _pure._proc reads it
_NAMES = (
    "BadUse",
    "Cancelled",
    "ChannelEnd",
    "Deadlock",
    "NoResult",
    "NoRoom",
    "PeerDied",
    "Poisoned",
    "Retired",
    "WeftError",
)
__all__ = sorted([*_NAMES, "BlockedProcess", "WeftWarning"])
for _name in _NAMES:
    globals()[_name] = _class = getattr(_errors, _name)
    _class.__module__ = "weft"
BlockedProcess.__module__ = WeftWarning.__module__ = "weft"
del _class


def __getattr__(name: str) -> Any:
    from weft._fallback import not_here

    not_here(__name__, name)

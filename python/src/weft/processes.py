"""Processes as processes of the operating system: all cores, each an interpreter of its own. The same names as weft.threads.

Written by tools/names.py: do not edit.
"""

from __future__ import annotations

import weft._extension  # isort: skip  # noqa: F401 – reports a missing extension
from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from weft._backends.blocking import Parallel as Parallel
from weft._backends.blocking import Sequence as Sequence
from weft._backends.blocking import Spawn as Spawn
from weft._backends.io import io as io
from weft._backends.limits import Timeout as Timeout
from weft._backends.limits import deadline as deadline
from weft._backends.limits import move_on_after as move_on_after
from weft._backends.limits import timeout as timeout
from weft._backends.shared import ChannelArray as ChannelArray
from weft._backends.shared import ChannelStats as ChannelStats
from weft._backends.shared import poison as poison
from weft._backends.shared import retire as retire
from weft._backends.shared import run as run
from weft._backends.shared import run_async as run_async
from weft._backends.shared import statistics as statistics
from weft._hosts.hosts import Hosts as Hosts
from weft._hosts.processes import process as process
from weft._hosts.shared_arrays import arrays_in_shared_memory as arrays_in_shared_memory
from weft._hosts.shared_arrays import empty as empty
from weft._hosts.supervisor import Supervisor as Supervisor
from weft._native import Alternative as Alternative
from weft._native import Barrier as Barrier
from weft._native import Channel as Channel
from weft._native import Group as Group
from weft._native import Guard as Guard
from weft._native import Input as Input
from weft._native import Listener as Listener
from weft._native import Output as Output
from weft._native import Outside as Outside
from weft._native import Process as Process
from weft._native import ProcessEnd as ProcessEnd
from weft._native import Reader as Reader
from weft._native import Ready as Ready
from weft._native import Shared as Shared
from weft._native import Stream as Stream
from weft._native import Timer as Timer
from weft._native import Writer as Writer
from weft._native import after as after
from weft._native import at as at
from weft._native import connect as connect
from weft._native import current_process as current_process
from weft._native import listen as listen
from weft._native import now as now
from weft._native import readable as readable
from weft._native import select as select
from weft._native import skip as skip
from weft._native import sleep as sleep
from weft._native import watched as watched
from weft._native import writable as writable
from weft._native import yield_ as yield_
from weft.errors import BadUse as BadUse
from weft.errors import BlockedProcess as BlockedProcess
from weft.errors import Cancelled as Cancelled
from weft.errors import ChannelEnd as ChannelEnd
from weft.errors import Deadlock as Deadlock
from weft.errors import Ended as Ended
from weft.errors import NoResult as NoResult
from weft.errors import PeerDied as PeerDied
from weft.errors import Poisoned as Poisoned
from weft.errors import ProcessDied as ProcessDied
from weft.errors import Retired as Retired
from weft.errors import WeftError as WeftError
from weft.errors import WeftWarning as WeftWarning

if _TYPE_CHECKING:
    from weft._hosts.executor import Executor as Executor
    from weft._hosts.start import freeze_support as freeze_support
    from weft.observe import deadlocks as deadlocks
    from weft.observe import debug as debug
    from weft.observe import measure as measure
    from weft.observe import measuring as measuring
    from weft.observe import tracing as tracing
    from weft.observe import watchdog as watchdog
    from weft.observe import watching_deadlocks as watching_deadlocks

__all__ = [
    "Alternative",
    "BadUse",
    "Barrier",
    "BlockedProcess",
    "Cancelled",
    "Channel",
    "ChannelArray",
    "ChannelEnd",
    "ChannelStats",
    "Deadlock",
    "Ended",
    "Executor",
    "Group",
    "Guard",
    "Hosts",
    "Input",
    "Listener",
    "NoResult",
    "Output",
    "Outside",
    "Parallel",
    "PeerDied",
    "Poisoned",
    "Process",
    "ProcessDied",
    "ProcessEnd",
    "Reader",
    "Ready",
    "Retired",
    "Sequence",
    "Shared",
    "Spawn",
    "Stream",
    "Supervisor",
    "Timeout",
    "Timer",
    "WeftError",
    "WeftWarning",
    "Writer",
    "after",
    "arrays_in_shared_memory",
    "at",
    "connect",
    "current_process",
    "deadline",
    "deadlocks",
    "debug",
    "empty",
    "freeze_support",
    "io",
    "listen",
    "measure",
    "measuring",
    "move_on_after",
    "now",
    "poison",
    "process",
    "readable",
    "retire",
    "run",
    "run_async",
    "select",
    "skip",
    "sleep",
    "statistics",
    "timeout",
    "tracing",
    "watchdog",
    "watched",
    "watching_deadlocks",
    "writable",
    "yield_",
]

_LATER = {
    "Executor": "weft._hosts.executor",
    "deadlocks": "weft.observe",
    "debug": "weft.observe",
    "freeze_support": "weft._hosts.start",
    "measure": "weft.observe",
    "measuring": "weft.observe",
    "tracing": "weft.observe",
    "watchdog": "weft.observe",
    "watching_deadlocks": "weft.observe",
}


def __getattr__(name: str) -> _Any:
    """Imports a name that few programs need, when it is asked for."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(_import_module(_LATER[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

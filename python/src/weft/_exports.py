"""What the modules of all backends export alike, and `names`: everything that each of them exports."""

from __future__ import annotations

from weft._extension import native as _native  # noqa: F401 – first: it says what to do if there is none
from weft._io import io
from weft._native import (
    Alternative,
    Barrier,
    Channel,
    Group,
    Guard,
    Input,
    Output,
    Process,
    Reader,
    Timer,
    Writer,
    after,
    at,
    current_process,
    now,
    select,
    skip,
    sleep,
    yield_,
)
from weft._shared import (
    ChannelStats,
    poison,
    retire,
    run,
    run_async,
    statistics,
)
from weft.errors import (
    BadUse,
    BlockedProcess,
    Cancelled,
    ChannelEnd,
    Deadlock,
    PeerDied,
    Poisoned,
    Retired,
    WeftError,
)

__all__ = [
    "Alternative",
    "BadUse",
    "Barrier",
    "BlockedProcess",
    "Cancelled",
    "Channel",
    "ChannelEnd",
    "ChannelStats",
    "Deadlock",
    "Group",
    "Guard",
    "Input",
    "Output",
    "PeerDied",
    "Poisoned",
    "Process",
    "Reader",
    "Retired",
    "Timer",
    "WeftError",
    "Writer",
    "after",
    "at",
    "current_process",
    "io",
    "now",
    "poison",
    "retire",
    "run",
    "run_async",
    "select",
    "skip",
    "sleep",
    "statistics",
    "yield_",
]

names = sorted([*__all__, "Parallel", "Sequence", "Spawn", "process"])

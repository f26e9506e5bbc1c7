"""Processes as coroutines on one scheduler: operations are awaited."""

from ._alt import Alternative, Input, Output, after, at, select, skip  # noqa: F401
from ._chan import Channel, poison, retire  # noqa: F401
from ._io import io  # noqa: F401
from ._proc import (  # noqa: F401
    Group,
    Parallel,
    Process,
    Sequence,
    Spawn,
    current_process,
    process,
    run,
    watched,
)
from ._time import now  # noqa: F401
from ._wait import Barrier, Timer, sleep, sleep_ms, yield_  # noqa: F401
from .errors import (  # noqa: F401
    BadUse,
    Cancelled,
    ChannelEnd,
    Deadlock,
    Failures,
    NoRoom,
    PeerDied,
    Poisoned,
    Retired,
    TimeoutError,
    WeftError,
)


async def run_async(*processes):
    """The network in a task of MicroPython's asyncio, inside its loop."""
    from . import _aio

    return await _aio.run_async(*processes)


def __getattr__(name):
    """timeout, deadline and move_on_after (rule 7.12) are loaded by those who name them."""
    if name in ("timeout", "deadline", "move_on_after"):
        from . import _limits

        return getattr(_limits, name)
    raise AttributeError(name)

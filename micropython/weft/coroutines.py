"""Processes as coroutines on one scheduler: operations are awaited."""

from ._alt import Alternative, Input, Output, after, at, select, skip  # noqa: F401
from ._chan import Channel, poison, retire  # noqa: F401
from ._io import io  # noqa: F401
from ._proc import (  # noqa: F401
    Barrier,
    Group,
    Parallel,
    Process,
    Sequence,
    Spawn,
    Timer,
    current_process,
    process,
    run,
    sleep,
    sleep_ms,
    yield_,
)
from ._time import now  # noqa: F401
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
    WeftError,
)


async def run_async(*processes):
    """The network in a task of MicroPython's asyncio, inside its loop."""
    from . import _aio

    return await _aio.run_async(*processes)

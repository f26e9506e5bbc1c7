"""Processes as coroutines on one scheduler: a process awaits its operations."""

# MicroPython's cache of look-ups has 64 places, assigned to names in the order of their first use.
# With these two imports first, no two names of the core share a place (tests/test_costs.py
# counts).
from .errors import *  # noqa: F403, I001
from . import _core as _first  # noqa: F401
from ._chan import Channel, poison, retire  # noqa: F401
from ._proc import (  # noqa: F401
    Parallel,
    Process,
    current_process,
    process,
    run,
)


async def run_async(*processes):
    """Runs a network in a task of MicroPython's asyncio, inside the running loop. Returns what
    `run` returns."""
    from . import _aio

    return await _aio.run_async(*processes)


def __getattr__(name):
    """Loads a rarely needed name when it is first used. (`in` also accepts a part of such a name;
    then getattr() raises the AttributeError.)"""
    if name in "Alternative Input Output after at select skip":
        from . import _alt as m
    elif name in "Barrier Timer sleep sleep_ms yield_":
        from . import _wait as m
    elif name == "now":
        from . import _time as m
    elif name in "Group Sequence Spawn":
        from . import _group as m
    elif name == "io":
        from . import _io as m
    elif name == "watched":
        from . import _ended as m
    elif name in "timeout deadline move_on_after":
        from . import _limits as m
    else:
        from . import errors as m
    return getattr(m, name)

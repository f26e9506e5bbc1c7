"""Makes the lines of a Deadlock about ends that were given to no process. Such an end keeps the
readers or writers on the other side waiting, since it might still be used (rules 2.2, 10.2).
"""

from __future__ import annotations

import gc
import inspect
import sys
from pathlib import PurePath
from typing import Any

from weft._extension import native as _native

__all__ = ["sentences"]

OUTSIDE = (
    "if something that Weft does not see will use such an end (a C library that calls back, a device): "
    "hold a weft.Outside() meanwhile"
)
_LINES = 8  # the largest number of channels, and of places in one line


def sentences(left: list[tuple[str, Any, str, int]]) -> str:
    """Returns the lines of text for these ends, each given as (name of the channel, channel,
    "reader" or "writer", how many such ends are open now).
    """
    rows = list({(id(c), side): (name, c, side, n) for name, c, side, n in left if n}.values())
    objects = _objects() if rows else []
    try:
        lines = [_sentence(*one, objects) for one in rows[:_LINES]]
    finally:
        objects.clear()  # the list can be part of a cycle with one of its objects
    if len(rows) > _LINES:
        lines.append(f"… and ends of {len(rows) - _LINES} more channels")
    if lines:
        lines.append(OUTSIDE)
    return "".join(f"\n{line}" for line in lines)


def _sentence(name: str, channel: Any, side: str, n: int, objects: list[Any]) -> str:
    places = sorted(set(_native._made_at(channel, side == "reader", objects)))
    shown = [f"{PurePath(file).name}:{line}" for file, line in places[:_LINES]]
    made = f" (made at {', '.join(shown)}{', …' if len(places) > _LINES else ''})" if shown else ""
    if n == 1:
        return f"a {side} end of {name} is still open outside any process{made}: retire it"
    return f"{n} {side} ends of {name} are still open outside any process{made}: retire them"


def _objects() -> list[Any]:
    """Returns all objects that the garbage collector knows, and the variables of running functions,
    which the collector does not know.

    The caller must empty the list before any other code runs, since the list keeps all these
    objects alive, even the main greenlets of threads. When a thread ends, greenlet frees the
    thread's main greenlet in spite of a reference whose owner it cannot find. That is the case, for
    example, while the garbage collector is taking apart a cycle that contains the owner.
    """
    objects: list[Any] = gc.get_objects()
    frames = list(sys._current_frames().values())
    # No variable keeps a frame: otherwise the frame of this function would keep itself and all
    # outer frames alive.
    while frames:
        if (outer := frames[-1].f_back) is not None:
            frames.insert(0, outer)
        del outer
        objects.extend(_variables(frames.pop()))
    return objects


def _variables(frame: Any) -> list[Any]:
    if not frame.f_code.co_flags & inspect.CO_OPTIMIZED or frame.f_code.co_filename == __file__:
        return []
    variables = frame.f_locals
    values = list(variables.values())
    # Before Python 3.13 `variables` is a copy, which would keep the values alive. But if locals()
    # was called, `variables` is the dictionary that locals() returned, and must stay as it is.
    if isinstance(variables, dict) and sys.getrefcount(variables) <= _OURS:
        variables.clear()
    return values


_OURS = 3  # references: those of the frame, the variable and the argument

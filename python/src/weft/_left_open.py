"""What a Deadlock says of ends that no process had been given: such an end keeps the readers or writers on the other side
waiting, as somebody might yet use it (rules 2.2, 10.2)."""

from __future__ import annotations

import gc
import inspect
import sys
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from weft._extension import native as _native

__all__ = ["sentences"]

_LINES = 8  # of channels, and of places in one line


def sentences(left: list[tuple[str, Any, str, int]]) -> str:
    """A line for each of (name of the channel, channel, "reader" or "writer", how many such ends are open now)."""
    told = list({(id(c), side): (name, c, side, n) for name, c, side, n in left if n}.values())
    objects = _objects() if told else []
    lines = [_sentence(*one, objects) for one in told[:_LINES]]
    if len(told) > _LINES:
        lines.append(f"… and ends of {len(told) - _LINES} more channels")
    return "".join(f"\n{line}" for line in lines)


def _sentence(name: str, channel: Any, side: str, n: int, objects: list[Any]) -> str:
    places = sorted(set(_native._made_at(channel, side == "reader", objects)))
    shown = [f"{PurePath(file).name}:{line}" for file, line in places[:_LINES]]
    made = f" (made at {', '.join(shown)}{', …' if len(places) > _LINES else ''})" if shown else ""
    if n == 1:
        return f"a {side} end of {name} is still open outside any process{made}: retire it"
    return f"{n} {side} ends of {name} are still open outside any process{made}: retire them"


def _objects() -> list[Any]:
    """All that the collector knows, and the variables of the functions that run, which it does not see."""
    objects: list[Any] = gc.get_objects()
    for frame in sys._current_frames().values():
        at: Any = frame
        while at is not None:
            if at.f_code.co_flags & inspect.CO_OPTIMIZED and at.f_code.co_filename != __file__:
                objects.extend(_variables(at))
            at = at.f_back
    return objects


def _variables(frame: Any) -> Iterator[Any]:
    variables = frame.f_locals
    yield from list(variables.values())
    if isinstance(variables, dict):  # before 3.13 a copy, which would keep the ends
        for name in [n for n, v in variables.items() if isinstance(v, _ENDS)]:
            del variables[name]


_ENDS = (_native.Reader, _native.Writer)

"""Arrays that are filled where another OS process will read them (WIRE.md 9.4):
`weft.processes.empty`."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any, SupportsIndex

from weft._extension import native as _native
from weft.errors import BadUse

__all__ = ["empty"]

SMALL = 16_384  # bytes: what is smaller goes within its pickle


def empty(shape: SupportsIndex | Iterable[SupportsIndex], dtype: Any = float) -> Any:
    """An array of numpy's, not yet filled, in memory that another OS process can read: written to a
    channel, it is read there where it lies, without a copy.

    That is so once. From the write on it is the reader's, who may change it, and what is still held
    of it here shows that: make another one. A part of it, and it itself when it is written again,
    go by copy, as any other array. If there is no such memory, it is an ordinary array.

    Args:
        shape: as of numpy.empty: a length, or one for each dimension.
        dtype: as of numpy.empty.

    Raises:
        BadUse: numpy is not installed.
        TypeError, ValueError: numpy makes no such array.
    """
    try:
        import numpy
    except ImportError:
        raise BadUse("empty makes an array of numpy's: pip install numpy") from None
    lengths: tuple[int, ...]
    try:  # to ask whether it is a SupportsIndex takes longer than all the rest
        lengths = (operator.index(shape),)  # type: ignore[arg-type]
    except TypeError:
        lengths = tuple(map(operator.index, shape))  # type: ignore[arg-type]
    kind = numpy.dtype(dtype)
    size = math.prod(lengths) * kind.itemsize
    if kind.hasobject or size < SMALL or min(lengths) < 0:
        return numpy.empty(lengths, kind)
    memory = _native._place(size)
    if memory is None:
        return numpy.empty(lengths, kind)
    return numpy.ndarray(lengths, kind, buffer=memory)

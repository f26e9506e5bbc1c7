"""`weft.processes.empty`: arrays in memory that another OS process can read (WIRE.md 9.4)."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any, SupportsIndex

from weft._extension import native as _native
from weft.errors import BadUse

__all__ = ["empty"]

SMALL = 16_384  # bytes; a smaller array goes within its pickle


def empty(shape: SupportsIndex | Iterable[SupportsIndex], dtype: Any = float) -> Any:
    """Makes an array of numpy, not yet filled, in memory that another OS process can read. When it
    is written to a channel, it is read there without a copy.

    Only one write is without a copy. From then on the array belongs to the reader, which may change
    it, and references to it in this OS process see the changes: make another array. A part of the
    array, and the array when it is written again, are copied, as any other array is. If there is no
    such memory, the result is an ordinary array.

    Args:
        shape: a length, or one for each dimension, as numpy.empty takes it.
        dtype: the type of the elements, as numpy.empty takes it.

    Raises:
        BadUse: numpy is not installed.
        TypeError, ValueError: numpy cannot make such an array.
    """
    try:
        import numpy
    except ImportError:
        raise BadUse("weft.processes.empty needs numpy: pip install numpy") from None
    lengths: tuple[int, ...]
    try:  # isinstance(shape, SupportsIndex) takes longer than the rest of the function
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

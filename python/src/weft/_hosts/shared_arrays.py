"""`weft.processes.empty` and `arrays_in_shared_memory`: arrays in memory that another OS process
can read (WIRE.md 9.4).
"""

from __future__ import annotations

import contextlib
import math
import opcode
import operator
import sys
from collections.abc import Iterable, Iterator
from typing import Any, SupportsIndex

from weft._extension import native as _native
from weft.errors import BadUse

__all__ = ["arrays_in_shared_memory", "empty"]

SMALL = 16_384  # bytes; a smaller array goes within its pickle


# The instructions by which a Python function calls a method with arguments from its stack. From
# Python 3.14 on, a variable may lend its reference to the stack, so the number of references does
# not show whether the caller has another one.
if sys.version_info < (3, 14):
    _native._set_calls(
        bytes(
            opcode.opmap[name]
            for name in ("CALL_FUNCTION", "CALL_METHOD", "PRECALL", "CALL")
            if name in opcode.opmap
        )
    )


@contextlib.contextmanager
def arrays_in_shared_memory() -> Iterator[None]:
    """Makes numpy allocate arrays of 64 KiB or more, within the block, in memory that another OS
    process can read. If a write to a channel has the only reference to such an array, it gives the
    array away: the reader gets that memory, without a copy (rule 9.7).

    The block affects only this thread, or this coroutine process. What a function of another
    library allocates by itself is not affected. If there is no such memory, or many arrays are in
    it already, numpy makes ordinary arrays, which are copied when they are written.

    Raises:
        BadUse: numpy is not installed, or is older than 1.22.
    """
    try:
        import numpy
    except ImportError:
        raise BadUse(
            "weft.processes.arrays_in_shared_memory needs numpy: pip install numpy"
        ) from None
    core: Any = getattr(numpy, "_core", None) or numpy.core  # numpy 2, numpy 1
    api = core._multiarray_umath._ARRAY_API
    before = _native._set_numpy_memory(api, None)
    if before is None:
        raise BadUse(
            f"weft.processes.arrays_in_shared_memory needs numpy 1.22 or later, and this is {numpy.__version__}: "
            "pip install -U numpy"
        )
    try:
        yield
    finally:
        _native._set_numpy_memory(api, before)


def empty(shape: SupportsIndex | Iterable[SupportsIndex], dtype: Any = float) -> Any:
    """Makes an array of numpy, not yet filled, in memory that another OS process can read. When it
    is written to a channel, it is read there without a copy.

    The first write is without a copy. From then on the array belongs to the reader, which may
    change it, and references to it in this OS process see the changes: make another array. A part
    of the array, and the array when it is written again, are copied, as any other array is, unless
    the write has the only reference (rule 9.7). If there is no such memory, the result is an
    ordinary array.

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

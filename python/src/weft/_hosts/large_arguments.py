"""Large arguments of an Executor's calls: each is put into shared memory once, for all calls that
have it (rule 9.4).

    put(): Large of each large argument ──Call.large──► share(), as a call's arguments are pickled
        ├─there is a copy, and its bytes are still equal──► this copy
        ├─a second call has the argument, or it is very large──► a new copy, a weft.processes.Shared
        └─else, or there is no shared memory──► the buffer, which goes with the message

Invariants
- A copy is used for a call only if its bytes were equal to the argument's at some time after the
  call's submit() or map() had begun. The bytes are compared once for the calls of a lot, and once
  for the calls of a map() whose inputs run no code of the user's. So no harm is done if a Large is
  found by an address at which there is another object now.
- The Executor's table refers weakly to a Large. The calls that have the argument refer to the Large
  until these calls have ended, so the copy ends with the last of them. Then its memory serves
  another copy, because getting new pages from the system takes several times as long as writing to
  them.
- Only feeders take the lock of a Large, and no signal handler runs on their threads (pool.py). A
  finaliser may run there, so no feeder waits for the lock forever. If the wait ends without the
  lock, there are two copies for a while.
"""

from __future__ import annotations

import _thread
import pickle
import sys
import weakref
from collections.abc import Callable
from typing import Any, Protocol

from weft._extension import native as _native
from weft._hosts import pickling as _pickling
from weft.errors import BadUse

__all__ = ["Table", "in_buffers", "may_be_frames"]

LEAST = 1 << 20  # bytes; a smaller argument goes with each call
# In bytes. An argument of this size is copied even if only one call has it. A smaller argument of
# one call is sent faster through memory that the channel has used before.
ALONE = 16 << 20
# The largest number of copies that an Executor has at one time. Each copy takes a descriptor in
# each OS process.
MAX_COPIES = 64
_PATIENCE = 5.0  # how many seconds a feeder waits while another feeder makes a copy
_PIECE = 256 << 10  # bytes that are compared at one time; they fit into a CPU's cache

_WHOLE = frozenset(map(id, (bytes, bytearray, memoryview)))


class _Call(Protocol):
    """The part of a pool.Call that this module uses."""

    large: list[Large]

    @property
    def lot(self) -> Any: ...
    @property
    def together(self) -> Any: ...


class Large:
    """A large argument, which is in the memory of this program."""

    __slots__ = ("__weakref__", "_copy", "_making", "_value", "again")

    def __init__(self, value: Any) -> None:
        self._value = value  # keeps the memory from being reused for another object
        # A Shared, and the calls for which its bytes were last compared.
        self._copy: tuple[Any, Any] | None = None
        self._making = _thread.allocate_lock()
        self.again = False  # whether a second call has the argument

    def copy(self, bytes_now: memoryview, calls: Any, may_make: bool) -> Any:
        """Returns the argument as a Shared, for one of these calls; None if the argument is to be
        sent in another way. `bytes_now` contains the argument's bytes. `may_make` allows a copy to
        be made if there is none.
        """
        if (there := self._copy) is not None and there[1] is calls:
            return there[0]
        if there is None and not may_make:
            return None
        if there is None and not self.again and bytes_now.nbytes < ALONE:
            return None
        has_lock = self._making.acquire(timeout=_PATIENCE)
        try:
            # Another feeder might have made or compared the copy in the meantime.
            if (there := self._copy) is not None and there[1] is calls:
                return there[0]
            if there is None or not _same(there[0], bytes_now):
                there = _native._shared_again(bytes_now), calls
            self._copy = there[0], calls
        except (BadUse, MemoryError):  # no memory, or no descriptor
            self._copy = None
            return None
        finally:
            if has_lock:
                self._making.release()
        return there[0]


def _same(copy: Any, now: memoryview) -> bool:
    before = memoryview(copy)
    if before.nbytes != now.nbytes:
        return False
    return all(
        # A bytearray compares itself with any buffer by memcmp; a memoryview compares item by item.
        bytearray(before[at : at + _PIECE]) == now[at : at + _PIECE]
        for at in range(0, now.nbytes, _PIECE)
    )


class Table:
    """The large arguments of the calls of an Executor that have not ended."""

    def __init__(self) -> None:
        self._all: weakref.WeakValueDictionary[tuple[int, int], Large] = (
            weakref.WeakValueDictionary()
        )
        self._copied: weakref.WeakSet[Large] = weakref.WeakSet()

    def of(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> list[Large]:
        """Returns the large arguments of a call. This runs no user code."""
        found: list[Large] = []
        array = _array()
        for value in (*args, *keywords.values()) if keywords else args:
            kind = type(value)
            if kind is not array and id(kind) not in _WHOLE:
                continue
            try:
                size = len(value) if kind is bytes or kind is bytearray else value.nbytes
            except ValueError:  # raised for a memoryview that was released
                continue
            if size >= LEAST:
                large, is_new = self._at(value, size)
                large.again |= not is_new
                found.append(large)
        return found

    def _at(self, value: Any, size: int) -> tuple[Large, bool]:
        """Returns the Large of this object, and whether it is new."""
        where = _address(value)
        large = self._all.get((where, size))
        if large is not None:
            return large, False
        large = self._all[where, size] = Large(value)
        return large, True

    def share(self, call: _Call) -> Callable[[pickle.PickleBuffer], Any]:
        """Returns a function that returns what is sent in place of a buffer of this call's
        arguments: the buffer; a Shared, which the other OS process maps; or a tuple with a Shared,
        if that OS process is allowed to write to the mapped memory.
        """

        def instead(buffer: pickle.PickleBuffer) -> Any:
            try:
                raw = buffer.raw()
            except BufferError:  # raised if the bytes of the buffer are not contiguous
                return buffer
            if raw.nbytes < LEAST:
                return buffer
            large, is_new = self._at(raw.obj, raw.nbytes)
            # the buffer is only a part of an argument
            if all(one is not large for one in call.large):
                large.again |= not is_new
                call.large.append(large)
            copy = large.copy(raw, call.together or call.lot, len(self._copied) < MAX_COPIES)
            if copy is None:
                return buffer
            self._copied.add(large)
            return copy if raw.readonly else (copy,)

        return instead


def _array() -> Any:
    return getattr(sys.modules.get("numpy"), "ndarray", None)


def _address(value: Any) -> int:
    """Returns the address of the value's memory, if the value's library makes new objects for the
    same memory: numpy for a view, or for the transpose that it pickles; pyarrow for each pickle of
    a table. Otherwise returns the object's id().
    """
    kind = type(value)
    if kind is _array():
        return int(value.__array_interface__["data"][0])
    if kind.__module__ == "pyarrow.lib" and isinstance(getattr(value, "address", None), int):
        return int(value.address)
    return id(value)


class _Whole:
    """Bytes that are pickled as a buffer, and unpickled as an object of their original type."""

    __slots__ = ("_value",)

    def __init__(self, value: bytes | bytearray) -> None:
        self._value = value

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self._value), (pickle.PickleBuffer(self._value),)


class _Frame:
    """A frame of polars, which is pickled as a table of pyarrow: the columns go in buffers."""

    __slots__ = ("_name", "_table")

    def __init__(self, table: Any, name: str | None) -> None:
        self._table, self._name = table, name

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _frame_of, (self._table, self._name)


def _frame_of(table: Any, name: str | None) -> Any:
    import polars  # type: ignore[import-not-found, unused-ignore]

    frame = polars.from_arrow(table)
    return frame if name is None else frame.to_series().alias(name)


def _in_arrow(value: Any, polars: Any) -> Any:
    """Returns a large frame or series of polars as a _Frame. Returns any other value unchanged;
    also a frame with a column whose type Arrow lacks, and any frame if pyarrow is not installed.
    """
    series = type(value) is polars.Series
    try:
        import pyarrow  # type: ignore[import-not-found, import-untyped, unused-ignore]  # noqa: F401

        if value.estimated_size() < LEAST:
            return value
        frame = value.to_frame() if series else value
        table = frame.to_arrow()
        if polars.from_arrow(table.slice(0, 0)).schema != frame.schema:
            return value
    except Exception:  # Arrow lacks the type of a column, for example Python's objects
        return value
    return _Frame(table, value.name if series else None)


def may_be_frames() -> bool:
    """Returns whether an argument might be a frame of polars."""
    return "polars" in sys.modules


def in_buffers(value: Any) -> Any:
    """Returns an argument as an object that is pickled with its bytes in a buffer, if pickle would
    otherwise copy the bytes of this kind of argument into the pickle.
    """
    kind = type(value)
    polars = sys.modules.get("polars")
    if polars is not None and kind in (
        getattr(polars, "DataFrame", None),
        getattr(polars, "Series", None),
    ):
        return _in_arrow(value, polars)
    if kind is memoryview:
        return _pickling.of_numbers(value) or value
    if (kind is bytes or kind is bytearray) and len(value) >= LEAST:
        return _Whole(value)
    return value

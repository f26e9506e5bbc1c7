"""Carries the user's values within Weft's own messages, even if a value cannot be pickled or
rebuilt.

    apart(value) ──pickled separately, within the message──► opened(value): the value, or its error
        └─pickling fails: the error is kept here, and sent in the value's place ──┘

So the message itself always arrives with its other values, and no process waits for it in vain.

Invariants
- A value whose pickling runs no user code is sent as it is: numbers, texts and small containers of
  these.
- Large buffers within a value (arrays) are sent beside the message, as if the value were sent
  alone; so are the ends of channels in the value.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

from weft._extension import native as _native
from weft._hosts import foreign_exceptions as _foreign_exceptions
from weft._hosts import pickling as _pickling
from weft.errors import BadUse, ChannelEnd

__all__ = ["Apart", "apart", "call_apart", "not_rebuilt", "opened"]

# The ids of classes. To look up a class itself would call its __hash__, which can be user code.
_PLAIN = frozenset(map(id, (type(None), bool, int, float, complex, str, bytes)))
# how many items are inspected; above this number, pickling the value separately is quicker
_MANY = 64
_Instead = Callable[[pickle.PickleBuffer], Any]
_FEW = 4  # how many items are inspected if there are containers among them


def _is_plain(value: Any, within: int = 2) -> bool:
    """Returns whether pickling the value runs no user code. Nested containers are inspected
    `within` levels deep.
    """
    kind = type(value)
    if id(kind) in _PLAIN:
        return True
    if kind is dict:
        return not value
    if (kind is not tuple and kind is not list) or len(value) > _MANY:
        return False
    if _PLAIN.issuperset(map(id, map(type, value))):
        return True
    if within == 0 or len(value) > _FEW:
        return False
    for one in value:  # noqa: SIM110 - a generator is slower: this runs for each call and result
        if not _is_plain(one, within - 1):
            return False
    return True


def apart(what: str, value: Any) -> Any:
    """Returns a plain value as it is, and any other value as an Apart. `what` names the value in an
    error, such as "the result".
    """
    return value if _is_plain(value) else Apart(what, value)


def call_apart(
    what: str, args: tuple[Any, ...], keywords: dict[str, Any], instead: _Instead | None = None
) -> Any:
    """Returns the arguments of a call: (args, keywords) as they are if they are plain, otherwise an
    Apart. `instead` returns what is sent in place of a buffer in the arguments.
    """
    given = args, keywords
    return given if not keywords and _is_plain(args) else Apart(what, given, instead)


def opened(value: Any) -> Any:
    """Returns the value that apart() was given in another OS process.

    Raises:
        BadUse: the value could not be pickled there; or its unpickling here raised an exception
            that would mean something else to the reader. Any other exception that unpickling the
            value raises.
    """
    return value.value() if type(value) is _Opened else value


def not_rebuilt(what: str, error: BaseException) -> BaseException:
    """Returns the exception to raise when unpickling has raised `error`. If `error` would end a
    loop, a process or the program here, a BadUse takes its place, since only the user's object has
    failed.
    """
    kind = type(error)
    means_more = (StopIteration, StopAsyncIteration, ChannelEnd)
    if issubclass(kind, Exception) and not issubclass(kind, means_more):
        return error
    wrong = BadUse(
        f"{what} cannot be rebuilt: unpickling raises {_foreign_exceptions.text_of(error)}"
    )
    _foreign_exceptions.cause_set(wrong, error)
    return wrong


class Apart:
    """A value that is pickled separately.

    Attributes:
        error: why the value could not be pickled, after an attempt that failed.
    """

    __slots__ = ("_instead", "_what", "error", "value")

    def __init__(self, what: str, value: Any, instead: _Instead | None = None) -> None:
        self._what, self.value, self._instead = what, value, instead
        self.error: BaseException | None = None

    def __reduce_ex__(self, protocol: Any) -> Any:
        buffers: list[pickle.PickleBuffer] = []
        try:
            packed = _pickling.dumps_apart(self._what, self.value, buffers)
            beside = buffers if self._instead is None else list(map(self._instead, buffers))
        except BaseException as error:
            self.error = error
            return _opened, (self._what, None, _pickling.Failure(error), [])
        return _opened, (self._what, packed, None, beside)


class _Opened:
    __slots__ = ("_error", "_value")

    def __init__(self, value: Any, error: BaseException | None) -> None:
        self._value, self._error = value, error

    def value(self) -> Any:
        """Returns the value, or raises its error. Call this method only once: afterwards this
        object keeps neither.
        """
        error, value, self._error, self._value = self._error, self._value, None, None
        if error is not None:
            raise error
        return value


def _to_change(shared: Any) -> Any:
    memory = _native._shared_to_change(shared)
    return bytearray(shared) if memory is None else memory


def _opened(
    what: str, packed: bytes | None, failure: _pickling.Failure | None, buffers: list[Any]
) -> _Opened:
    """Rebuilds an Apart. pickle calls this in the other OS process. A buffer in a tuple is a
    Shared, of which this OS process may change its own copy (large_arguments.py).
    """
    if packed is None:
        assert failure is not None
        return _Opened(None, failure.exception())
    try:
        buffers = [_to_change(*one) if type(one) is tuple else one for one in buffers]
        return _Opened(pickle.loads(packed, buffers=buffers), None)
    except BaseException as error:
        if _foreign_exceptions.is_ctrl_c(error):
            raise
        return _Opened(None, not_rebuilt(what, error))

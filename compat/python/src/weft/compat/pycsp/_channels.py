"""pycsp's channels and their ends over Weft's.

Invariants
- A channel keeps one native end of each side for as long as it exists, and all its pycsp ends of
  that side work through it. In pycsp only retire gives an end up (neither the return of a process
  nor the collector does), so Weft's own counting of ends (rule 2.2) must not see pycsp's ends.
- `_open[side]` counts the pycsp ends that were made and not retired, under `_counting`. When it
  falls to 0 the side is `_over` permanently (rule 2.5) and its native end retires, outside the
  lock, because that may run finalisers.

States of a side:   fresh ──_join()──► open ──_leave() by its last end──► retired
                                         └──poison()──► poisoned     (a buffered channel's writer: `_draining` first)
"""

from __future__ import annotations

import sys
import threading
import weakref
from typing import TYPE_CHECKING, Any, NoReturn

from weft import threads as _weft
from weft.compat._alternatives import born
from weft.compat.pycsp._errors import (
    ChannelPoisonException,
    ChannelRetireException,
    InfoException,
)
from weft.errors import BadUse, PeerDied

__all__ = ["Channel", "ChannelEnd", "ChannelEndRead", "ChannelEndWrite", "poison", "retire"]

READ, WRITE = 0, 1

_counting = threading.Lock()
_by_name: weakref.WeakValueDictionary[str, Channel] = weakref.WeakValueDictionary()


class Channel:
    """An any-to-any channel.

    Args:
        name: a label. Two channels may have the same name.
        buffer: how many values the channel holds; 0 means a rendezvous.
        connect: the `address` of a channel of this name, in this program or in another one of the
            same user on this machine: the new object is another handle of that channel.
    Raises:
        InfoException: `connect` without a name or with a buffer.
        ChannelConnectException: there is no such channel within Configuration's
        SOCKETS_CONNECT_TIMEOUT. BadUse: a negative buffer.
    """

    __slots__ = ("__weakref__", "_draining", "_ends", "_native", "_open", "_over", "buffer", "name")

    _native: Any
    _ends: tuple[Any, Any]
    _open: list[int]
    _over: list[bool]
    _draining: bool
    name: str
    buffer: int

    def __new__(cls, name: Any = None, buffer: int = 0, connect: Any = None) -> Channel:
        if isinstance(name, bytes):
            name = name.decode()
        if connect is not None:
            return cls._connected(name, buffer, connect)
        self = super().__new__(cls)
        self._native = _weft.Channel(name or born(sys._getframe(1)), capacity=buffer)
        self._ends = (self._native.reader(), self._native.writer())
        self._open = [0, 0]
        self._over = [False, False]
        self._draining = False
        self.name = self._native.name
        self.buffer = buffer
        if name:
            _by_name[name] = self
        return self

    @staticmethod
    def _connected(name: str | None, buffer: int, connect: Any) -> Channel:
        if not name:
            raise InfoException("connect needs the name of the channel to connect to")
        if buffer:
            raise InfoException(
                "no buffer with connect: the channel has one or not where it was made"
            )
        from weft.compat.pycsp import _remote

        address = (str(connect[0]), int(connect[1]))
        channel = _by_name.get(name)
        if channel is not None and address == _remote.at():
            return channel
        return _remote.FarChannel(name, address)

    _far = False  # whether the home of the channel is another program

    @property
    def address(self) -> tuple[str, int]:
        """The address at which other programs of this user, and `connect=` here, find the channel
        by its name: this machine, and a port of this program's.

        Raises:
            ChannelBindException: the port in Configuration is in use.
        """
        from weft.compat.pycsp import _remote

        return _remote.here()

    def reader(self) -> ChannelEndRead:
        """Returns a new reading end."""
        return ChannelEndRead(self)

    def writer(self) -> ChannelEndWrite:
        """Returns a new writing end."""
        return ChannelEndWrite(self)

    __pos__ = reader
    __neg__ = writer

    def __mul__(self, n: int) -> list[Channel]:
        """Returns a list of this channel and n - 1 new channels with the same settings."""
        return [
            self,
            *[type(self)(f"{self.name}[{i}]", buffer=self.buffer) for i in range(1, int(n))],
        ]

    __rmul__ = __mul__

    def disconnect(self) -> None:
        """Does nothing, because a channel has no connection that could be closed."""

    def _join(self, side: int) -> bool:
        with _counting:
            if self._over[side]:
                return False
            self._open[side] += 1
            return True

    def _leave(self, side: int) -> None:
        with _counting:
            self._open[side] -= 1
            last = self._open[side] == 0
            self._over[side] = self._over[side] or last
        if last:
            self._ends[side].retire()

    def _poison(self, side: int) -> None:
        # A value that was written before the poison is read before the poison takes effect, as in
        # pycsp, where the poison goes through the buffer too.
        if side == WRITE and self.buffer and not self._draining:
            self._draining = True
            self._ends[WRITE].retire()
        else:
            self._native.poison()

    def _lost(self, error: PeerDied, side: int) -> Exception:
        """Returns the exception of an operation on the side `side` of a channel whose other side
        has died.
        """
        return error

    def _ended(self) -> Exception:
        """Returns the exception of an operation on a side that has ended."""
        if self._draining:
            return ChannelPoisonException(f"channel {self.name!r}: it was poisoned", self._native)
        return ChannelRetireException(f"channel {self.name!r}: this end has retired", self._native)

    def __repr__(self) -> str:
        return f"<Channel named {self.name}>"


class ChannelEnd:
    """The methods of both kinds of end: poison, retire, disconnect, isReader, isWriter.

    `__call__` is a slot of the instance. It holds the native operation, so that a communication
    runs no code of this layer. In a buffered channel, whose poison is translated, and once the end
    is retired, it holds a method of the end.
    """

    __slots__ = ("__call__", "_closed", "channel")

    _op: int
    if TYPE_CHECKING:
        __call__: Any

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self._closed = not channel._join(self._op)
        if self._closed:
            self.__call__ = self._refuse
        elif channel.buffer or channel._far:
            self.__call__ = self._translated
        else:
            self.__call__ = self._native()

    def _native(self) -> Any:
        raise NotImplementedError

    def _translated(self, *msg: Any) -> Any:
        try:
            return self._native()(*msg)
        except PeerDied as error:
            raise self.channel._lost(error, self._op) from None
        except (ChannelRetireException, BadUse) as error:
            self._failed(error)

    def _refuse(self, *_: Any) -> NoReturn:
        raise self.channel._ended()

    def _failed(self, error: BaseException) -> NoReturn:
        """Raises pycsp's exception for Weft's `error`."""
        if self.channel._draining:
            raise self.channel._ended() from None
        raise error

    def poison(self) -> None:
        """Poisons the channel: every operation on it raises ChannelPoisonException."""
        self.channel._poison(self._op)

    def retire(self) -> None:
        """Retires this end; when the last end of a side retires, the channel retires. A second call
        does nothing."""
        if not self._closed:
            self._closed = True
            self.__call__ = self._refuse
            self.channel._leave(self._op)

    def disconnect(self) -> None:
        """Does nothing, because an end has no connection that could be closed."""

    def isReader(self) -> bool:
        return self._op == READ

    def isWriter(self) -> bool:
        return self._op == WRITE

    def __repr__(self) -> str:
        return f"<{type(self).__name__} on channel named {self.channel.name}>"


class ChannelEndRead(ChannelEnd):
    """The end that is read by calling it: `value = cin()`.

    Raises:
        ChannelPoisonException, ChannelRetireException.
    """

    __slots__ = ()
    _op = READ

    def _native(self) -> Any:
        return self.channel._ends[READ].read


class ChannelEndWrite(ChannelEnd):
    """The end that is written by calling it: `cout(value)` returns when a reader, or the buffer,
    has the value.

    Raises:
        ChannelPoisonException, ChannelRetireException.
    """

    __slots__ = ()
    _op = WRITE

    def _native(self) -> Any:
        return self.channel._ends[WRITE].write


def _each_end(ends: Any, verb: str) -> Any:
    for end in ends:
        if isinstance(end, list | tuple):
            yield from _each_end(end, verb)
        elif isinstance(end, Channel):
            raise InfoException(f"{verb}: got a channel; {verb} one of its ends instead")
        else:
            yield end


def retire(*ends: Any) -> None:
    """Retires every end that is given, and those in lists.

    Raises:
        InfoException: a channel was given.
    """
    for end in _each_end(ends, "retire"):
        end.retire()


def poison(*ends: Any) -> None:
    """Poisons every end that is given, and those in lists.

    Raises:
        InfoException: a channel was given.
    """
    for end in _each_end(ends, "poison"):
        end.poison()

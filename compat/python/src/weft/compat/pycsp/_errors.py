"""The exceptions of pycsp 0.9.2.

Poison and retirement are Weft's own exceptions under pycsp's names, so that the exceptions of a
channel need no translation.
"""

from __future__ import annotations

from typing import Any

from weft.errors import Deadlock, Poisoned, Retired

__all__ = [
    "ChannelBindException",
    "ChannelConnectException",
    "ChannelLostException",
    "ChannelPoisonException",
    "ChannelRetireException",
    "ChannelSocketException",
    "Deadlock",
    "FatalException",
    "InfoException",
]

ChannelPoisonException = Poisoned
ChannelRetireException = Retired


class ChannelSocketException(Exception):
    """The base of errors between address spaces.

    Attributes:
        addr: the address.
        msg: what went wrong.
    """

    def __init__(self, addr: Any, msg: str) -> None:
        super().__init__(f"{msg} {addr}")
        self.addr = addr
        self.msg = msg

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.addr, self.msg)


class ChannelConnectException(ChannelSocketException):
    """No channel of that name is at the address given as `connect`."""


class ChannelBindException(ChannelSocketException):
    """The port at which a program, or a MultiProcess, should serve its channels is in use."""


class ChannelLostException(ChannelSocketException):
    """The program that is the home of the channel has ended."""


class FatalException(Exception):
    """Never raised: the state that it reported cannot occur.

    Attributes:
        msg: the message.
    """

    def __init__(self, msg: str) -> None:
        super().__init__(msg)
        self.msg = msg


class InfoException(Exception):
    """A mistake in the use of pycsp's names; the message gives the remedy.

    Attributes:
        msg: the message.
    """

    def __init__(self, msg: str) -> None:
        super().__init__(msg)
        self.msg = msg

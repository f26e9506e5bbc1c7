"""What a host is asked of its memory."""

from __future__ import annotations

import ctypes

from weft.processes import process


class Info(ctypes.Structure):
    """What mallinfo2() of the C library gives."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            [
                "arena",
                "ordblks",
                "smblks",
                "hblks",
                "hblkhd",
                "usmblks",
                "fsmblks",
                "uordblks",
                "fordblks",
                "keepcost",
            ]
        )
    ]


@process
def nothing() -> None:
    """A call."""


@process
def in_use() -> int:
    """The bytes that malloc has given out; -1: this C library does not say it."""
    try:
        ask = ctypes.CDLL(None).mallinfo2
    except AttributeError:
        return -1
    ask.restype = Info
    return int(ask().uordblks)

"""Processes by which a test asks a host how much memory it uses."""

from __future__ import annotations

import ctypes

from weft.processes import process


class Info(ctypes.Structure):
    """The result of mallinfo2() of the C library."""

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
    """Does nothing; a test measures the cost of the call itself."""


@process
def in_use() -> int:
    """Returns the bytes that malloc has allocated; -1 if this C library does not report them."""
    try:
        ask = ctypes.CDLL(None).mallinfo2
    except AttributeError:
        return -1
    ask.restype = Info
    return int(ask().uordblks)

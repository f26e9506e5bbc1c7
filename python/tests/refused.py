"""Runs a command for which some system calls fail, as they do on an old system or under a
container's profile (seccomp). Linux only.

    python refused.py EPERM futex_waitv,memfd_create -- python program.py
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys

# Names of system calls, with their numbers on x86-64 and on 64-bit ARM.
CALLS = {
    "close_range": (436, 436),
    "eventfd2": (290, 19),
    "fallocate": (285, 47),
    "futex_waitv": (449, 449),
    "membarrier": (324, 283),
    "memfd_create": (319, 279),
    "pidfd_open": (434, 434),
    "prctl": (157, 167),
    "sched_getaffinity": (204, 123),
    "sched_getattr": (315, 275),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    "set_robust_list": (273, 99),
}
_MACHINES = {"x86_64": 0, "aarch64": 1}
# the instructions of a filter: load a word, compare, return
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_REFUSE, _ALLOW = 0x0005_0000, 0x7FFF_0000
_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER = 38, 22, 2


def refuse(error: int, calls: list[str]) -> None:
    """Makes these calls fail with this error, in this OS process and in all OS processes that it
    starts."""
    at = _MACHINES[platform.machine()]
    lines = [(_LOAD, 0, 0, 0)]
    for call in calls:
        lines.append((_EQUAL, 0, 1, CALLS[call][at]))
        lines.append((_RETURN, 0, 0, _REFUSE | error))
    lines.append((_RETURN, 0, 0, _ALLOW))
    code = b"".join(struct.pack("HBBI", *line) for line in lines)
    kept = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxP", len(lines), ctypes.addressof(kept))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    if prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0 or prctl(_SECCOMP, _FILTER, program, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no filter can be set")


if __name__ == "__main__":
    refuse(getattr(errno, sys.argv[1]), sys.argv[2].split(","))
    os.execvp(sys.argv[4], sys.argv[4:])

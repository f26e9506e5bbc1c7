"""The child of a fork that code in an OS process has made: rule 11.4, where no process of the
runtime applies it.
"""

from __future__ import annotations

import os

from weft._extension import native as _native

__all__ = ["end_if_forked"]


def end_if_forked(before: int, error: BaseException | None) -> None:
    """To be called when code of the program has ended. In the child of a fork that the code made,
    this program ends: what its caller does next is the parent's work.

    Args:
        before: os.getpid() before that code ran.
        error: the exception with which the code ended; None: it returned.
    """
    if os.getpid() != before:
        _native._end_program(error)

"""Ends the child of a fork that user code in an OS process has made (rule 11.4), where the ordinary
end of a process would not end it.
"""

from __future__ import annotations

import os

from weft._extension import native as _native

__all__ = ["end_if_forked"]


def end_if_forked(before: int, error: BaseException | None) -> None:
    """Ends this program if it is the child of a fork that code of the program made. Call it when
    that code has ended: what the caller does next is the parent's work.

    Args:
        before: os.getpid() before that code ran.
        error: the exception with which the code ended; None: it returned.
    """
    if os.getpid() != before:
        _native._end_program(error)

"""Safe access to exceptions of the user: their text, cause and traceback, whatever their methods
do.

Invariant: nothing here raises. A `__str__` may raise anything (SystemExit and KeyboardInterrupt
too), the class may define a property in place of `__cause__` or `__traceback__`, and there may be
no file descriptor left with which to read a source.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from typing import Any

if sys.version_info < (3, 11):
    from exceptiongroup import BaseExceptionGroup

__all__ = [
    "args_of",
    "cause_set",
    "is_ctrl_c",
    "kind_of",
    "message_of",
    "name_of",
    "report",
    "text_of",
    "traceback_of",
]

# the largest number of exceptions of a chain that are written; the rest is left out
_MAX_CHAINED = 1000

# The attributes of an exception that Python's traceback module reads. A class can override them.
_READ = (
    "__cause__",
    "__class__",
    "__context__",
    "__getattribute__",
    "__notes__",
    "__suppress_context__",
    "__traceback__",
    "exceptions",
)


def _own(error: BaseException, name: str) -> Any:
    """Returns the attribute that BaseException defines, whatever the class defines in its place."""
    return vars(BaseException)[name].__get__(error)


def args_of(error: BaseException) -> Any:
    """Returns the `args` of the exception."""
    return _own(error, "args")


def kind_of(value: Any) -> str:
    """Returns the name of the value's class."""
    return str.__str__(type.__dict__["__name__"].__get__(type(value)))


def name_of(function: Any) -> str:
    """Returns the name of a function, for use in a message."""
    try:
        name = getattr(function, "__qualname__", None)
        return name if type(name) is str else str.__str__(str(function))
    except BaseException:
        return kind_of(function)


def message_of(error: BaseException) -> str:
    """Returns the message of the exception, such as `no such line`."""
    try:
        return str.__str__(str(error))
    except BaseException as wrong:
        return f"no text: its __str__ raises {kind_of(wrong)}"


def text_of(error: BaseException) -> str:
    """Returns class and message, such as `ValueError: no such line`; without a message the class
    alone.
    """
    message = message_of(error)
    return f"{kind_of(error)}: {message}" if message else kind_of(error)


def traceback_of(error: BaseException) -> str:
    """Returns the traceback as Python prints it; if that fails, at least the text of the
    exception.
    """
    with contextlib.suppress(BaseException):
        import traceback

        where = _own(error, "__traceback__")
        if _is_ordinary(error):
            with contextlib.suppress(BaseException):
                return "".join(traceback.format_exception(type(error), error, where)).rstrip()
        frames = "".join(traceback.format_tb(where))
        return f"Traceback (most recent call last):\n{frames}{text_of(error)}"
    return text_of(error)


def cause_set(error: BaseException, cause: BaseException) -> None:
    """Sets the cause as `raise error from cause` does, whatever the class defines in place of
    `__cause__`.
    """
    vars(BaseException)["__cause__"].__set__(error, cause)


def is_ctrl_c(error: BaseException) -> bool:
    """Returns whether the exception is a Ctrl-C that was pressed while the user's code was running.
    On a thread other than the main one, and in a host, a KeyboardInterrupt was raised by that code
    itself.
    """
    return (
        issubclass(type(error), KeyboardInterrupt)
        and threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
    )


def report(error: BaseException) -> None:
    """Prints the exception in the way in which Python prints an exception that ends a thread."""
    with contextlib.suppress(BaseException):
        where = _own(error, "__traceback__")
        args = (type(error), error, where, threading.current_thread())
        threading.excepthook(threading.ExceptHookArgs(args))


def _is_ordinary(error: BaseException) -> bool:
    """Returns whether Python's traceback module can print the exception. That module follows the
    chain of exceptions: it would never end if an exception made a new one each time it was asked
    for the next.
    """
    ahead: list[Any] = [error]
    seen: set[int] = set()
    while ahead:
        one = ahead.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        if len(seen) > _MAX_CHAINED or any(
            name in vars(c)
            for c in type(one).__mro__
            if c.__module__ != "builtins"
            for name in _READ
        ):
            return False
        ahead.append(_own(one, "__cause__"))
        ahead.append(_own(one, "__context__"))
        if issubclass(type(one), BaseExceptionGroup):
            ahead.extend(vars(BaseExceptionGroup)["exceptions"].__get__(one))
    return True

"""Describes the outcome of a run in a few words, for reports: errors and values, and whether two of
them are alike.
"""

from __future__ import annotations

import os
import re
import traceback


def innermost(
    error: BaseException | None, kinds: tuple[type[BaseException], ...]
) -> BaseException | None:
    """Returns the first exception of these kinds: the error itself, one in the group if the error
    is a group, or its cause; None if there is none.
    """
    if error is None or isinstance(error, kinds):
        return error
    for inner in getattr(error, "exceptions", ()):
        found = innermost(inner, kinds)
        if found is not None:
            return found
    return innermost(error.__cause__, kinds) if error.__cause__ is not None else None


def one_line(error: BaseException) -> str:
    text = str(error).strip().split("\n", 1)[0]
    if isinstance(error, SystemExit):
        return f"the program calls sys.exit({error.code!r})"
    kind = type(error).__name__
    inner = getattr(error, "exceptions", ())
    if inner:
        text = "; ".join(one_line(one) for one in inner)
    return f"{kind}: {text}"[:160] if text else kind


def alike(what: str, other: str) -> bool:
    """Returns whether both texts describe the same failure. Numbers in the texts are ignored."""
    return _without_numbers(what) == _without_numbers(other)


def _without_numbers(what: str) -> str:
    return re.split("[:,]", what, maxsplit=1)[0].lstrip("0123456789 ")


def traceback_of(error: BaseException) -> str:
    """Returns the traceback without Weft's own frames."""
    lines = traceback.format_exception(type(error), error, error.__traceback__)
    kept = [part for part in lines if f"{os.sep}weft{os.sep}_" not in part]
    return "".join(kept).rstrip()


def short(value: object) -> str:
    try:
        text = repr(value)
    except Exception as error:
        text = f"<{type(value).__name__}, whose repr fails: {type(error).__name__}>"
    return text if len(text) <= 60 else f"{text[:59]}…"


def equal(a: object, b: object) -> bool:
    """Returns whether two results are equal; if they cannot be compared, returns whether their
    reprs are alike.
    """
    try:
        same = a == b
        if isinstance(same, bool) and same:
            return True
    except Exception:
        return repr(a) == repr(b)
    return bool(repr(a) == repr(b)) if type(a) is type(b) else False

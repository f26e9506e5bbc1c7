"""Advice about a value that cannot be sent to another OS process, by the kind of value. The module
is imported only when an error is about to be raised.
"""

from __future__ import annotations

import re

__all__ = ["remedy"]

# Finds the kind of the value, or of an object within it, in the text of pickle's error.
_NAMED = re.compile(r"(?:[Cc]annot|[Cc]an't) pickle '?(?P<kind>[\w.]+)'?")

_CONNECTION = (
    "connect in the other OS process: send what it needs for that, as an address or a path"
)
_LOCK = (
    "it would guard nothing there: give what it guards to one process, which the others ask by "
    "channels; to meet, use a Barrier"
)
_FILE = "send its name, and open it there"

# Pairs: a pattern for the name of the kind, and the advice. The first pattern that matches is used.
_REMEDIES = (
    (r"\bgenerator|async_generator|coroutine", "write its values to a channel one by one, or send a list of them"),
    (r"(?i)sock|connection|cursor|session|channel_credentials", _CONNECTION),
    (r"(?i)lock|semaphore|condition|event\b", _LOCK),
    (r"(?i)\b_?io\.|TextIOWrapper|Buffered(?:Reader|Writer|Random)|FileIO", _FILE),
    (r"\bmodule\b", "import it there"),
)  # fmt: skip
_BY_VALUE = (
    "define it at the top level of a module, or install cloudpickle, which sends it by value "
    "(pip install 'weft-csp[processes]')"
)


def remedy(why: str, kind: str) -> str:
    """Returns what to do instead, or "" if there is no advice.

    Args:
        why: the text of pickle's error.
        kind: the class of the value.
    """
    found = _NAMED.search(why)
    for name in (found["kind"] if found else "", kind):
        for words, what in _REMEDIES:
            if re.search(words, name):
                return what
    if re.search(r"<lambda>|<locals>|local (?:object|function)", why):
        return _BY_VALUE
    if re.match(r"\w*(?:Lock|Semaphore|Condition|Event) objects should only be shared", why):
        return _LOCK
    if re.match(r"\w*Queue objects should only be shared", why):
        return "give the process an end of a channel in its place"
    return ""

"""Texts for messages about a value whose class is derived from a type that can be sent. The reader
would make a value of the base type, which is another value, so the write refuses such a value.
"""

from __future__ import annotations

from collections.abc import Container

__all__ = ["called", "instead"]

# The types that make a value from one of a class that is derived from them.
_MAKES = (int, float, str, bytes, bytearray, list, tuple, dict, set, frozenset)


def _base(kind: type, sent: Container[type]) -> type | None:
    return next((base for base in kind.__mro__[1:] if base in sent), None)


def called(kind: type, sent: Container[type]) -> str:
    """Returns the name of a class with its article, and with the first type of `sent` from which
    it is derived.
    """
    base = _base(kind, sent)
    article = "an" if kind.__name__[:1] in "AEIOUaeiou" else "a"
    of = f", which is derived from {base.__name__}," if base else ""
    return f"{article} {kind.__name__}{of}"


def instead(kind: type, sent: Container[type]) -> str:
    """Returns advice for a message, for example "write int(value)"; an empty text if the base
    type cannot be made from the value.
    """
    base = _base(kind, sent)
    return f"write {base.__name__}(value)" if base in _MAKES else ""

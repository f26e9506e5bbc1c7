"""CBOR for the values that go to a board (WIRE.md 12.8). Modules that make links to boards import
this module.
"""

from __future__ import annotations

from typing import Any

import cbor2

from weft._extension import native as _native
from weft.errors import BadUse

__all__: list[str] = []

_PLAIN = (type(None), bool, int, float, str, bytes, bytearray)
_VALUES = "its values are None, bool, int, float, str, bytes, and lists, tuples and dicts of those, at most 16 deep"


def _culprit(value: Any, depth: int = 0) -> str | None:
    """Returns the name of a type in the value that cannot be packed, or None if every type can be
    packed.
    """
    if isinstance(value, (list, tuple, dict)) and depth < 20:
        for part in (*value, *value.values()) if isinstance(value, dict) else value:
            if found := _culprit(part, depth + 1):
                return found
        return None
    return None if isinstance(value, (*_PLAIN, list, tuple, dict)) else type(value).__name__


def _dumps(value: Any, channel: Any) -> bytes:
    fault: str | None
    try:
        packed = bytes(cbor2.dumps(value))
        fault = _native._cbor_fault(packed)
        if fault is None:
            return packed
    except Exception as error:
        # cbor2 can raise any exception for a value of a type that it does not know
        fault = str(error)
    found = _culprit(value)
    what = f"a {found}" if found else f"this value ({fault})"
    raise BadUse(f"write on channel {channel.name!r}: {what} cannot go to a board: {_VALUES}")


def _loads(packed: bytes, _: Any) -> Any:
    return cbor2.loads(packed)


_native._set_cbor(_dumps, _loads)

"""CBOR for the values that go to a board (WIRE-LINKS.md 12.8). Modules that make links to boards
import this module.
"""

from __future__ import annotations

from typing import Any

import cbor2

from weft import _derived
from weft._extension import native as _native
from weft.errors import BadUse

__all__: list[str] = []

_SENT = frozenset((type(None), bool, int, float, str, bytes, bytearray, list, tuple, dict))
_VALUES = (
    "its values are None, bool, int, float, str, bytes, and lists, tuples (which arrive as lists) and dicts of "
    "those, at most 16 deep"
)


def _culprit(value: Any, depth: int = 0) -> type | None:
    """Returns the first type in the value that cannot be packed, or None if every type can be
    packed. A class that is derived from one of these types cannot: it would arrive as that type.
    """
    kind: type = type(value)
    if kind not in _SENT:
        return kind
    if kind in (list, tuple, dict) and depth < 20:
        for part in (*value, *value.values()) if kind is dict else value:
            if found := _culprit(part, depth + 1):
                return found
    return None


def _dumps(value: Any, channel: Any) -> bytes:
    fault: str | None
    found = _culprit(value)
    try:
        if found is None:
            packed = bytes(cbor2.dumps(value))
            fault = _native._cbor_fault(packed)
            if fault is None:
                return packed
            what, instead = f"this value ({fault})", ""
        else:
            what, instead = _derived.called(found, _SENT), _derived.instead(found, _SENT)
    except Exception as error:
        what, instead = f"this value ({error})", ""
    raise BadUse(
        f"write on channel {channel.name!r}: {what} cannot go to a board: {_VALUES}"
        f"{'. Instead, ' + instead if instead else ''}"
    )


def _loads(packed: bytes, _: Any) -> Any:
    return cbor2.loads(packed)


_native._set_cbor(_dumps, _loads)

"""JSON from other programs: first messages, entries, and requests by the relay (WIRE-NETWORKS.md
17.2, 17.3, 17.18).

    parsed(bytes) ──► plain values: each text is valid Unicode, and each number is finite
                  ──► ValueError for any other text, of which no part is kept

Invariant: the depth of a text is counted before the text is parsed, because a parser needs stack
for each level.
"""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["MAX_BYTES", "parsed", "shown"]

MAX_BYTES = 4096  # the largest number of bytes of a first message
DEEPEST = 16

_MARKS = re.compile(rb'\\.|["\[\]{}]', re.DOTALL)


def _depth(packed: bytes) -> int:
    """Returns how deeply lists and maps are nested, assuming that the bytes are JSON."""
    depth = deepest = 0
    within = False  # whether the current character is within a string
    for mark in _MARKS.findall(packed):
        if mark == b'"':
            within = not within
        elif not within and mark in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif not within and mark in b"]}":
            depth -= 1
    return deepest


def _none(constant: str) -> Any:
    raise ValueError(f"{constant} is not a number")


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) < 20 else float(digits)


def parsed(packed: bytes, most: int = MAX_BYTES) -> Any:
    """Returns the values of a JSON text.

    Raises:
        ValueError: `packed` is not JSON in UTF-8, is longer than `most` bytes or nests deeper than
            16; or a text in it contains half of a surrogate pair, or a number is too large for a
            float.
    """
    if len(packed) > most:
        raise ValueError(f"it has more than {most} bytes")
    if _depth(packed) > DEEPEST:
        raise ValueError(f"it nests deeper than {DEEPEST}")
    value = json.loads(packed.decode(), parse_constant=_none, parse_int=_integer)
    json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    return value


def shown(text: str, most: int) -> str:
    """Returns a text of another program in a form for messages: on one line, and without control
    characters.
    """
    return "".join(c if c.isprintable() else " " if c.isspace() else "?" for c in text[:most])

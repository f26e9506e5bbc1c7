"""The messages between a program and its visitor (rule 14.9): JSON, each message preceded by its
length.

    request   {"weft": 1, "ask": "who"} │ {"weft": 1, "ask": "look", "interval": 0.1, "most": 2000}
              │ {"weft": 1, "ask": "flight", "path": "/tmp/out.flight"}
              │ {"weft": 1, "ask": "stuck"}
    answer    {"weft": 1, …} │ {"weft": 1, "error": "a sentence"}

Invariants
- A message is at most `limit` bytes long. If its length is larger, no part of the message is kept.
- For any bytes, feed() returns dicts or raises BadMessage with a sentence.
"""

from __future__ import annotations

import json
import struct
from typing import Any

VERSION = 1
REQUEST = 4096  #: the largest number of bytes of a request
ANSWER = 1 << 28  #: the largest number of bytes of an answer
_LENGTH = struct.Struct("!I")


class BadMessage(ValueError):
    """The received bytes are not a message of this protocol. The text says why."""


def message(content: dict[str, Any]) -> bytes:
    data = json.dumps({"weft": VERSION, **content}, separators=(",", ":")).encode()
    return _LENGTH.pack(len(data)) + data


class Reader:
    """Makes messages from bytes that arrive in pieces of any size."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._data = bytearray()

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """Returns the messages that are whole now.

        Raises:
            BadMessage: the bytes are not a message of this version.
        """
        self._data += data
        found = []
        while len(self._data) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._data)
            if length > self._limit:
                raise BadMessage(f"a message of {length} bytes; at most {self._limit} are taken")
            if len(self._data) < _LENGTH.size + length:
                break
            found.append(_content(bytes(self._data[_LENGTH.size : _LENGTH.size + length])))
            del self._data[: _LENGTH.size + length]
        return found


def _content(data: bytes) -> dict[str, Any]:
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        raise BadMessage("a message that is not JSON") from None
    if not isinstance(content, dict) or "weft" not in content:
        raise BadMessage("a message that does not say which version of the protocol it is of")
    if content["weft"] != VERSION:
        raise BadMessage(
            f"a message of version {content['weft']!r} of the protocol; this one speaks version "
            f"{VERSION}: take the weft command of the program's own version"
        )
    return content

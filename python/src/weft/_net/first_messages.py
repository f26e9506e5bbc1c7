"""The messages before a session begins: their form, and how a connection is refused
(WIRE-NETWORKS.md 17.2).

Invariant: a peer's message is JSON of at most 4,096 bytes (_net/foreign_json.py); no part of it is
run.
"""

from __future__ import annotations

import asyncio
import json
import struct
from typing import Any

from weft._net import foreign_json as _foreign_json

__all__ = ["MAGIC", "TOLD", "Fields", "Refused", "packed", "read", "refusal"]

MAGIC = b"WEFTNET1"
TOLD = 2000  # the largest number of characters of a refusal

Fields = dict[str, Any]


class Refused(Exception):
    """The reason why a connection is refused, which is sent to the other side. `again` says that
    the other side can ask once more, with another ticket.
    """

    def __init__(self, why: str, again: bool = False) -> None:
        super().__init__(why)
        self.again = again


def packed(message: Fields) -> bytes:
    """Returns the bytes of a first message."""
    text = json.dumps(message).encode()
    return MAGIC + struct.pack("<I", len(text)) + text


def refusal(error: Refused) -> bytes:
    """Returns the bytes of the message that refuses a connection."""
    why = _foreign_json.shown(str(error), TOLD)
    while True:
        message = packed({"host": "", "refused": why, "again": error.again})
        if len(message) <= _foreign_json.MAX_BYTES:
            return message
        why = why[: len(why) // 2]


async def read(reader: asyncio.StreamReader) -> Fields:
    """Reads the peer's first message.

    Raises:
        Refused: the bytes are not a first message.
    """
    try:
        magic, size = struct.unpack("<8sI", await reader.readexactly(12))
        if magic != MAGIC or size > _foreign_json.MAX_BYTES:
            raise Refused("the peer is not a Weft program, or has another version of Weft")
        message = _foreign_json.parsed(await reader.readexactly(size))
    except ValueError as error:
        raise Refused(f"the first message is not the JSON that it should be: {error}") from None
    if not isinstance(message, dict) or not isinstance(message.get("host"), str):
        raise Refused("the first message does not say who sent it")
    return {**message, "host": _foreign_json.shown(message["host"], 60)}

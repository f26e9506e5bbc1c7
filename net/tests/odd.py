"""Messages that no program expects from a member (WIRE-NETWORKS.md 17.2, 17.3): JSON with odd
values in each field, and texts that are not JSON. Each run draws some of them at random, and prints
the seed.
"""

from __future__ import annotations

import json
import random
import socket
import ssl
import struct
from typing import Any

__all__ = ["TEXTS", "drawn", "packed", "says", "with_odd_fields"]

DEEP = b"[" * 2000 + b"]" * 2000

#: Values as JSON. The values after the first line are never accepted.
VALUES = [
    b"null", b"true", b"0", b"-1", b"1e308", b"1" * 30, b'""', b'"x"', b'"' + b"x" * 3000 + b'"', b"[]", b"{}",
    b'"\\u0000"', b'"a\\nb\\u001b[2J"', '"ä✓"'.encode(), b"[[[[[[1]]]]]]", b'{"a": {"b": [null]}}', b"[1, [2], {}]",
    b'"\\ud800"', DEEP, b"NaN", b"1e400", b"9" * 3500, b'"\xff"',
]  # fmt: skip

#: Whole texts that are not a message.
TEXTS = [b"", b"\0", b"null", b"[]", b"{}", b"{", b'"host"', DEEP, b'{"host": ' + DEEP + b"}", b"\xff\xfe{}",
         b'{"host": 7}', b'{"host": "\\ud800"}', b'{"host": NaN}', b'{"host"' * 400]  # fmt: skip


def drawn(number: int, all_: list[Any]) -> list[Any]:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}: {number} of {len(all_)}")
    return random.Random(seed).sample(all_, min(number, len(all_)))


def with_odd_fields(good: dict[str, Any], *but: str) -> list[bytes]:
    """Returns the message with each odd value in each field, and without each field."""
    made = []
    for field in good:
        if field in but:
            continue
        rest = {k: json.dumps(v).encode() for k, v in good.items() if k != field}
        for value in VALUES:
            all_ = {**rest, field: value}
            made.append(
                b"{%s}" % b", ".join(b'"%s": %s' % (k.encode(), v) for k, v in all_.items())
            )
        made.append(b"{%s}" % b", ".join(b'"%s": %s' % (k.encode(), v) for k, v in rest.items()))
    return made


def packed(text: bytes) -> bytes:
    """Returns the text packed as a first message."""
    return b"WEFTNET1" + struct.pack("<I", len(text)) + text


def says(tls: ssl.SSLContext, address: str, first: bytes) -> dict[str, Any] | None:
    """Sends a first message to the program at the address. Returns the answer of that program, or
    None if the program has closed the connection.
    """
    host, port = address.rsplit(":", 1)
    with (
        socket.create_connection((host, int(port))) as raw,
        tls.wrap_socket(raw) as way,
    ):
        try:
            way.sendall(first)
            way.settimeout(250)  # in seconds: as long as a test may be silent
            answer = b""
            while len(answer) < 12 or len(answer) < 12 + struct.unpack_from("<I", answer, 8)[0]:
                more = way.recv(1 << 16)
                if not more:
                    return None
                answer += more
        except (ConnectionError, ssl.SSLError):
            return None
    assert answer[:8] == b"WEFTNET1" and len(answer) <= 12 + 4096
    answer_fields: dict[str, Any] = json.loads(answer[12:])
    return answer_fields

"""Functions that the tests of the flight recorder share: they make a file by hand, byte by byte."""

from __future__ import annotations

MAGIC = bytes([0x89]) + b"WEFT\n\x1a\x01"


def varint(n: int) -> bytes:
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes([*out, n])


def text(s: str) -> bytes:
    return varint(len(s.encode())) + s.encode()


def piece(letter: str, content: bytes = b"") -> bytes:
    return letter.encode() + len(content).to_bytes(4, "little") + content


def head(pid: int = 1, host: str = "here", ns: int = 1000, system: int = 0) -> bytes:
    """Makes the head of a file. A unit is a nanosecond, and unit 0 is at `ns`."""
    numbers = (0, ns, 1_000_000, ns + 1_000_000, system, pid, 0)
    return piece("H", b"".join(map(varint, numbers)) + text(host) + text("prog") + text("0"))


def process(number: int, path: str) -> bytes:
    return b"\x80" + varint(2 * number) + text(path)


def place(number: int, name: str, flags: int = 0) -> bytes:
    return b"\x81" + b"".join(map(varint, (number, flags, 0, 0))) + text(name)


def block(*records: bytes, lane: int = 0, start: int = 0) -> bytes:
    return piece("B", varint(lane) + varint(start) + b"".join(records))


def read(dt: int, who: int, where: int, waited: int | None = None) -> bytes:
    return over(0, dt, who, where, waited)


def write(dt: int, who: int, where: int, waited: int | None = None) -> bytes:
    return over(1, dt, who, where, waited)


def over(op: int, dt: int, who: int, where: int, waited: int | None) -> bytes:
    tag = bytes([op | (0 if waited is None else 0x40)])
    return (
        tag
        + varint(dt)
        + varint(who)
        + varint(where + 1)
        + (b"" if waited is None else varint(waited))
    )


def start(dt: int, who: int) -> bytes:
    return b"\x82" + varint(dt) + varint(who)


def end(dt: int, who: int) -> bytes:
    return b"\x83" + varint(dt) + varint(who) + b"\0\0"


def pair(rounds: int) -> bytes:
    """Process `a` computes for 90 units and `b` for 10, alternately. While one computes, the other
    waits.
    """
    records = [process(1, "main/a"), process(2, "main/b"), place(1, "c"), place(2, "d")]
    records += [start(0, 0), start(0, 1)]
    for _ in range(rounds):
        records += [write(90, 0, 0), read(0, 1, 0, 90), write(10, 1, 1), read(0, 0, 1, 10)]
    records += [end(0, 0), end(0, 1)]
    return b"".join(records)


def whole() -> bytes:
    return MAGIC + head() + block(pair(5)) + piece("Z")

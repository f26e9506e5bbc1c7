"""Compares the bytes that a board sends over a link with conformance/wire/serial.txt, with which
C++ and C11 are tested too (WIRE-LINKS.md 12.6 to 12.8)."""

from __future__ import annotations

import pytest

from . import tiers

VECTORS = tiers.ROOT / "conformance" / "wire" / "serial.txt"
PROGRAM = """\
from binascii import unhexlify
from weft import _cbor, _line
from weft import _frames as f
from weft import link as L
from weft.errors import BadUse

v = {}
for row in open(%r):
    if row[0] != "#":
        name, bytes_ = row.split()
        v[name] = unhexlify(bytes_)


def is_(name, b):
    print(name, bytes(b) == v[name])


mine, theirs = _line.Line(0x01020304), _line.Line(0x0A0B0C0D)
out = bytearray()
mine.output(0, out)
is_("start", out)
theirs.input(out, 0)
out = bytearray()
theirs.output(0, out)
is_("heard", out)
mine.input(out, 0)
mine.give(v["hello"])
out = bytearray()
mine.output(0, out)
is_("start_linked", out[: len(v["start_linked"])])
is_("packet", out[len(v["start_linked"]) :])
got = theirs.input(out, 0)
is_("hello", got)
frame, n = f.take(got)
print("taken", n == len(got) and frame[:3] == (f.HELLO, 0, 0x54464557) and frame[6][8:13] == b"board")


class Name:  # of an end
    def __init__(self, number, writes):
        self.number, self.writes = number, writes


link = L.Link(None)
a, b, c = Name(5, False), Name(300, True), Name(7, False)
packed = _cbor.dumps([-7, "volts"])
for name, at, values in (
    ("offer_read", ((a, False),), (None,)),
    ("offer_write", ((b, True),), (packed,)),
    ("offer_choice", ((a, False), (b, True), (c, False)), (None, packed, None)),
):
    link._out = bytearray()
    link._offer(L._Op(link, None, at, values, False))
    is_(name, link._out)
for name, frame in (
    ("withdraw", dict(kind=f.WITHDRAW, op=3)),
    ("retire", dict(kind=f.RETIRE, where=300)),
    ("poison", dict(kind=f.POISON, where=5, val=9)),
):
    link._out = bytearray()
    link._send(**frame)
    is_(name, link._out)
for name, value in (
    ("zero", 0), ("minus_one", -1), ("thousand", 1000), ("minus_70000", -70000), ("two_to_40", 1 << 40), ("true", True), ("null", None),
    ("text", "volts"), ("bytes", b"\\0\\xff"), ("array", [-7, "volts"]), ("map", {"a": 1, 2: []}),
):
    packed = _cbor.dumps(value)
    print("cbor_" + name, (packed == v["cbor_" + name] or name == "map") and _cbor.loads(v["cbor_" + name]) == value)
"""


@pytest.mark.parametrize("tier", ["pure", "cpython"])
def test_a_board_says_what_the_other_clients_say(tier: str) -> None:
    lines = tiers.snippet(tier, PROGRAM % str(VECTORS)).splitlines()
    assert [line for line in lines if not line.endswith(" True")] == []
    names = {row.split()[0] for row in VECTORS.read_text().splitlines() if row[0] != "#"}
    assert {line.split()[0] for line in lines} == names | {"taken"}

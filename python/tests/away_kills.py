"""Processes of the operating system that test_processes_kills.py starts and kills; see away.py."""

from __future__ import annotations

from typing import Any

from weft.processes import process, select


@process
def merge(a: Any, b: Any, out: Any) -> None:
    """What comes on either, by choice."""
    while True:
        _, value = select(a, b)
        out.write(value)


@process
def offer(inp: Any, a: Any, b: Any) -> None:
    """Gives to whoever takes first, by choice."""
    from weft.processes import Output

    for value in inp:
        select(Output(a, value), Output(b, value))


@process
def spoil(inp: Any, out: Any) -> None:
    """Changes what it got where it is, and sends that on."""
    for value in inp:
        value[0] ^= 0xFF
        out.write(value)

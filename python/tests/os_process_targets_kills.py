"""Processes of the operating system that test_processes_kills.py starts and kills; see
os_process_targets.py.
"""

from __future__ import annotations

from typing import Any

from weft.processes import Channel, Output, Retired, process, select


@process
def merge(a: Any, b: Any, out: Any) -> None:
    """Passes on the values of both channels, by choice."""
    while True:
        _, value = select(a, b)
        out.write(value)


@process
def offer(inp: Any, a: Any, b: Any) -> None:
    """Gives each value to the reader that takes it first, by choice."""
    for value in inp:
        select(Output(a, value), Output(b, value))


@process
def spoil(inp: Any, out: Any) -> None:
    """Changes each value in place, and passes it on."""
    for value in inp:
        value[0] ^= 0xFF
        out.write(value)


@process
def hold(inp: Any, out: Any) -> None:
    """Doubles values in the block of an extended read."""
    while True:
        try:
            with inp.extended() as value:
                out.write(2 * value)
        except Retired:
            return


@process
def make(inp: Any, a: Any, b: Any) -> None:
    """Gives a value to the reader that takes it first, and makes the value only then."""
    for value in inp:
        select(Output(a, make=lambda v=value: v), Output(b, make=lambda v=value: v))


@process
def answer(inp: Any) -> None:
    """Squares numbers. Each number arrives together with the end for its answer."""
    for value, to in inp:
        to.write(value**2)


@process
def hand_on(inp: Any, out: Any) -> None:
    """Passes on values that contain ends."""
    for value in inp:
        out.write(value)


@process
def open_lines(requests: Any, out: Any) -> None:
    """Makes a channel for each request, writes the reader of that channel to `out`, and then writes
    a value to that channel.
    """
    for value in requests:
        line = Channel("line")
        writer = line.writer()
        out.write(line.reader())
        writer.write(value)


def square(n: int) -> int:
    return n * n

"""Programs and processes that test_remote.py starts. The tests find their channels by address."""

from __future__ import annotations

import sys
from typing import Any

from weft.compat.pycsp.parallel import (
    Channel,
    ChannelPoisonException,
    ChannelRetireException,
    Parallel,
    multiprocess,
    poison,
    process,
    retire,
    shutdown,
)


@multiprocess
def writes(name: str, n: int) -> None:
    out = Channel(name).writer()
    for i in range(n):
        out(i)


@multiprocess
def takes(end: Any) -> None:
    end()


@process
def doubles(inp: Any, out: Any) -> None:
    while True:
        out(2 * inp())


def main() -> None:
    """Doubles the values of the channel "in". No process writes to the channel "stays". Prints the
    port of the program."""
    inp, out = Channel("in"), Channel("out", buffer=int(sys.argv[1]))
    stays = Channel("stays")
    print(inp.address[1], flush=True)
    reader, writer = inp.reader(), out.writer()
    how = "nothing"
    try:
        while True:
            writer(2 * reader())
    except ChannelRetireException:
        how = "retired"
        retire(writer)
    except ChannelPoisonException:
        how = "poisoned"
        poison(writer)
    assert stays.address == inp.address
    print(how, flush=True)
    sys.stdin.read()
    shutdown()


def nested() -> None:
    """Runs a network that uses a channel of another program, whose address is an argument; no other
    network runs in this program.
    """
    address = ("localhost", int(sys.argv[1]))
    last = Channel("last")
    got: list[int] = []

    @process
    def sink(inp: Any) -> None:
        got.extend(inp() for _ in range(3))

    a = Channel("A", connect=address)
    Parallel(doubles_three(a.reader(), last.writer()), sink(last.reader()))
    print(got)


@process
def doubles_three(inp: Any, out: Any) -> None:
    for _ in range(3):
        out(2 * inp())


if __name__ == "__main__":
    globals()[sys.argv.pop(1)]()

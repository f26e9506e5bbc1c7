"""Waiting operations of every kind, each of which the test can release. Tests use them to find out
which code may step such an operation, and which may leave it.
"""

from __future__ import annotations

import functools

from weft.coroutines import (
    Alternative,
    Barrier,
    Channel,
    Output,
    Parallel,
    Sequence,
    Timer,
    process,
    select,
    sleep,
    yield_,
)


class Place:
    """A waiting operation, and the means to let it finish: `make()` makes the operation,
    `release()` lets it finish, and `gives` is its outcome.
    """

    def __init__(self) -> None:
        self.c: Channel = Channel("c")
        self.other: Channel = Channel("other")
        self.r, self.w = self.c.reader(), self.c.writer()
        self.barrier = Barrier(2)
        self.held = [self.other.reader(), self.other.writer()]

    @functools.cached_property
    def block(self):
        return self.r.extended()

    async def outcome(self, op):
        """Returns the outcome of an operation; if it is an extended read, leaves the block
        immediately."""
        result = await op
        if "block" in vars(self):
            await self.block.__aexit__(None, None, None)
        return result


@process
async def gives(p, result):
    await p.r.read()
    return result


KINDS = {
    "read": (lambda p: p.r.read(), "write", 5),
    "call": (lambda p: p.r(), "write", 5),
    "anext": (lambda p: p.r.__anext__(), "write", 5),
    "write": (lambda p: p.w.write(5), "read", None),
    "select in": (lambda p: select(p.r, p.held[0]), "write", (0, 5)),
    "select out": (lambda p: select(Output(p.w, 5), p.held[0]), "read", (0, None)),
    "select made": (lambda p: select(Output(p.w, make=lambda: 5)), "read", (0, None)),
    "alternative": (lambda p: Alternative(p.r, p.held[0]).select(), "write", (0, 5)),
    "sync": (lambda p: p.barrier.sync(), "sync", None),
    "barrier": (lambda p: select(p.barrier, p.held[0]), "sync", (0, None)),
    "extended": (lambda p: p.block.__aenter__(), "write", 5),
    "parallel": (lambda p: Parallel(gives(p, 3)), "write", [3]),
    "sequence": (lambda p: Sequence(gives(p, 3)), "write", [3]),
    "sleep": (lambda p: sleep(0.001), "time", None),
    "tick": (lambda p: Timer(0.001).tick(), "time", 1),
}


async def settled() -> None:
    for _ in range(5):
        await yield_()


async def awaits(op):
    return await op


async def sends(op):
    return op.send(None)


async def throws(op):
    return op.throw(ValueError("mine"))


async def closes(op):
    return op.close()


ATTACKS = {"await": awaits, "send": sends, "throw": throws, "close": closes}


EVERY = [(k, a) for k in KINDS for a in ATTACKS]

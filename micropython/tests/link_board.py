"""The program of the board in test_link.py: `link_board.py DESCRIPTOR SCENARIO [lease=MS]
[largest=N]` plays a scenario over a link and prints its observations."""

import sys

from weft.coroutines import (
    BadUse,
    Cancelled,
    Input,
    Output,
    Parallel,
    PeerDied,
    Poisoned,
    Retired,
    after,
    move_on_after,
    process,
    run,
)
from weft.link import Link


def say(*words):
    print(*words)


async def echo(pc):
    there, back = await pc.reader("there"), await pc.writer("back")
    async for v in there:
        await back.write(v)
    say("over")


@process
async def pump(source, to):
    async for v in source:
        await to.write(v)


async def two_pumps(pc):
    """Runs two processes on the board; each releases its own ends when it ends."""
    a, b = await pc.reader("a"), await pc.reader("b")
    x, y = await pc.writer("x"), await pc.writer("y")
    await Parallel(pump(a, x), pump(b, y))


async def chooses(pc):
    a, b, idle = await pc.reader("a"), await pc.reader("b"), await pc.reader("idle")
    out = await pc.writer("out")
    for _ in range(6):
        which, v = await pc.select(a, b, idle)
        say("chose", which, v)
    which, v = await pc.select(idle, Output(out, 7))
    say("chose", which, v)
    which, v = await pc.select(idle, after(0.01), Output(out, 8).when(False))
    say("chose", which, v)
    # `a` has retired, or is about to, so the guard of `a` is silent.
    which, v = await pc.select(a, after(0.01), idle)
    say("chose", which, v)
    which, v = await pc.select(
        a, after(0.01), Input(idle).when(False)
    )  # the guard that is off holds the select open
    say("chose", which, v)
    try:
        await pc.select(a, after(10), b)
    except Retired as e:
        say("retired", e.guard in (0, 2))
    await out.write("done")
    try:
        await pc.select(b, idle)
    except Poisoned as e:
        say("poisoned", e.strength, e.guard)


async def retires(pc):
    first, second = await pc.writer("first"), await pc.reader("second")
    await first.write(1)
    first.retire()
    say(await second.read())
    try:
        await second.read()
    except Retired:
        say("retired")
    try:
        await first.write(2)
    except BadUse as e:
        say("closed" if "retired" in str(e) else e)


async def poisons(pc):
    a, b = await pc.reader("a"), await pc.writer("b")
    say(await a.read())
    a.poison(3)
    try:
        await a.read()
    except Poisoned as e:
        say("own", e.strength)
    try:
        while True:
            await b.write(1)
    except Poisoned as e:
        say("theirs", e.strength, e.value)


async def slow(pc):
    """Reads one value for each word that the PC sends."""
    go, numbers, signal = await pc.reader("go"), await pc.reader("numbers"), await pc.writer("told")
    async for _ in go:
        await signal.write(await numbers.read())


async def bad_values(pc):
    out = await pc.writer("out")
    deep = []
    for _ in range(20):
        deep = [deep]
    for v in (object(), {1, 2}, deep, [1, lambda: 1], {(1, 2): 3}, "x" * 5000, out):
        try:
            await out.write(v)
            say("written", v)
        except BadUse as e:
            say("bad", str(e)[:70])
    await out.write("still here")


async def gives_up(pc):
    numbers, signal = await pc.reader("numbers"), await pc.writer("told")
    for _ in range(3):
        async with move_on_after(0.02):
            say("came", await numbers.read())
    await signal.write("gave up")
    say("read", await numbers.read())
    async with move_on_after(0.02):
        try:
            await signal.write("nobody reads this")
        except Cancelled as e:
            say("back", e.value)
            raise
    await (await pc.writer("more")).write("after it")


async def waits(pc):
    """Reads a value that never comes, and prints how the read ended."""
    numbers, out = await pc.reader("numbers"), await pc.writer("out")
    await out.write("ready")
    try:
        await numbers.read()
    except PeerDied as e:
        say("read", e.in_doubt)
    try:
        await out.write(1)
    except PeerDied as e:
        say("write", e.in_doubt)
    try:
        await pc.reader("never")
    except PeerDied as e:
        say("never", e.in_doubt)
    say("why:", await pc.wait())


async def writes(pc):
    out = await pc.writer("out")
    n = 0
    try:
        while True:
            await out.write(n)
            n += 1
    except PeerDied as e:
        say("in doubt" if e.in_doubt else "not in doubt", e.value == n)


async def names(pc):
    for name, writes in (("a", True), ("a", False), ("a", False)):
        try:
            await (pc.writer(name) if writes else pc.reader(name))
            say("got", name)
        except BadUse as e:
            say("bad", e)
    try:
        Link(None, largest=100)
    except BadUse as e:
        say("bad", e)


async def fails(pc):
    out = await pc.writer("out")
    await out.write(1)
    raise ValueError("the board's own")


@process
async def main():
    options = {}
    for word in sys.argv[3:]:
        name, value = word.split("=")
        options[name] = int(value)
    again = options.pop("again_link", 1)
    for _ in range(again):
        async with Link(open(int(sys.argv[1]), "r+b"), **options) as pc:
            await globals()[sys.argv[2]](pc)
    say("left")


if __name__ == "__main__":
    run(main())

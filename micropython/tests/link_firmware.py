"""The program of the boards in test_link_boards.py. It serves one session after another, and in
each performs the task that it reads from the channel `do`.

It prints nothing, and keeps its messages; the next session can fetch them with `report`.
"""

import sys

import link_board

from weft.coroutines import PeerDied, process, run
from weft.link import Link

lines = []
link_board.say = lambda *words: lines.append(" ".join([str(w) for w in words]))


async def report(pc):
    await (await pc.writer("lines")).write(lines)


async def chatters(pc):
    """Prints text all the time. Where the link shares the prompt's serial line, the link must
    tolerate this text."""
    there, back = await pc.reader("there"), await pc.writer("back")
    async for v in there:
        print("chatter", v, "\0 \1\2\3", end="")
        await back.write(v)


async def resets_softly(pc):
    import machine

    out = await pc.writer("out")
    await out.write("now")
    machine.soft_reset()


@process
async def serve(streams, options):
    while True:
        try:
            async with Link(*streams, **options) as pc:
                orders = await pc.reader("do")
                what = await orders.read()
                orders.retire()
                if what != "report":
                    lines.clear()
                own = globals().get(what)
                await (own or getattr(link_board, what))(pc)
        except PeerDied:
            lines.append("PeerDied")
        except Exception as e:
            sys.print_exception(e)
            lines.append("failed: %r" % e)


def main(*streams, **options):
    run(serve(streams, options))

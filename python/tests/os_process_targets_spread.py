"""Processes that test_processes_spread.py starts in other OS processes: knots over several of them,
beside processes that continue.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import weft.coroutines as co
import weft.threads as th
from weft.processes import Channel, Parallel, process, select


class Enough(Exception):
    """The exception that ends the processes beside a knot."""


@process
def passes_on(inp: Any, out: Any) -> Any:
    """Reads before it writes."""
    value = inp.read()
    out.write(value)
    return value


@process
async def passes_on_async(inp: Any, out: Any) -> None:
    await out.write(await inp.read())


@process
def fills(out: Any, n: int, held: Any) -> None:
    """Writes more values than the channel has room for."""
    for i in range(n):
        out.write(i)


@process
def holds(inp: Any, held: Any) -> None:
    inp.read()


@process
def chooses(a: Any, b: Any, out: Any) -> None:
    _, value = select(a, b)
    out.write(value)


@process
def chooses_beside_its_own(a: Any, out: Any) -> None:
    """Includes in its choice a channel that was made in this OS process, and of which no other
    process holds an end."""
    mine = Channel("mine")
    Parallel(_chooses_here(a, mine.reader(), out), _holds_here(mine.writer(), a))


@th.process
def _chooses_here(a: Any, b: Any, out: Any) -> None:
    _, value = select(a, b)
    out.write(value)


@co.process
async def _holds_here(out: Any, inp: Any) -> None:
    await out.write(await inp.read())


@process
def waits_for_word(path: str, out: Any) -> None:
    """Waits for an event that is unknown to Weft, and holds an end."""
    with Path(path).open("rb", buffering=0) as fifo:
        fifo.read(1)
    out.write("word")


@process
def with_a_host(inp: Any, out: Any) -> None:
    """Runs two processes, and makes the channel between them in this OS process."""
    between = Channel("between")
    Parallel(passes_on(inp, between.writer()), passes_on.on("threads")(between.reader(), out))


@process
def goes_round(inp: Any, out: Any, n: int) -> int:
    """Passes on what it reads, `n` times."""
    for _ in range(n):
        out.write(inp.read() + 1)
    return n


@process
def figures_of(inp: Any) -> str:
    """Returns the answer to a request for the statistics of this end's channel."""
    from weft.processes import BadUse, statistics

    messages = []
    for ask in (lambda: statistics(inp.channel), inp.channel.stats):
        try:
            messages.append(str(ask()))
        except BadUse as error:
            messages.append(str(error))
    assert messages[0] == messages[1]
    return messages[0]

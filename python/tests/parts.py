"""Processes and helpers that many tests use."""

from __future__ import annotations

from typing import Any

from weft import coroutines as co
from weft import greenlets as gr
from weft import threads as th
from weft.errors import NoResult


def hows(results: list[Any]) -> list[Any]:
    """Returns the results. For a process without a result the item is how it ended, such as
    "<retired>" (rule 7.1).
    """
    return [
        f"<{r.how}>" if isinstance(r, NoResult) else hows(r) if isinstance(r, list) else r
        for r in results
    ]


async def send(b: Any, w: Any, *values: Any) -> None:
    for v in values:
        await b.op(w.write(v))


async def receive(b: Any, r: Any) -> list[Any]:
    return [v async for v in b.each(r)]


async def take(b: Any, r: Any, n: int) -> list[Any]:
    return [await b.op(r.read()) for _ in range(n)]


async def catch(b: Any, operation: Any) -> Any:
    """Returns the value of a read or write, or its exception. The process calls `operation`."""
    try:
        return await b.op(operation())
    except b.weft.ChannelEnd as end:
        return end


# The processes below pass on the values that they read, until there are no more.
@gr.process
def gr_echo(into: Any, out: Any) -> None:
    for value in into:
        out.write(value)


@co.process
async def co_echo(into: Any, out: Any) -> None:
    async for value in into:
        await out.write(value)


@th.process
def th_echo(into: Any, out: Any) -> None:
    for value in into:
        out.write(value)

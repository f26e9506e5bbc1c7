"""Processes of the operating system that test_ends_abroad.py starts: they send and receive ends of
channels; see os_process_targets.py.
"""

from __future__ import annotations

import os
import signal
from typing import Any

import weft.threads as th
from weft.processes import Channel, ChannelEnd, Parallel, process


@process
def offers(out: Any) -> list[int]:
    """Sends the writer of a channel of its own; returns the values that arrive on that channel."""
    mine = Channel("mine")
    reader = mine.reader()
    out.write(mine.writer())
    return list(reader)


@process
async def offers_async(out: Any) -> list[int]:
    mine = Channel("mine")
    reader = mine.reader()
    await out.write(mine.writer())
    return [value async for value in reader]


@process
def writes_to_what_comes(inp: Any, n: int) -> int:
    """Writes to the end that it receives. The end is released when the process ends."""
    end = inp.read()
    for i in range(n):
        end.write(i)
    return os.getpid()


@process
def takes_and_drops(inp: Any) -> None:
    inp.read()


@process
def takes_and_poisons(inp: Any) -> None:
    inp.read().poison()


@process
def is_not_answered(server: Any) -> str:
    reply = Channel("reply")
    reader = reply.reader()
    server.write(reply.writer())
    try:
        return str(reader.read())
    except ChannelEnd as error:
        return type(error).__name__


@process
def passes_on(inp: Any, out: Any) -> None:
    for value in inp:
        out.write(value)


@process
def asks(server: Any, numbers: list[int]) -> list[int]:
    """Sends each question together with an end for its answer."""
    got = []
    for n in numbers:
        reply = Channel("reply")
        reader = reply.reader()
        server.write({"n": n, "to": [reply.writer()]})
        got.append(reader.read())
    return got


@process
def serves(inp: Any) -> int:
    served = 0
    for request in inp:
        request["to"][0].write(request["n"] ** 2)
        served += 1
    return served


@process
def uses_what_it_sent(out: Any) -> list[str]:
    messages = []
    mine = Channel("mine")
    reader = mine.reader()
    end = mine.writer()
    out.write(end)
    try:
        end.write(1)
    except Exception as error:
        messages.append(f"{type(error).__name__}: {error}")
    try:
        out.write((reader, end))  # the second end is closed
    except Exception as error:
        messages.append(f"{type(error).__name__}: {error}")
    messages.append(str(reader.read()))
    return messages


@process
def keeps_what_was_not_taken(out: Any, ready: Any) -> int:
    """Abandons the write of an end, so that the end still belongs to this process."""
    mine = Channel("mine")
    reader, end = mine.reader(), mine.writer()
    try:
        with th.timeout(0.01):
            out.write(end)
    except TimeoutError:
        pass
    ready.write(None)

    @th.process
    def writes(end: Any) -> None:
        end.write(7)

    @th.process
    def reads(inp: Any) -> Any:
        return inp.read()

    got: int = Parallel(writes(end), reads(reader))[1]
    return got


@process
def fails_with(end: Any) -> None:
    raise LookupError("with it", [end])


@process
def sends_an_end_that_nobody_takes(out: Any, ready: Any) -> None:
    mine = Channel("mine")
    ready.write(None)
    out.write(mine.writer())


@process
def returns_what_it_got(inp: Any) -> Any:
    return {"end": inp.read()}


@process
def takes_and_dies(inp: Any, ready: Any) -> None:
    end = inp.read()
    ready.write(type(end).__name__)
    os.kill(os.getpid(), signal.SIGKILL)


@process
def echoes(inp: Any, out: Any) -> str:
    """Sends each value back to the OS process from which the value came."""
    try:
        while True:
            out.write([inp.read()])
    except ChannelEnd as error:
        return type(error).__name__


@process
def lets_it_lie(out: Any) -> None:
    """Makes a buffer, which another process fills and no process reads."""
    mine = Channel("mine", capacity=1)
    reader = mine.reader()
    out.write(mine.writer())
    while th.statistics(mine).buffered == 0:
        th.sleep(0.001)
    reader.retire()


@process
def waits(inp: Any, ready: Any, over: Any) -> None:
    """Holds an end, and does nothing with it."""
    ready.write(None)
    over.read()


def sends_no_end() -> None:
    """Offers ends to another OS process, which accepts none."""
    c, ready, over, d = Channel("c"), Channel("ready"), Channel("over"), Channel("d")

    @th.process
    def offers_them(out: Any, inp: Any, signals: Any) -> None:
        inp.read()
        kept = d.reader(), d.writer()
        for _ in range(20):
            end = d.writer()
            assert th.select(th.Output(out, end), th.skip()) == (1, None)
            end.retire()
        del kept
        signals.write(None)

    Parallel(
        waits(c.reader(), ready.writer(), over.reader()),
        offers_them(c.writer(), ready.reader(), over.writer()),
    )

"""The processes that the host "cellar" runs for the filter in C++. The host builds the component,
and runs it between two processes in Python, since a channel with an end of a component does not
lead to another machine.
"""

from pathlib import Path

import weft.native
from weft.coroutines import Channel, Parallel, process


@process
async def pass_on(source, out):
    async for value in source:
        await out.write(value)


@process
async def goertzel(samples, powers):
    there = weft.native.load(Path(__file__).resolve().parent / "goertzel.cpp")
    heard, found = Channel("heard"), Channel("found")
    await Parallel(
        pass_on(samples, heard.writer()),
        there.goertzel(heard.reader(), found.writer()),
        pass_on(found.reader(), powers),
    )

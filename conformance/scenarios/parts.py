"""The parts that the files of scenarios share: `settle`, a pause in which every other process runs
until it waits, and the simplest processes.

The module is compiled for each backend like the scenarios (`load`); the scenarios import it under
its plain name.
"""

from __future__ import annotations

from weft import process, sleep


async def settle():
    await sleep(1)


@process
async def put(writer, *values):
    for value in values:
        await writer.write(value)


@process
async def get(reader, number=1):
    return [await reader.read() for _ in range(number)]


@process
async def drain(reader):
    return [value async for value in reader]

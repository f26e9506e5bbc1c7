"""What the files of scenarios share: a pause in which everybody goes as far as he can, and the
plainest processes.

Compiled for each backend as the scenarios are (`load`); the scenarios import it by its plain name.
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

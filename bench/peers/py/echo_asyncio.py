"""The echo server of ../../py/echo.py with asyncio's streams: a task for each connection.

KIND is "asyncio" or "uvloop", the event loop.
"""

from __future__ import annotations

import asyncio
import sys

import echo_clients
from sampler import fail, numbers


async def serve(samples: int, per: int, connections: int) -> None:
    left = connections
    over = asyncio.Event()

    async def echoes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal left
        try:
            while data := await reader.read(4096):
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass  # the clients have ended
        writer.close()
        left -= 1
        if not left:
            over.set()

    server = await asyncio.start_server(echoes, "127.0.0.1", 0, backlog=4096)
    port = server.sockets[0].getsockname()[1]
    clients = echo_clients.start(port, samples, per, connections)
    await over.wait()
    server.close()
    echo_clients.finish(clients)


def main() -> None:
    samples, per, connections = numbers(echo_clients.USAGE, words=1)
    if sys.argv[1] == "uvloop":
        import uvloop

        uvloop.run(serve(samples, per, connections))
    elif sys.argv[1] == "asyncio":
        asyncio.run(serve(samples, per, connections))
    else:
        fail("KIND must be asyncio or uvloop")


main()

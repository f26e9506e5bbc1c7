"""Offers the channels of aPyCSP's net_basic and net_commstime programs, rewritten. Prints its port,
and serves until its input ends.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from weft.compat.apycsp import Channel, PoisonException, Spawn, net, process


@process
async def counts(ch: Any) -> None:
    i = 0
    while True:
        i += 1
        await ch.write(f"message {i}")


@process
async def says_42(ch: Any) -> None:
    while True:
        await ch.write(42)


@process
async def collects(ch: Any, signal: Any) -> None:
    """Collects values until the channel is poisoned, and sends them on request."""
    got = [value async for value in ch]
    await signal.write(got)


async def sets_up(start: Any) -> None:
    """Makes the channels of a client's CommsTime, and sends their names over a channel of that
    client.
    """
    made: list[Any] = []
    while True:
        settings = await start.read()
        reply = await net.get_channel_proxy(settings["reply"])
        if settings["cmd"] == "setup":
            made = [net.create_registered_channel(f"{settings['prefix']}-{n}") for n in "abcd"]
            await reply.write([c.name for c in made])
        else:
            for c in made:
                net.unregister_channel(c.name)
            await reply.write([])


async def main() -> None:
    for name, body in (("t1", counts), ("t2", says_42)):
        Spawn(body(net.create_registered_channel(name)))
    got = Channel("got")
    net.register_channel(got, "got")
    Spawn(collects(net.create_registered_channel("collects"), got))
    silent = net.create_registered_channel("silent")
    Spawn(sets_up(net.create_registered_channel("start")))
    poisoned = net.create_registered_channel("poisoned")
    await poisoned.poison()
    server = await net.start_server(sys.argv[1] if len(sys.argv) > 1 else "0")
    print(server.sockets[0].getsockname()[1], flush=True)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        # Reports how many operations wait at "silent". The read of a client that has disconnected
        # is not among them.
        print(silent.queue_len() if line == "silent\n" else "?", flush=True)
    server.close()


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except (PoisonException, KeyboardInterrupt):
        sys.exit(1)

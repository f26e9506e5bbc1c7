"""An echo server of Weft's streams: a process for each connection.

KIND is "coroutines", or "threads": then each connection has a thread.
"""

from __future__ import annotations

import sys
from typing import Any

import echo_clients
from sampler import fail, numbers

import weft.coroutines as co
import weft.threads as th


@co.process
async def echoes(s: co.Stream) -> None:
    with s:
        try:
            while data := await s.read_some(4096):
                await s.write_all(data)
        except ConnectionError:
            pass  # the client has reset the connection


@co.process
async def serves(door: co.Listener, connections: int) -> None:
    async with co.Group() as all_of_them:
        for _ in range(connections):
            all_of_them.start(echoes(await door.accept()))


@th.process
def echoes_in_a_thread(s: Any) -> None:
    with s:
        try:
            while data := s.read_some(4096):
                s.write_all(data)
        except ConnectionError:
            pass


@th.process
def serves_by_threads(door: Any, connections: int) -> None:
    with th.Group() as all_of_them:
        for _ in range(connections):
            all_of_them.start(echoes_in_a_thread(door.accept()))


def main() -> None:
    samples, per, connections = numbers(echo_clients.USAGE, words=1)
    if sys.argv[1] not in ("coroutines", "threads"):
        fail("KIND must be coroutines or threads")
    door = co.listen("127.0.0.1:0")
    port = int(door.address.rpartition(":")[2])
    clients = echo_clients.start(port, samples, per, connections)
    if sys.argv[1] == "coroutines":
        co.run(serves(door, connections))
    else:
        th.run(serves_by_threads(door, connections))
    echo_clients.finish(clients)


main()

"""Takes the place of machines (machines.py) where namespaces cannot be made: addresses of loopback,
and a proxy between them that delays, stops and cuts.

    with Loopback(3, seed=1) as machines:                     127.77.0.1, 127.77.0.2, 127.77.0.3
        machines.configure(delay=0.02, loss=0.05)                  as Machines.configure()
        [*machines.inside(2), "python", …]                    a command, on the second

Loopback loses nothing, and the system acknowledges bytes even if a program does not read them. So
two things differ from a network. A lost piece makes the stream stop for RESENT, as a loss appears
above TCP. And a cut ends the connections, since otherwise no program would notice it.

Invariants
- Every connection of a program goes through the proxy: programs.py requests a port that leads to
  the address (`through`), and names its machine. The tests do so for the server's URL.
- Bytes of a connection keep their order. Losses and delays are drawn from the seed, in the order in
  which bytes arrive.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import socket
import threading
from typing import Any

from machines import Losses

NETWORK = "127.77.0"
RESENT = 0.2  # seconds after which TCP would send lost bytes again
TOLD = "WEFT_TEST_PROXY"  # the environment variable with "PORT MACHINE" for a program


def through(address: str) -> str:
    """Returns the address by which this program reaches another program; this is `address` itself
    if no proxy is used.
    """
    if TOLD not in os.environ:
        return address
    port, machine = os.environ[TOLD].split()
    with socket.create_connection(("127.0.0.1", int(port))) as control:
        control.sendall(json.dumps({"from": int(machine), "to": address}).encode() + b"\n")
        return f"127.0.0.1:{int(control.makefile().readline())}"


def _machine_of(address: str) -> int:
    host = address.rpartition(":")[0]
    return int(host.rpartition(".")[2]) if host.startswith(NETWORK + ".") else 0


class Loopback:
    port = 0  # the port at which the server of the tests listens; 0 means any
    loss = 0.05  # the loss of a bad network; a connection has fewer pieces than packets

    def __init__(self, _: int, seed: int) -> None:
        self.random = random.Random(seed)
        self.losses = Losses(seed)
        self.how: dict[str, Any] = {"delay": 0.0, "jitter": 0.0, "loss": 0.0, "cut": []}
        self.counts = {"passed": 0, "lost": 0, "cut": 0}
        self.ways: dict[tuple[int, str], int] = {}
        self.open: dict[asyncio.Task[None], tuple[int, int]] = {}  # the machines of each connection
        self.servers: list[asyncio.Server] = []
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, name="proxy", daemon=True)
        self.thread.start()
        self.control = self._call(self._listen(self._asked))

    def _call(self, what: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(what, self.loop).result()

    async def _listen(self, received: Any) -> int:
        server = await asyncio.start_server(received, "127.0.0.1", 0)
        self.servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    def configure(self, **how: Any) -> dict[str, int]:
        """Sets how the proxy treats connections from now on, as Machines.configure() does for
        packets. `passed` counts pieces of bytes, `cut` connections.
        """

        async def change() -> dict[str, int]:
            self.how.update(how)
            for task, ends in list(self.open.items()):
                if set(ends) & set(self.how["cut"]):
                    task.cancel()
            return dict(self.counts)

        counts: dict[str, int] = self._call(change())
        return counts

    def address(self, machine: int) -> str:
        return f"{NETWORK}.{machine}"

    def inside(self, machine: int) -> list[str]:
        return ["env", f"{TOLD}={self.control} {machine}"]

    def reached(self, url: str, machine: int) -> str:
        """Returns the URL by which this machine reaches the server at `url`."""
        scheme, _, address = url.partition("://")
        return f"{scheme}://127.0.0.1:{self._call(self._way(machine, address))}"

    async def _way(self, machine: int, to: str) -> int:
        if (machine, to) not in self.ways:

            async def came(reader: Any, writer: Any) -> None:
                await self._between((machine, _machine_of(to)), to, (reader, writer))

            self.ways[machine, to] = await self._listen(came)
        return self.ways[machine, to]

    async def _asked(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        settings = json.loads(await reader.readline())
        writer.write(f"{await self._way(settings['from'], settings['to'])}\n".encode())
        await writer.drain()
        writer.close()

    async def _between(self, ends: tuple[int, int], to: str, near: Any) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.open[task] = ends
        writers = [near[1]]
        try:
            if set(ends) & set(self.how["cut"]):
                raise asyncio.CancelledError
            host, _, port = to.rpartition(":")
            far = await asyncio.open_connection(host, int(port))
            writers.append(far[1])
            await asyncio.gather(self._carry(near[0], far[1]), self._carry(far[0], near[1]))
        except asyncio.CancelledError:
            self.counts["cut"] += 1
        except OSError:
            pass  # no program listens at the address, or one of the two programs has ended
        finally:
            del self.open[task]
            for writer in writers:
                writer.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Sends pieces when they are due, each after the previous one. Up to 64 pieces are under
        way."""
        under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(64)

        async def deliver() -> None:
            while True:
                due, data = await under_way.get()
                await asyncio.sleep(max(due - self.loop.time(), 0))
                if not data:
                    # A connection with TLS cannot be closed in one direction.
                    with contextlib.suppress(OSError):
                        writer.write_eof()
                    return
                writer.write(data)
                await writer.drain()
                self.counts["passed"] += 1

        delivers = asyncio.ensure_future(deliver())
        try:
            data = b"?"
            while data:
                data = await reader.read(16_384)
                late = self.how["delay"] + self.random.random() * self.how["jitter"]
                if self.losses.next(self.how["loss"]):
                    self.counts["lost"] += 1
                    late += RESENT
                await under_way.put((self.loop.time() + late, data))
            await delivers
        finally:
            delivers.cancel()

    def __enter__(self) -> Loopback:
        return self

    def __exit__(self, *_: object) -> None:
        async def end() -> None:
            for server in self.servers:
                server.close()
            left = asyncio.all_tasks() - {asyncio.current_task()}
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)

        self._call(end())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()

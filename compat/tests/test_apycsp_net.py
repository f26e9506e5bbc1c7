"""weft.compat.apycsp.net: aPyCSP's net_basic and net_commstime programs, rewritten, between
programs on loopback and on machines of their own (machines.py).
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from weft.compat.apycsp import Alternative, Channel, Parallel, PoisonException, net, process
from weft.compat.apycsp.plugNplay import Delta2, Prefix, Successor
from weft.errors import BadUse

# The client of a test also imports this module.
sys.path.append(str(Path(__file__).resolve().parents[2] / "net/tests"))

from machines import Machines, why_not

SERVER = Path(__file__).with_name("apycsp_server.py")


class Served:
    def __init__(self, before: Sequence[str] = ()) -> None:
        self.process = subprocess.Popen(
            [*before, sys.executable, str(SERVER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.address = f"127.0.0.1:{self.line()}"

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def waiting(self) -> int:
        """Returns how many operations wait at the server's channel "silent"."""
        assert self.process.stdin is not None
        self.process.stdin.write("silent\n")
        self.process.stdin.flush()
        return int(self.line())

    def __enter__(self) -> Served:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def served() -> Iterator[Served]:
    with Served() as server:
        yield server


@pytest.fixture(autouse=True)
def empty() -> Iterator[None]:
    yield
    net._registered.clear()
    net._connections.clear()


def run(main: Any) -> Any:
    return asyncio.run(main)


def test_basic(served):
    """net_basic: the client sends commands, and reads from channels of the server."""

    @process
    async def reads(ch: Any, n: int) -> list[Any]:
        return [await ch.read() for _ in range(n)]

    async def main() -> Any:
        connection = await net.setup_client(served.address)
        assert await connection.send_recv_cmd("ping") == "ack"
        assert await connection.send_recv_cmd("print", args="foo") == "ack"
        t1, t2 = [await net.get_channel_proxy(n) for n in ("t1", "t2")]
        return await reads(t1, 3), await Parallel(reads(t2, 50), reads(t2, 50))

    first, (a, b) = run(main())
    assert first == ["message 1", "message 2", "message 3"]
    assert a == b == [42] * 50


def commstime(n: int) -> Any:
    @process
    async def consumer(cin: Any, *others: Any) -> list[int]:
        got = [await cin() for _ in range(n)]
        for ch in (cin, *others):
            await ch.poison()
        return got

    async def main(address: str) -> Any:
        connection = await net.setup_client(address, can_serve=True)
        start, reply = (
            await net.get_channel_proxy("start"),
            net.create_registered_channel("my-reply"),
        )
        rounds = []
        for i in range(2):
            await start.write({"cmd": "setup", "prefix": f"p{i}", "reply": "my-reply"})
            a, b, c, d = [await net.get_channel_proxy(name) for name in await reply.read()]
            done = await Parallel(
                Prefix(c.read, a.write, prefixItem=0),
                Delta2(a.read, b.write, d.write),
                Successor(b.read, c.write),
                consumer(d.read, a, b, c),
            )
            rounds.append(done[-1])
            await start.write({"cmd": "cleanup", "prefix": f"p{i}", "reply": "my-reply"})
            assert await reply.read() == []
        connection.close()
        return rounds

    return main


def test_commstime(served):
    """net_commstime: all four channels belong to the server, and both sides serve; the numbers
    arrive in order."""
    assert run(commstime(30)(served.address)) == [list(range(30))] * 2


CLIENT = """
import asyncio, json, sys
sys.path.insert(0, sys.argv[1])
import test_apycsp_net
print(json.dumps(asyncio.run(test_apycsp_net.commstime(5)(sys.argv[2]))))
"""


@pytest.mark.skipif(bool(why_not()), reason=why_not())
def test_commstime_on_machines_of_their_own():
    """The server is in one namespace, the client in another, and the network between loses
    packets.
    """
    seed = random.randrange(1 << 30)
    print("seed", seed)
    with Machines(2, seed) as lan:
        lan.configure(delay=0.002, loss=0.01)
        server = subprocess.Popen(
            [*lan.inside(1), sys.executable, str(SERVER), f"{lan.address(1)}:0"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            port = server.stdout.readline().strip()
            client = [sys.executable, "-c", CLIENT, str(SERVER.parent), f"{lan.address(1)}:{port}"]
            done = subprocess.run(
                [*lan.inside(2), *client], capture_output=True, text=True, check=False
            )
            assert json.loads(done.stdout) == [list(range(5))] * 2, done.stderr
        finally:
            server.kill()
            server.communicate()


def test_poison_goes_over_and_comes_back(served):
    async def main() -> Any:
        await net.setup_client(served.address)
        collects, got = [await net.get_channel_proxy(n) for n in ("collects", "got")]
        for i in range(3):
            assert await collects.write({"n": i}) == 0
        await collects.write.poison()
        with pytest.raises(PoisonException):
            await collects.write(9)
        poisoned = await net.get_channel_proxy("poisoned")
        assert [v async for v in poisoned] == []
        with pytest.raises(PoisonException):
            await poisoned.read()
        return await got.read()

    assert run(main()) == [{"n": 0}, {"n": 1}, {"n": 2}]


def test_a_client_that_goes_takes_its_operations_along(served):
    async def main() -> None:
        connection = await net.setup_client(served.address)
        silent = await net.get_channel_proxy("silent")
        reading = asyncio.ensure_future(silent.read())
        await asyncio.sleep(0)  # now the read is being sent
        await connection.send_recv_cmd("ping")  # once this is answered, the read has arrived
        assert served.waiting() == 1
        connection.close()
        with pytest.raises(ConnectionError, match="this program has closed"):
            await reading
        with pytest.raises(ConnectionError):
            await silent.read()
        again = await net.setup_client(served.address)
        while served.waiting():  # the server soon learns that the client has disconnected
            await again.send_recv_cmd("ping")

    run(main())


def test_an_operation_that_is_cancelled(served):
    """A cancelled operation has no effect at the server."""

    async def main() -> None:
        connection = await net.setup_client(served.address)
        silent = await net.get_channel_proxy("silent")
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(silent.read(), 0.01)
        while served.waiting():
            await connection.send_recv_cmd("ping")

    run(main())


def test_a_server_that_is_killed(served):
    async def main() -> None:
        await net.setup_client(served.address)
        silent = await net.get_channel_proxy("silent")
        reading = asyncio.ensure_future(silent.read())
        await asyncio.sleep(0)  # now the read is being sent
        await silent._connection.send_recv_cmd("ping")
        served.process.kill()
        with pytest.raises(ConnectionError):
            await reading
        with pytest.raises(BadUse, match="with the 0 programs connected"):
            await net.get_channel_proxy("silent")

    run(main())


def test_what_cannot_go(served):
    async def main() -> None:
        connection = await net.setup_client(served.address)
        silent = await net.get_channel_proxy("silent")
        with pytest.raises(BadUse, match="must be JSON"):
            await silent.write({1, 2})
        with pytest.raises(BadUse, match="at most 16777216 bytes"):
            await silent.write("x" * (1 << 24))
        with pytest.raises(BadUse, match="not for an Alternative"):
            silent.write.alt_pending_write(1)
        with pytest.raises(BadUse):
            Alternative(silent.read)
        with pytest.raises(BadUse, match="there is no command 'dance'"):
            await connection.send_recv_cmd("dance")
        with pytest.raises(BadUse, match="no channel 'none' is registered"):
            await connection.send_recv_cmd("read", name="none")
        with pytest.raises(BadUse, match="no channel 'none' is registered with the 1 programs"):
            await net.get_channel_proxy("none")
        assert await connection.send_recv_cmd("ping") == "ack"  # the connection still works

    run(main())


def test_a_client_that_does_not_serve():
    """A server cannot use the channels of a client that does not serve."""

    async def main() -> None:
        server = await net.start_server("0")
        port = server.sockets[0].getsockname()[1]
        mine = net.create_registered_channel("mine")
        client = await net.setup_client(f"127.0.0.1:{port}")
        await client.send_recv_cmd("ping")
        (accepted,) = [c for c in net._connections if c is not client]
        assert await accepted.send_recv_cmd("chanlist") == []
        with pytest.raises(BadUse, match="no channel 'mine' is registered"):
            await accepted.send_recv_cmd("poison", name="mine")
        assert not mine.poisoned
        server.close()

    run(main())


@pytest.mark.parametrize(
    "rubbish",
    [
        b"rubbish\n",
        b"[1]\n",
        b"\xff\xfe\n",
        b'{"ack": []}\n',
        b'{"ack": 77}\n',
        b'{"op": "ping"}\n',
        b"{",
    ],
)
def test_rubbish(served, rubbish):
    """A program that sends rubbish loses no more than its connection; other programs continue."""

    async def main() -> None:
        host, port = served.address.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(rubbish)
        writer.write_eof()
        assert await reader.read() == b""
        writer.close()
        connection = await net.setup_client(served.address)
        assert await connection.send_recv_cmd("ping") == "ack"

    run(main())


def test_names():
    c = Channel("c")
    net.register_channel(c, "c")
    net.register_channel(c, "c")
    with pytest.raises(BadUse, match="there is a channel 'c' already"):
        net.create_registered_channel("c")
    net.unregister_channel("c")
    with pytest.raises(BadUse, match="no channel 'c' is registered"):
        net.unregister_channel("c")
    for wrong in ("here", "1:2:x", "70000", ""):
        with pytest.raises(BadUse, match="an address must be"):
            run(net.start_server(wrong))

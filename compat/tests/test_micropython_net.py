"""weft.compat.apycsp.net on MicroPython: each side of a connection, with CPython at the other."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_apycsp_net import Served

from weft.compat.apycsp import PoisonException, net
from weft.errors import BadUse

sys.path.append(str(Path(__file__).resolve().parents[2]))

from micropython.tests import tiers

CLIENT = """
import asyncio, sys
import weft.compat.as_published as published
published.apycsp()
import apycsp.net as net
from apycsp import Alternative, Parallel, PoisonException, Spawn, process

@process
async def reads(ch, n):
    got = []
    for _ in range(n):
        got.append(await ch.read())
    return got

async def told(awaitable):
    try:
        return await awaitable
    except Exception as e:
        return type(e).__name__

async def main():
    connection = await net.setup_client(sys.argv[1])
    print(await connection.send_recv_cmd("ping"))
    t1, t2 = await net.get_channel_proxy("t1"), await net.get_channel_proxy("t2")
    print(await reads(t1, 3), await Parallel(reads(t2, 4), reads(t2, 4)))
    collects, got = await net.get_channel_proxy("collects"), await net.get_channel_proxy("got")
    print(await collects.write([1, {"a": None}]))
    await collects.write("second")
    await collects.poison()
    print(await got.read())
    poisoned = await net.get_channel_proxy("poisoned")
    print(await told(poisoned.read()), await told(poisoned.write(1)))
    async for v in poisoned.read:
        print("never")
    print(await told(net.get_channel_proxy("nosuch")))
    deep = []
    deep.append(deep)
    for bad in (object(), {1: 2}, float("nan"), [{"a": b"b"}], deep, "x" * (1 << 16)):
        print(await told(t1.write(bad)), end=";")
    print()
    try:
        t1.write.alt_pending_write(1)
    except Exception as e:
        print(type(e).__name__)
    print(await told(net.setup_client("no address")))
    silent = await net.get_channel_proxy("silent")
    waiting = asyncio.create_task(told(silent.read()))
    gone = asyncio.create_task(silent.read())
    await t2.read()
    gone.cancel()
    await t2.read()  # the server has met the cancellation, which was sent before
    print("waits")
    sys.stdin.readline()
    connection.close()
    print(await waiting, await told(t1.read()))

asyncio.run(main())
"""
EXPECTED = """\
ack
['message 1', 'message 2', 'message 3'] [[42, 42, 42, 42], [42, 42, 42, 42]]
0
[[1, {'a': None}], 'second']
Poisoned Poisoned
BadUse
BadUse;BadUse;BadUse;BadUse;BadUse;BadUse;
BadUse
BadUse
waits
"""


@pytest.fixture(scope="module")
def lib(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiers.installed(tmp_path_factory.mktemp("lib"), tiers.ROOT / "compat/micropython")


def on_micropython(lib: Path, tmp_path: Path, source: str, *args: str) -> subprocess.Popen[str]:
    program = tmp_path / "program.py"
    program.write_text(source)
    return subprocess.Popen(
        [*tiers.command("pure"), str(program), *args],
        env=tiers.environment("pure", lib),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_client(lib: Path, tmp_path: Path) -> None:
    """A client on MicroPython behaves as a client on CPython does; a read that is cancelled is
    withdrawn at the server."""
    with Served() as server, on_micropython(lib, tmp_path, CLIENT, server.address) as client:
        assert client.stdout and client.stdin
        got = "".join(client.stdout.readline() for _ in EXPECTED.splitlines())
        assert got == EXPECTED
        while server.waiting() != 1:
            pass  # the cancelled read is withdrawn once the server handles the request
        print("", file=client.stdin, flush=True)
        assert client.stdout.read() == "OSError OSError\n"
        assert client.wait() == 0


SERVER = """
import asyncio, sys
import weft.compat.as_published as published
published.apycsp()
import apycsp
import apycsp.net as net

@apycsp.process
async def counts(ch):
    i = 0
    while True:
        i += 1
        await ch.write(i)

async def main():
    apycsp.Spawn(counts(net.create_registered_channel("numbers")))
    echo = net.create_registered_channel("echo")
    try:
        net.register_channel(apycsp.Channel("other"), "echo")
    except Exception as e:
        print(type(e).__name__)
    net.register_channel(echo, "again")
    net.unregister_channel("again")
    server = await net.start_server(sys.argv[1])
    print("listens")
    async with server:
        await server.serve_forever()

try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("stopped")
"""


@pytest.fixture
def port(lib: Path, tmp_path: Path) -> Iterator[int]:
    """Starts a server on MicroPython and returns its port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        number: int = free.getsockname()[1]
    with on_micropython(lib, tmp_path, SERVER, str(number)) as server:
        assert server.stdout
        assert [server.stdout.readline() for _ in range(2)] == ["BadUse\n", "listens\n"]
        yield number
        server.send_signal(2)
        assert server.stdout.read() == "stopped\n"


def test_a_server(port: int) -> None:
    async def main() -> list[Any]:
        one = await net.setup_client(f"127.0.0.1:{port}")
        numbers, echo = [await net.get_channel_proxy(n) for n in ("numbers", "echo")]
        got: list[Any] = [await numbers.read() for _ in range(3)]
        reading = asyncio.create_task(echo.read())
        got += [await echo.write({"v": [1, 2]}), await reading]
        # If many operations are requested at once, each answer has the number of its operation.
        got.append(sorted(await asyncio.gather(*(numbers.read() for _ in range(20)))))
        with pytest.raises(BadUse, match="no channel 'again'"):
            await net.get_channel_proxy("again")
        with pytest.raises(BadUse, match="no command"):
            await one.send_recv_cmd("nosuch")
        late = asyncio.create_task(echo.read())
        await one.send_recv_cmd("ping")
        await echo.poison()
        with pytest.raises(PoisonException):
            await late
        one.close()
        return got

    assert asyncio.run(main()) == [1, 2, 3, 0, {"v": [1, 2]}, list(range(4, 24))]


@pytest.mark.parametrize(
    "rubbish",
    [b"\n", b"[]\n", b"no json\n", b'{"op": "ping"}\n', b'{"op": "ping", "msgno": "1"}\n'],
)
def test_rubbish_ends_its_connection_and_no_other(port: int, rubbish: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=280) as peer:
        peer.sendall(rubbish)
        assert peer.recv(100) == b""
    with socket.create_connection(("127.0.0.1", port), timeout=280) as peer:
        peer.sendall(b'{"op": "ping", "msgno": 1}\n')
        assert b'"ret": "ack"' in peer.recv(1000)

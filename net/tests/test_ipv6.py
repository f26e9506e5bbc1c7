"""Tests networks over IPv6: on its loopback, and with link-local addresses, which are valid only
with their zone.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import far_parts as parts
import pytest
from conftest import Agent

from weft import net
from weft._net import link as _net_link
from weft._net import server as _net_server
from weft.processes import Executor

HERE = Path(__file__).resolve().parent


def has_ipv6() -> bool:
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6) as own:
        own.bind(("::1", 0))
        return True
    return False


pytestmark = [
    pytest.mark.usefixtures("never_away"),
    pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6"),
]


def link_local() -> str | None:
    """Returns a link-local address of this machine, with its zone; None if the machine has no such
    address."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/net/if_inet6").read_text(encoding="ascii").splitlines():
            address, *_, zone = line.split()
            if address.startswith("fe80"):
                parts_of = [address[i : i + 4] for i in range(0, 32, 4)]
                return f"{':'.join(parts_of)}%{zone}"
    return None


@pytest.fixture
def server6(keys: Path, tmp_path: Path) -> Iterator[Any]:
    folder = tmp_path / "server"
    net.make_keys(folder, by=keys)
    with _net_server.Server(folder, "[::1]:0") as started:
        yield started


def test_a_network_over_ipv6(server6, keys):
    """Server, agent and caller meet; calls and names work."""
    assert "://[::1]:" in server6.url
    agent = Agent(server6.url, keys, "gpu1", "--hosts", "1", "--address", "[::1]:0", folder=HERE)
    try:
        assert agent.report["address"].startswith("[::1]:"), agent.refused
        with net.join(server6.url, keys=keys, address="[::1]:0") as network:
            assert network.address.startswith("[::1]:")
            with Executor(1, on="gpu1") as pool:
                assert pool.submit(parts.where, 0).result() == agent.report["pids"][0]
    finally:
        agent.process.terminate()
        agent.process.communicate()


def echo(door: Any, address: str, program: Any, keys: Path) -> None:
    program("gives", address, keys)
    with door.next() as session:
        squares, numbers = session.take("squares"), session.take("numbers")
        numbers.write(3)
        assert squares.read() == 9
        numbers.retire()


@pytest.mark.parametrize("address", ["[::1]:0", "::1:0", "[::]:0"])
def test_a_door(keys, program, address):
    with net.listen(address, keys=keys) as door:
        assert door.address.startswith(("[::1]:", "[::]:"))
        echo(door, door.address.replace("[::]", "[::1]"), program, keys)


def test_a_link_local_address_has_its_zone(keys, program):
    """The announced address can be reached. Without its zone no program could connect to the
    address."""
    address = link_local()
    if address is None:
        pytest.skip("no interface has a link-local address")
    with net.listen(f"[{address}]:0", keys=keys) as door:
        assert door.address.partition("]")[0].endswith("%" + address.partition("%")[2])
        echo(door, door.address, program, keys)


@pytest.mark.parametrize(
    ("name", "address"),
    [
        (("fe80::1", 5, 0, 1), f"[fe80::1%{socket.if_indextoname(1)}]:5"),
        (("fe80::1%x", 5, 0, 1), "[fe80::1%x]:5"),
        (("::1", 5, 0, 0), "[::1]:5"),
        (("127.0.0.1", 5), "127.0.0.1:5"),
    ],
)
def test_where_it_listens(name, address):
    listens: Any = SimpleNamespace(sockets=[SimpleNamespace(getsockname=lambda: name)])
    assert _net_link.joined(listens) == address
    assert _net_link.parted(address) == (address[:-2].strip("[]"), 5)

"""Programs with another version of Weft meet this one (WIRE.md 2.3, WIRE-NETWORKS.md 17.6): the
error says that the versions differ, on both sides, and no value is sent.

The other program is written here by hand, from the tables of WIRE.md: TLS, the first message, and
frames with the versions and the type of values that the other program would say.
"""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import far_parts as parts
import pytest
from odd import packed

from weft import net
from weft._net import keys as _net_keys
from weft._net import names as _net_names
from weft.errors import BadUse, PeerDied
from weft.processes import Executor, run

HELLO, BYE, GIVE = 40, 41, 30
CREDITS_AND_PLACES = 1 | 2 | 8  # the profile bits of a program that may be a home


def frame(kind: int, seq: int, body: bytes = b"", **fields: int) -> bytes:
    """Returns a frame (WIRE.md 3.1), as a piece of a session's bytes."""
    padded = body + b"\0" * (-len(body) % 8)
    head = struct.pack(
        "<HBBIIIQQ",
        32 + len(padded),
        kind,
        fields.get("flags", 0),
        fields.get("where", 0),
        seq,
        fields.get("txn", 0),
        fields.get("op", 0),
        fields.get("val", len(body)),
    )
    return struct.pack("<I", len(head + padded)) + head + padded


def hello(lowest: int, highest: int) -> bytes:
    body = struct.pack("<II", 0, 0) + b"old"
    where = int.from_bytes(b"WEFT", "little")
    val = CREDITS_AND_PLACES | 65_528 << 32
    return frame(HELLO, 0, body, where=where, txn=lowest | highest << 16, op=77, val=val)


def given(name: str, type_: str) -> bytes:
    """Returns the frame that gives the reader of a channel, whose own name is `c`."""
    body = struct.pack("<Q", 99) + type_.encode() + b"\0" + name.encode() + b" c"
    return frame(GIVE, 1, body, where=1)


class Old:
    """What the other program has received: the answer to its first message, and the reasons of BYE."""

    def __init__(self, **more: Any) -> None:
        self.says = {"host": "old", "trust": False, "name": None, **more}
        self.answer: Any = None
        self.byes: list[str] = []
        self.connection: socket.socket | None = None

    def talks(self, way: Any, frames: bytes, first: bool) -> None:
        """Sends a first message and the frames, and hears the other side until its end."""
        stream = way.makefile("rb")
        message = packed(json.dumps(self.says).encode())
        if first:
            way.sendall(message)
        self.answer = self._message(stream)
        if not first:
            way.sendall(message)
        way.sendall(frames)
        received = b"".join(iter(lambda: self._piece(stream), b""))
        while received:
            size, kind = struct.unpack_from("<HB", received)
            if kind == BYE:
                (length,) = struct.unpack_from("<Q", received, 24)
                self.byes.append(received[32 : 32 + length].decode())
            received = received[size:]

    @staticmethod
    def _message(stream: Any) -> Any:
        magic, size = struct.unpack("<8sI", stream.read(12))
        assert magic == b"WEFTNET1"
        return json.loads(stream.read(size))

    @staticmethod
    def _piece(stream: Any) -> bytes:
        head = stream.read(4)
        return stream.read(struct.unpack("<I", head)[0]) if len(head) == 4 else b""


def hears(old: Old, door: socket.socket, tls: ssl.SSLContext, frames: bytes) -> None:
    """Talks to the first program that connects."""
    with contextlib.suppress(OSError):  # also if the test has ended the connection, or the door
        old.connection, _ = door.accept()
        with tls.wrap_socket(old.connection, server_side=True) as way:
            old.connection = way
            old.talks(way, frames, first=False)


@contextlib.contextmanager
def connects(keys: Path, frames: bytes) -> Iterator[tuple[Any, Old]]:
    """The other program connects to a door of this one."""
    old = Old()
    tls = _net_keys.context(keys, server=False)

    def runs(address: str) -> None:
        host, port = address.rsplit(":", 1)
        with (
            socket.create_connection((host, int(port))) as raw,
            tls.wrap_socket(raw) as way,
            contextlib.suppress(ConnectionError, ssl.SSLError),
        ):
            old.talks(way, frames, first=True)

    with net.listen(keys=keys) as door:
        thread = threading.Thread(target=runs, args=(door.address,))
        thread.start()
        with door.next() as session:
            yield session, old
        thread.join()


@contextlib.contextmanager
def listens(keys: Path, frames: bytes) -> Iterator[tuple[Any, Old]]:
    """This program connects to the other one."""
    old = Old()
    door = socket.create_server(("127.0.0.1", 0))
    args = (old, door, _net_keys.context(keys, server=True), frames)
    thread = threading.Thread(target=hears, args=args)
    thread.start()
    with door, net.connect(f"127.0.0.1:{door.getsockname()[1]}", keys=keys) as session:
        yield session, old
    thread.join()


Meets = Callable[[Path, bytes], Any]
both = pytest.mark.parametrize("meets", [connects, listens])


@both
@pytest.mark.parametrize("versions", [(0, 0), (2, 4)])
def test_no_version_in_common(keys: Path, meets: Meets, versions: tuple[int, int]) -> None:
    """Wire 2.3: both sides learn both versions."""
    with meets(keys, hello(*versions)) as (session, old):
        lowest, highest = versions
        why = f"no common version: this space speaks 1 to 1, the peer {lowest} to {highest}"
        with pytest.raises(BadUse, match=f"{why}.*install the same version on both machines"):
            session.take("numbers")
    assert why in old.byes[0]


@both
def test_a_version_in_common_is_enough(keys: Path, meets: Meets) -> None:
    """Wire 2.3: the other program knows later versions too."""
    with meets(keys, hello(1, 3) + given("numbers", "typed2")) as (session, old):
        assert type(session.take("numbers")).__name__ == "Reader"
    assert old.byes == ["the other program has closed the session"]


@both
def test_values_of_an_older_weft(keys: Path, meets: Meets) -> None:
    """Wire 17.6: where tuples arrived as lists the type of values was `typed`."""
    with (
        meets(keys, hello(1, 1) + given("numbers", "typed")) as (session, _),
        pytest.raises(BadUse, match=r"has an older Weft, whose tuples.*install the same version"),
    ):
        session.take("numbers")


@both
def test_values_of_a_newer_weft(keys: Path, meets: Meets) -> None:
    """Wire 17.6: a type that this version does not know is refused by its name."""
    with (
        meets(keys, hello(1, 1) + given("numbers", "typed3")) as (session, _),
        pytest.raises(BadUse, match="is of type typed3, and this link carries typed2"),
    ):
        session.take("numbers")


FRAMES = {
    "no common version": hello(2, 4),
    "older Weft, whose tuples arrive as lists": hello(1, 1) + given("end", "typed"),
}


@contextlib.contextmanager
def offered(
    network: net.Network, keys: Path, name: str, frames: bytes, **agent: Any
) -> Iterator[None]:
    """The other program offers the readers of a channel, to one program that comes; or, with the
    fields of an agent's entry, it is a host.
    """
    tls = _net_keys.context(keys, server=True)
    door = socket.create_server(("127.0.0.1", 0))
    own = ssl.PEM_cert_to_DER_cert((keys / "certificate.pem").read_text())
    entry = {
        "address": f"127.0.0.1:{door.getsockname()[1]}",
        "fingerprint": _net_keys.fingerprint_of(own),
        "home": "0" * 16,
        "host": "old",
        "readers": True,
        "relay": False,
        "ticket": "0" * 32,
        "writers": False,
        **agent,
    }

    async def write() -> None:
        js = network._meeting._nats.jetstream()
        await js.publish(f"$KV.{_net_names.BUCKET}.{name}", json.dumps(entry).encode())

    network._call(write())
    old = Old(pid=5, call="0", **{"pass": "0"})  # what an agent answers
    thread = threading.Thread(target=hears, args=(old, door, tls, frames))
    thread.start()
    try:
        yield
    finally:
        for each in filter(None, (door, old.connection)):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        thread.join()
        door.close()


@pytest.mark.parametrize("why", FRAMES)
def test_an_end_by_its_name(network: net.Network, keys: Path, why: str) -> None:
    """Wire 2.3, 17.6: `network.reader` says the same, and not that the home has died."""
    with (
        offered(network, keys, "lab/numbers", FRAMES[why]),
        pytest.raises(BadUse, match=f"{why}.*install the same version on both machines"),
    ):
        network.reader("lab/numbers")


AGENT = {"allow": ["far_parts:pid", "far_parts:plus"], "hosts": 1, "trust": False, "readers": False}


def test_a_call_on_a_host(network: net.Network, keys: Path) -> None:
    """Wire 2.3: the host has not died, and the call says that the versions differ."""
    why = "no common version.*install the same version on both machines"
    with (
        offered(network, keys, "host=old", hello(2, 4), **AGENT),
        pytest.raises(BadUse, match=why),
    ):
        run(parts.pid.on(network.host("old"))())
    with (
        offered(network, keys, "host=old", hello(2, 4), **AGENT),
        Executor(on=network.host("old")) as pool,
        # BadUse if the other's HELLO came before the call was given
        pytest.raises((BrokenProcessPool, BadUse), match=why),
    ):
        pool.submit(parts.plus, 1, 2).result()


def test_a_session_that_this_program_has_closed(
    network: net.Network, keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of a closed session is no matter of versions."""
    with listens(keys, hello(1, 1)) as (session, _):
        session.close()

        async def come(*_: Any) -> Any:
            return session

        monkeypatch.setattr(network._meeting, "come", come)
        with pytest.raises(PeerDied, match="session with the home of 'lab/numbers' ended: this"):
            network.reader("lab/numbers")


def test_no_weft_at_all(keys: Path) -> None:
    """Wire 2.3: the bytes after the first message are no HELLO."""
    with (
        connects(keys, frame(HELLO, 0, where=1)) as (session, _),
        pytest.raises(PeerDied, match="the peer does not speak Weft's wire"),
    ):
        session.take("numbers")

"""Tests the packet lines of the relay in isolation (WIRE-NETWORKS.md 17.18 to 17.21): two relays in
one program, with a server between them, and a third client that listens to everything and may send
anything.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import re
import ssl
import subprocess
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import nats
import pytest

from weft import net
from weft import threads as th
from weft._extension import native as _native
from weft._net import keys as _net_keys
from weft._net import relay as _net_relay
from weft._net import server as _net_server
from weft._net.relay import HIGH, PACKET, RELAY, WINDOW, Relay, Way
from weft.errors import BadUse

PLACES = ["a" * 64 + "." + "1" * 16, "b" * 64 + "." + "2" * 16]
HEARD = 300.0  # seconds after which a test that hangs fails


async def flushed(client: Any) -> None:
    """Waits until the server has received all messages. (The client's flush() alone may overtake
    messages that still wait to be sent, so that a subscription might not exist yet.)
    """
    while client.pending_data_size:
        await asyncio.sleep(0)
    await client.flush()


class Pair:
    """The relays of two programs, with a session between the programs, and a third client."""

    def __init__(self, url: str, keys: Path) -> None:
        self.url = url
        self.tls = [_net_keys.context(keys, server=s) for s in (False, True)]

    async def begin(self) -> None:
        self.came: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        async def came(*streams: Any) -> None:
            if not self.came.done():
                self.came.set_result(streams)

        self.clients = [await nats.connect(self.url, tls=self.tls[0]) for _ in range(3)]
        self.relays = [
            Relay(client, place, self.tls[1], came)
            for client, place in zip(self.clients, PLACES, strict=False)
        ]
        self.third = self.clients[2]
        for relay, client in zip(self.relays, self.clients, strict=False):
            await relay.begin()
            await flushed(client)

    async def session(self) -> tuple[Any, Any]:
        """Opens a session. Returns the streams of the program that requested the session, and those
        of the other program.
        """
        self.streams = await self.relays[0].open(PLACES[1], self.tls[0]), await self.came
        return self.streams

    @property
    def ways(self) -> list[Way]:
        return [next(iter(relay._ways.values())) for relay in self.relays]

    async def end(self) -> None:
        for relay in self.relays:
            await relay.end()
        for client in self.clients:
            await client.drain()


@pytest.fixture
def paired(server, keys) -> Callable[[Callable[[Pair], Coroutine[Any, Any, None]]], None]:
    """Runs a test over a pair."""

    def run(test: Callable[[Pair], Coroutine[Any, Any, None]]) -> None:
        async def all_of_it() -> None:
            pair = Pair(server.url, keys)
            await pair.begin()
            try:
                await asyncio.wait_for(test(pair), HEARD)
            finally:
                await pair.end()

        asyncio.run(all_of_it())

    return run


def dice() -> random.Random:
    seed = int(os.environ.get("WEFT_SEED", random.randrange(1 << 30)))
    print("seed", seed)
    return random.Random(seed)


async def poured(reader: Any, writer: Any, data: bytes) -> None:
    """Checks that the data can be sent, and arrives whole and in order."""

    async def pours() -> None:
        for at in range(0, len(data), 50_000):
            writer.write(data[at : at + 50_000])
            await writer.drain()

    sends = asyncio.ensure_future(pours())
    assert await reader.readexactly(len(data)) == data
    await sends


def test_both_ways_and_the_end(paired):  # wire 17.19
    async def test(pair: Pair) -> None:
        (r, w), (r2, w2) = await pair.session()
        data = dice().randbytes(3_000_000)
        await asyncio.gather(poured(r, w2, data), poured(r2, w, data[::-1]))
        assert [relay.sessions for relay in pair.relays] == [1, 1]
        w.write(b"last")
        w.close()
        assert await r2.read() == b"last"
        assert await r.read() == b""
        await w.wait_closed()
        await w2.wait_closed()
        assert [relay.sessions for relay in pair.relays] == [0, 0]

    paired(test)


# --- memory ---------------------------------------------------------------------------------------

# A number of bytes: two windows, and what waits on both sides.
MAX_UNDER_WAY = 2 * PACKET * WINDOW + 4 * HIGH + 10 * PACKET


def test_a_side_that_does_not_read_costs_a_bounded_memory(paired):  # wire 13.3, 17.20
    """The sender does not stop, and the reader reads only when the sender has had to wait. Never
    more bytes than the bound are between the two.
    """

    async def test(pair: Pair) -> None:
        (_, w), (r, _) = await pair.session()
        sender, receiver = pair.ways
        piece = bytes(range(256)) * 128
        sent = got = most = 0

        async def pours() -> None:
            nonlocal sent
            while sent < 12 * len(piece) * 32:
                w.write(piece)
                sent += len(piece)
                await w.drain()

        pouring = asyncio.ensure_future(pours())
        stood = 0
        while got < 12 * len(piece) * 32:
            while not pouring.done() and not (sender.full and receiver._holds):
                await asyncio.sleep(0.001)
            stood += not pouring.done()
            most = max(most, sent - got)
            assert sent - got <= MAX_UNDER_WAY
            for _ in range(8):
                assert await r.readexactly(len(piece)) == piece
                got += len(piece)
        await pouring
        assert stood > 10
        assert most > PACKET * WINDOW

    paired(test)


def test_what_the_connection_does_not_take_does_not_wait_twice(paired):  # wire 17.20
    """While the client waits for the server's connection, packets that are sent again are not
    queued behind the unsent packets.
    """

    async def test(pair: Pair) -> None:
        (_, w), (r, _) = await pair.session()
        relay, way = pair.relays[0], pair.ways[0]
        gate = asyncio.Event()
        publish, waiting = relay._client.publish, 0

        async def slow(subject: str, data: bytes) -> None:
            nonlocal waiting
            waiting += 1
            await gate.wait()
            await publish(subject, data)

        relay._client.publish = slow
        data = dice().randbytes(1_000_000)
        w.write(data)
        while way._sending < PACKET * WINDOW:
            await asyncio.sleep(0.001)
        now = way._now()
        for later in range(0, 10_000, 100):  # the packets would be sent again many times
            way._line.passed(now + later)
            way._pump()
        assert waiting == 1
        assert sum(len(d) for _, d in relay._out) < 2 * PACKET * WINDOW
        gate.set()
        assert await r.readexactly(len(data)) == data

    paired(test)


# --- a third client that sends whatever it likes --------------------------------------------------


async def overheard(pair: Pair) -> list[Any]:
    """Returns a list that collects the messages that are sent from now on, as the server and a
    client that may listen to everything see them.
    """
    seen: list[Any] = []

    async def note(message: Any) -> None:
        seen.append((message.subject, message.data))

    await pair.third.subscribe(f"{RELAY}.>", cb=note)
    await flushed(pair.third)
    return seen


def test_rubbish_and_repeats_change_nothing(paired):  # wire 17.18, 17.19
    async def test(pair: Pair) -> None:
        chance = dice()
        seen = await overheard(pair)
        (r, w), (r2, w2) = await pair.session()
        data = chance.randbytes(600_000)

        async def disturbs() -> None:
            for i in range(400):
                subject, data = chance.choice(list(seen)) if seen else ("", b"")
                if not data or subject.endswith(".meet") or "_INBOX" in subject:
                    continue
                if i % 3 == 0:
                    data = chance.randbytes(chance.randrange(1, 300)) + b"\0"
                elif i % 3 == 1:
                    spoilt = bytearray(data)
                    spoilt[chance.randrange(len(spoilt))] ^= 1 << chance.randrange(8)
                    data = bytes(spoilt)
                await pair.third.publish(subject, data)
                await asyncio.sleep(0)

        await asyncio.gather(disturbs(), poured(r, w2, data), poured(r2, w, data[::-1]))
        w.write(b"still here")
        assert await r2.readexactly(10) == b"still here"

    paired(test)


MEETS = [
    b"",
    b"{",
    b"[]",
    b"7",
    b'{"session": 1, "from": 2}',
    b'{"session": []}',
    json.dumps({"session": "x" * 32, "from": PLACES[0]}).encode(),
    json.dumps({"session": "a" * 32, "from": "here"}).encode(),
    json.dumps({"session": "a" * 32, "from": PLACES[0] + ".>"}).encode(),
    b"[" * 2000,
    b"\xff" * 40,
]


def test_rubbish_that_asks_for_a_session(paired):  # wire 17.18
    """Rubbish is refused, and the next program gets a session."""

    async def test(pair: Pair) -> None:
        for request in MEETS:
            # This message asks for no answer.
            await pair.third.publish(f"{RELAY}.{PLACES[1]}.meet", request)
            answer = await pair.third.request(f"{RELAY}.{PLACES[1]}.meet", request, HEARD)
            assert json.loads(answer.data) == {
                "refused": "the request does not say its session and where it comes from"
            }
        assert not pair.relays[1]._ways
        (_, w), (r, _) = await pair.session()
        w.write(b"hello")
        assert await r.readexactly(5) == b"hello"

    paired(test)


def test_so_many_at_once(paired, monkeypatch):  # wire 17.18
    """If there are more hand-shakes at the same time than a program allows, the surplus is refused;
    requesting the same hand-shake again changes nothing.
    """
    monkeypatch.setattr(_net_relay, "MAX_HANDSHAKES", 3)

    async def test(pair: Pair) -> None:
        subject, answers = f"{RELAY}.{PLACES[1]}.meet", []
        for i in (0, 1, 1, 2, 0, 3, 2):
            asks = {"session": f"{i:032x}", "from": PLACES[0]}
            answer = await pair.third.request(subject, json.dumps(asks).encode(), HEARD)
            answers.append(json.loads(answer.data).get("refused"))
        assert answers == [None] * 5 + ["too many ask at once: try again", None]
        with pytest.raises(ConnectionRefusedError, match="too many ask at once"):
            await pair.session()

    paired(test)


def test_a_message_of_no_bytes_ends_it_and_what_had_come_is_read_first(paired):  # wire 17.19
    async def test(pair: Pair) -> None:
        (_, w), (r, w2) = await pair.session()
        way = pair.ways[1]
        w.write(b"before")
        while not r._buffer:  # the bytes have arrived, and have not been read
            await asyncio.sleep(0.001)
        await pair.third.publish(pair.ways[0].there, b"")
        await w2.wait_closed()
        assert way.is_closing()
        assert await r.read() == b"before"

    paired(test)


def test_a_side_that_closes_tls_alone_has_sent_all(paired):  # wire 17.21
    async def test(pair: Pair) -> None:
        (_, w), (r, _) = await pair.session()
        way = pair.ways[0]
        w.write(b"last")
        with contextlib.suppress(ssl.SSLError):  # unwrap() waits for the other side to close too
            way._tls.unwrap()
        way._send()
        way._pump()
        assert await r.read() == b"last"

    paired(test)


@pytest.mark.parametrize("where", [0, 1])
def test_what_somebody_changed_is_not_read(paired, where):  # wire 17.21
    """The third client knows the checksums of the packets, but not the keys of TLS: the session
    ends at both sides."""

    async def test(pair: Pair) -> None:
        (r, w), (r2, w2) = await pair.session()
        w.write(b"x")
        assert await r2.readexactly(1) == b"x"
        w2.write(b"x")
        assert await r.readexactly(1) == b"x"
        way, (read, write) = pair.ways[where], [(r, w2), (r2, w)][where]

        class Changes:
            def __init__(self, line: Any) -> None:
                self.line = line

            def input(self, now: int, data: bytes) -> bytes:
                got = bytearray(self.line.input(now, data))
                if got:
                    got[-1] ^= 1
                return bytes(got)

            def __getattr__(self, name: str) -> Any:
                return getattr(self.line, name)

        way._line = Changes(way._line)
        write.write(b"secret")
        with pytest.raises(ssl.SSLError):
            await read.read(1)
        other = [r2, r][where]
        with pytest.raises(ssl.SSLError):
            await other.read(1)

    paired(test)


def test_nothing_of_what_is_said_stands_in_a_message(paired):  # wire 17.21
    async def test(pair: Pair) -> None:
        seen = await overheard(pair)
        (_, w), (r, _) = await pair.session()
        w.write(b"a secret of theirs" * 10)
        await r.readexactly(180)
        await flushed(pair.third)
        assert len(seen) > 4
        assert not any(b"secret" in data for _, data in seen)
        assert {s.rpartition(".")[0] for s, _ in seen} == {f"{RELAY}.{p}" for p in PLACES}

    paired(test)


def test_nobody_there(paired, monkeypatch):
    monkeypatch.setattr(_net_relay, "BACK", 0.0)

    async def test(pair: Pair) -> None:
        with pytest.raises(TimeoutError, match=r"nobody listens there.*weft\.relay"):
            await pair.relays[0].open("c" * 64 + "." + "3" * 16, pair.tls[0])
        for place in ("", ">", "c" * 64, PLACES[1] + ".x", "C" * 64 + "." + "3" * 16):
            with pytest.raises(ConnectionError, match="does not say where it can be reached"):
                await pair.relays[0].open(place, pair.tls[0])
        assert not pair.relays[0]._ways

    paired(test)


def test_a_program_that_answers_and_then_says_nothing(paired, monkeypatch):
    monkeypatch.setattr(_net_relay, "MEET", 0.3)

    async def test(pair: Pair) -> None:
        place = "c" * 64 + "." + "3" * 16

        async def agrees(message: Any) -> None:
            if message.reply:
                await message.respond(b"{}")

        await pair.third.subscribe(f"{RELAY}.{place}.*", cb=agrees)
        await flushed(pair.third)
        with pytest.raises(TimeoutError, match=r"says nothing|no hand-shake"):
            await pair.relays[0].open(place, pair.tls[0])

    paired(test)


@pytest.mark.parametrize(
    "wrong", [(0, 1, 1, 1, 1, 1), (1, 0, 1, 1, 1, 1), (1, 1, 1 << 20, 1, 1, 1), (1, 1, 1, 1, 1, 0)]
)
def test_no_line(wrong):
    with pytest.raises(BadUse, match="_Line: the token"):
        _native._Line(*wrong)


# --- permissions ----------------------------------------------------------------------------------


@contextlib.contextmanager
def permitting(server: Any, folder: Path, fingerprints: dict[str, str]) -> Iterator[str]:
    """Runs, in place of `server`, a server that recognises clients by their certificates, and gives
    each the permissions that the page lists.
    """
    settings = json.loads((folder / "server.conf").read_text())
    settings["tls"] = settings["tls"] | {"verify_and_map": True}
    del settings["tls"]["verify"]  # the server reads the two settings in any order
    publish = ["$JS.API.>", "$KV.weft_names.>", f"{RELAY}.>", "_INBOX.>"]
    settings["authorization"] = {
        "users": [
            {
                "user": f"CN={name}",
                "permissions": {
                    "publish": publish,
                    "subscribe": ["_INBOX.>", f"{RELAY}.{fingerprint}.>"],
                },
            }
            for name, fingerprint in fingerprints.items()
        ]
    }
    (folder / "server.conf").write_text(json.dumps(settings))
    server.stop()
    command = [_net_server.found()[0], "-c", folder / "server.conf"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            log = []
            for line in process.stderr:
                log.append(line)
                if match := re.search(r"Listening for client connections on (\S+)", line):
                    url = f"tls://{match[1]}"
                if "Server is ready" in line:
                    break
            else:
                raise AssertionError("".join(log))
            yield url
        finally:
            process.terminate()
            print(process.stderr.read())


def test_each_may_listen_at_its_own_subjects_alone(server, keys, tmp_path, program):  # wire 17.18
    folders = [
        net.make_keys(tmp_path / name, by=keys, name=name, offers=["c"])
        for name in ("one", "two", "bad")
    ]
    prints = {folder.name: _net_keys.Keys(folder).fingerprint for folder in folders}
    with (
        permitting(server, tmp_path / "server", prints) as url,
        net.join(url, keys=folders[0], relay="only") as network,
    ):
        c = th.Channel("c")
        r = c.reader()
        network.offer("c", c, writers=True)
        refused: list[str] = []

        async def listens_to_others() -> Any:
            async def told(error: Exception) -> None:
                refused.append(str(error))

            client = await nats.connect(
                url, tls=_net_keys.context(folders[2], server=False), error_cb=told
            )
            heard: list[Any] = []

            async def note(message: Any) -> None:
                heard.append(message)

            for subject in (">", f"{RELAY}.>", f"{RELAY}.{prints['one']}.>", f"{RELAY}.*.*.*"):
                await client.subscribe(subject, cb=note)
            await flushed(client)
            while len(refused) < 4:
                await asyncio.sleep(0.01)
            return client, heard

        async def all_of_it() -> None:
            client, heard = await listens_to_others()
            p = program("names_writer", url, folders[1], "c", 20)
            got = [await asyncio.to_thread(r.read) for _ in range(20)]
            assert got == list(range(20))
            assert await asyncio.to_thread(p.next_report) == "written"
            await flushed(client)
            assert heard == []
            assert all("permissions violation" in each.lower() for each in refused)
            await client.close()

        asyncio.run(asyncio.wait_for(all_of_it(), HEARD))

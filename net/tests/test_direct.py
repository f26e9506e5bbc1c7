"""Tests that a thread that waits for another program has sent its own bytes, and that the loop
carries all other bytes (WIRE-LINKS.md 12.2: the carrier of the bytes is the link).
"""

from __future__ import annotations

import random
import signal
import socket
import threading
import zlib
from typing import Any

import pytest

from weft import net
from weft import threads as th
from weft._net import link as _net_link
from weft._net import tls as _net_tls
from weft.errors import PeerDied

SEED = 29


@pytest.fixture
def pumps(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A list that gets an item each time that the loop checks for bytes to send."""
    found: list[Any] = []
    pump = _net_link._Out.pump

    def noted(self: Any) -> None:
        found.append(self)
        pump(self)

    monkeypatch.setattr(_net_link._Out, "pump", noted)
    return found


def test_a_read_wakes_no_loop_to_ask_for_it(keys, program, pumps):  # wire 12.2
    values = list(range(300))
    with net.listen(keys=keys) as door:
        program("gives", door.address, keys)
        with door.next() as session:
            squares, numbers = session.take("squares"), session.take("numbers")
            for n in values:
                numbers.write(n)
                assert squares.read() == n * n
            # Each write and each read sends something, so there were twice as many messages as
            # values.
            assert len(pumps) < len(values)
            numbers.retire()


class RecordingFeed:
    """A feed that records the calls of its methods. `rest` is called once more bytes have been
    requested from the feed."""

    def __init__(self, feed: Any) -> None:
        self._feed = feed
        self.kept = threading.Event()

    def rest(self) -> bytes | None:
        rest: bytes | None = self._feed.rest()
        if rest is not None:
            self.kept.set()
        return rest

    def __getattr__(self, name: str) -> Any:
        return getattr(self._feed, name)


def test_what_the_socket_does_not_take_is_the_loops(
    server, keys, program, transports
):  # wire 12.1, 12.2
    capacity, n = 64, 60
    p = program("reads_with_checksums", server.url, keys, "c", capacity)
    assert p.next_report() == "offered"
    dice = random.Random(SEED)
    with net.join(server.url, keys=keys, relay="never") as network:
        end = network.writer("c")
        (way,) = transports
        way.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)
        end.write([b"", zlib.crc32(b"")])
        assert p.next_report() == "the first"
        feed = way._feed = RecordingFeed(way._feed)

        def writes() -> None:
            for _ in range(n):
                data = dice.randbytes(15_000)
                end.write([data, zlib.crc32(data)])

        p.process.send_signal(signal.SIGSTOP)
        writer = threading.Thread(target=writes)
        writer.start()
        kept = feed.kept.wait(300)
        p.process.send_signal(signal.SIGCONT)
        writer.join()
        assert kept
        end.retire()
    assert p.next_report() == [1 + n, 0, "Retired"]


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Counts how often incoming bytes were consumed before the loop's steps, wholly or in part, and
    how often the loop consumed them.
    """
    found = {"whole": 0, "part": 0, "loop": 0}
    turn, heard = _net_tls._OverTcp._turn, _net_tls._OverTcp.buffer_updated
    inner = _net_tls._OverTcp._read

    def turned(self: Any) -> bool:
        done = turn(self)
        found["whole"] += done
        return done

    def read(self: Any) -> None:
        found["part"] += 1
        inner(self)

    def updated(self: Any, n: int) -> None:
        found["loop"] += 1
        heard(self, n)

    monkeypatch.setattr(_net_tls._OverTcp, "_turn", turned)
    monkeypatch.setattr(_net_tls._OverTcp, "_read", read)
    monkeypatch.setattr(_net_tls._OverTcp, "buffer_updated", updated)
    return found


class FailingFeed(RecordingFeed):
    def turn(self) -> Any:
        raise MemoryError("of the test")


def test_what_one_connection_raises_ends_that_one_alone(
    keys, program, transports
):  # wire 12.1, 17.2
    """An exception that is raised before the loop's steps would have ended the loop, with all
    sessions of the program.
    """
    with net.listen(keys=keys) as door:
        ends = []
        for _ in range(2):
            program("gives", door.address, keys)
            session = door.next()
            ends.append((session, session.take("squares"), session.take("numbers")))
        (first, squares, numbers), (second, others, more) = ends
        with first, second:
            transports[0]._feed = FailingFeed(transports[0]._feed)
            with pytest.raises(PeerDied):
                for n in range(1000):
                    numbers.write(n)
                    squares.read()
            more.write(4)
            assert others.read() == 16
            more.retire()


def test_what_has_come_takes_no_steps_of_the_loop(keys, program, steps):  # wire 12.2
    values = list(range(300))
    with net.listen(keys=keys) as door:
        program("gives", door.address, keys)
        with door.next() as session:
            squares, numbers = session.take("squares"), session.take("numbers")
            for n in values:
                numbers.write(n)
                assert squares.read() == n * n
            numbers.retire()
    assert steps["whole"] > len(values) > steps["loop"]


def test_what_comes_in_parts_goes_on_in_the_loop(keys, program, steps):  # wire 12.2, 17.13
    """Small values alternate with values of many pieces. Each arrives whole, and in its place."""
    print(f"seed {SEED}")
    dice = random.Random(SEED)
    with net.listen(keys=keys) as door:
        program("echoes", door.address, keys)
        with door.next() as session:
            values, back = th.Channel("values", capacity=8), th.Channel("back", capacity=8)
            out, heard = values.writer(), back.reader()
            session.give("values", values.reader())
            session.give("back", back.writer())
            sent = [dice.randbytes(dice.choice((0, 10, 3000, 70_000, 400_000))) for _ in range(120)]
            writes = threading.Thread(target=lambda: [out.write(data) for data in sent])
            writes.start()
            assert [heard.read() for _ in sent] == sent
            writes.join()
            out.retire()
    assert steps["whole"] > 0 and steps["part"] > 0 and steps["loop"] > 0

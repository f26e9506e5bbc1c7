"""Tests that the memory that a sender uses for a stopped receiver is bounded (WIRE-NETWORKS.md
17.20).

With WEFT_STOPPED=n the receiver is stopped for n seconds, otherwise until the system accepts no
more of the sender's bytes.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from weft import net
from weft._net import link as _net_link
from weft.errors import PeerDied

SECONDS = float(os.environ.get("WEFT_STOPPED", "0"))
SIZE, CAPACITY, WRITERS, EACH = 1_000_000, 8, 8, 6
SEED = 23


class Writes(threading.Thread):
    """A thread that writes values with checksums, by an end of its own."""

    def __init__(self, end: Any, seed: int) -> None:
        super().__init__()
        self.end, self.dice = end, random.Random(seed)
        self.done = 0
        self.died = False
        self.start()

    def run(self) -> None:
        try:
            for _ in range(EACH):
                data = self.dice.randbytes(SIZE)
                self.end.write([data, zlib.crc32(data)])
                self.done += 1
        except PeerDied:
            self.died = True


@pytest.mark.parametrize("relay", ["never", "only"])
def test_its_sender_keeps_no_more_than_was_under_way(
    server, keys, program: Callable[..., Any], transports, relay
):  # wire 14.3, 17.20
    """Eight threads write to a buffer of eight values. Between them and the stopped receiver there
    are at most one value of each thread, the values that the buffer holds, and some pieces.
    """
    p = program("reads_with_checksums", server.url, keys, "c", CAPACITY)
    assert p.next_report() == "offered"
    with net.join(server.url, keys=keys, relay=relay) as network:
        end = network.writer("c")
        (session,) = network._sessions
        (transport,) = transports
        end.write([b"", zlib.crc32(b"")])
        assert p.next_report() == "the first"
        p.process.send_signal(signal.SIGSTOP)
        writers = [Writes(end, SEED + i) for i in range(WRITERS)]
        queued = waits = 0

        def look() -> None:
            nonlocal queued, waits
            queued = max(queued, session._link.queued())
            waits = max(waits, transport.get_write_buffer_size())

        try:
            while not (queued > SIZE and waits > 0):  # no receiver takes values any more
                look()
            over = threading.Event()
            if SECONDS:
                threading.Timer(SECONDS, over.set).start()
                while not over.wait(0.1) and not session._carried.done():
                    look()
            done = sum(w.done for w in writers)
        finally:
            p.process.send_signal(signal.SIGCONT)
        for w in writers:
            w.join()
        print(f"queued {queued}, in the connection {waits}, {done} written meanwhile")
        assert done <= CAPACITY + 1
        assert queued <= (CAPACITY + WRITERS + 1) * (SIZE + 1000)
        assert waits <= 4 * _net_link.LARGEST
        if not SECONDS:
            assert not any(w.died for w in writers)
        end.retire()
    n, spoilt, how = p.next_report()
    assert spoilt == 0
    if not SECONDS:  # after 20 s the session has ended (17.7)
        assert (n, how) == (1 + WRITERS * EACH, "Retired")

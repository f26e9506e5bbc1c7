"""Tests the transports of the channels of weft.processes: shared memory where it is available, else
sockets (wire 12.4, 7.5).
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import os_process_targets as targets
import pytest
from test_processes import nobody_is_left  # noqa: F401 – a fixture

import weft.coroutines as co
import weft.threads as th
from weft._extension import native
from weft._hosts import host as _host
from weft.processes import BadUse, Channel, Hosts, process, run

linux = pytest.mark.skipif(
    sys.platform != "linux" or not getattr(sys, "_is_gil_enabled", lambda: True)(),
    reason="links in shared memory are for Linux, and for interpreters with a GIL",
)


@pytest.fixture(params=["memory", "sockets"])
def over(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "sockets":
        monkeypatch.setattr(_host, "_over_memory", lambda ours: None)
    return str(request.param)


def segments() -> int:
    return Path("/proc/self/maps").read_text().count("memfd:weft")


@linux
def test_they_are_in_shared_memory_and_gone_with_the_hosts(over: str) -> None:
    before = segments()
    with Hosts(2) as hosts:
        theirs = run(targets.segments.on(hosts[0])())
        assert (segments() > before) == (theirs > 0) == (over == "memory")
    assert segments() == before


@th.process
def asks(w: Any, r: Any, n: int) -> int:
    for i in range(n):
        w.write(i)
        assert r.read() == i
    w.retire()
    return n


def test_many_threads_of_one_program_and_two_hosts_and_one_that_never_lets_go_of_the_lock(
    over: str,
) -> None:
    """Values arrive although the thread that serves the links needs the interpreter's lock for a
    moment, while other threads hold that lock.
    """
    stop = threading.Event()

    def busy() -> None:
        while not stop.is_set():
            sum(range(100))

    hog = threading.Thread(target=busy)
    hog.start()
    try:
        with Hosts(2) as hosts:
            network = []
            for i in range(6):
                outward, back = Channel(f"there{i}"), Channel(f"back{i}")
                network += [
                    targets.echo.on(hosts[i % 2])(+outward, -back),
                    asks(-outward, +back, 100),
                ]
            assert run(*network)[1::2] == [100] * 6
    finally:
        stop.set()
        hog.join()


def test_hosts_that_were_introduced_to_each_other_send_arrays(over: str) -> None:
    """Two hosts send arrays to each other; each value has its own descriptor (WIRE.md 9.2)."""
    pytest.importorskip("numpy")
    numbers, sums = Channel("numbers"), Channel("sums")

    @th.process
    def reads(r: Any) -> list[int]:
        return [int(x) for x in r]

    with Hosts(2) as hosts:
        *_, got = run(
            targets.arrays.on(hosts[0])(-numbers, 20, 30_000),
            targets.sums_and_scribbles.on(hosts[1])(+numbers, -sums),
            reads(+sums),
        )
    assert got == [30_000 * i for i in range(20)]


def test_coroutines_and_a_host(over: str) -> None:
    @co.process
    async def asks_async(w: Any, r: Any) -> int:
        for i in range(50):
            await w.write(i)
            assert await r.read() == i
        w.retire()
        return i

    outward, back = Channel("there"), Channel("back")
    with Hosts(1) as hosts:
        assert (
            co.run(targets.echo.on(hosts[0])(+outward, -back), asks_async(-outward, +back))[1] == 49
        )


@linux
def test_there_are_only_so_many_in_shared_memory_and_then_sockets() -> None:
    links, peers = [], []
    try:
        with pytest.raises(BadUse, match="no more links in shared memory"):
            for _ in range(100):
                ours, theirs = socket.socketpair()
                peers.append(theirs)
                links.append(native._Link(ours.detach(), "us", True))
        assert len(links) == 24
        with Hosts(1) as hosts:
            assert run(targets.who.on(hosts)()) == hosts.pids[0]
    finally:
        for link in links:
            link.close()
        for peer in peers:
            peer.close()


@linux
def test_a_descriptor_that_is_no_unix_socket_is_refused(tmp_path: Path) -> None:
    for fd in (os.open(tmp_path, os.O_RDONLY), socket.socket().detach()):
        with pytest.raises(BadUse, match="not of a Unix socket"):
            native._Link(fd, "us", True)
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(fd)


@th.process
def writes(out: Any, value: Any) -> None:
    out.write(value)


BARE = """
import sys
from weft._extension import native
link = native._Link(int(sys.argv[1]), "bare")
print(link.take("values").read())
"""


def test_a_link_that_is_made_first_of_all_knows_how_values_go() -> None:
    ours, theirs = socket.socketpair()
    link = native._Link(ours.detach(), "us")
    c = Channel("values")
    writer = c.writer()
    link.give(c.reader(), "values")
    bare = subprocess.Popen(
        [sys.executable, "-c", BARE, str(theirs.fileno())],
        pass_fds=[theirs.fileno()],
        stdout=subprocess.PIPE,
        text=True,
    )
    theirs.close()
    th.run(writes(writer, {"a": (1, b"two")}))
    out, _ = bare.communicate()
    link.close()
    assert (bare.returncode, out) == (0, "{'a': (1, b'two')}\n")


def test_a_plain_process_talks_to_a_thread(over: str) -> None:
    outward, back = Channel("there"), Channel("back")
    assert run(targets.echo(+outward, -back), asks(-outward, +back, 50))[1] == 50


def sleeps_of_others() -> int:
    """Returns how often the other threads of this program went to sleep."""
    tasks = Path("/proc/self/task").iterdir()
    status = [(t / "status").read_text() for t in tasks if int(t.name) != threading.get_native_id()]
    return sum(int(s.split("\nvoluntary_ctxt_switches:")[1].split()[0]) for s in status)


@process
def echo_alone(inp: Any, out: Any, first: int) -> None:
    """Echoes values. At the end writes how often the other threads of this OS process have slept
    since the value `first`.
    """
    before = 0
    for v in inp:
        if v == first:
            before = sleeps_of_others()
        out.write(v)
        if v < 0:
            out.write(sleeps_of_others() - before)
            return


@linux
def test_a_thread_that_waits_for_a_value_takes_it_from_the_link_itself() -> None:
    """While the reader takes values from the link itself, the threads that wait for requests and
    the link's own thread sleep (WIRE-LINKS.md 12.4)."""
    first, times = 50, 400

    @th.process
    def asks_and_hears(w: Any, r: Any) -> int:
        for i in (*range(first + times), -1):
            w.write(i)
            assert r.read() == i
        return int(r.read())

    outward, back = Channel("there"), Channel("back")
    network = echo_alone(+outward, -back, first), asks_and_hears(-outward, +back)
    assert run(*network)[1] < times / 2

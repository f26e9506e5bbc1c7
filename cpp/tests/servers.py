"""Tests the example servers, with clients that are sockets of Python.

    servers.py FOLDER       the folder has the programs echo and chat; last line `N passed, N failed`

No client waits for a time: each reads the data that must come.
"""

from __future__ import annotations

import contextlib
import pathlib
import random
import signal
import socket
import struct
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator

WAIT = 280  # seconds; only a hang takes so long


@contextlib.contextmanager
def server(
    program: pathlib.Path, told: bool = False
) -> Iterator[tuple[subprocess.Popen[str], tuple[str, int]]]:
    """Runs the server at a port of its own. Finally the server is asked to end (with `told` the
    test has asked already), and must end with the status 0.
    """
    with subprocess.Popen([program, "127.0.0.1:0"], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            host, _, port = process.stdout.readline().removeprefix("listening at ").rpartition(":")
            yield process, (host, int(port))
            if not told:
                process.send_signal(signal.SIGTERM)
            assert process.wait(WAIT) == 0
        finally:
            process.kill()


def dial(at: tuple[str, int]) -> socket.socket:
    return socket.create_connection(at, timeout=WAIT)


def read(s: socket.socket, n: int) -> bytes:
    """Returns the next n bytes; fewer at the end of the stream."""
    got = b""
    while len(got) < n and (more := s.recv(n - len(got))):
        got += more
    return got


def reset(s: socket.socket) -> None:
    """Closes the connection so that the server gets ECONNRESET."""
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()


def echo_of_many(folder: pathlib.Path) -> None:
    """With 200 clients at once, of which some vanish and some reset, all other clients receive all
    of their data."""
    numbers = random.Random(1)
    with server(folder / "echo") as (_, at):
        clients = [dial(at) for _ in range(200)]
        sent = [numbers.randbytes(numbers.randrange(1, 3000)) for _ in clients]
        for c, what in zip(clients, sent, strict=True):
            c.sendall(what)
        for i, c in enumerate(clients):
            if i % 5 == 0:
                reset(c)
            elif i % 7 == 0:
                c.close()
        for i, (c, what) in enumerate(zip(clients, sent, strict=True)):
            if i % 5 and i % 7:
                c.shutdown(socket.SHUT_WR)
                assert read(c, len(what) + 1) == what, i
                c.close()


def echo_drains(folder: pathlib.Path) -> None:
    """After SIGTERM the server accepts no client, and serves those that it has accepted to their
    end."""
    with server(folder / "echo", told=True) as (process, at):
        client = dial(at)
        client.sendall(b"one")
        assert read(client, 3) == b"one"
        process.send_signal(signal.SIGTERM)
        assert process.stdout and process.stdout.readline() == "no more clients\n"
        with contextlib.suppress(ConnectionRefusedError, ConnectionResetError):
            dial(at).close()
            raise AssertionError("the server has accepted another client")
        client.sendall(b"two")
        assert read(client, 3) == b"two"
        client.close()
        assert process.stdout.readline() == "drained\n"


def enter(at: tuple[str, int], number: int) -> socket.socket:
    """Joins the chat as the client with this number."""
    s = dial(at)
    welcome = f"you are {number}\n".encode()
    assert read(s, len(welcome)) == welcome
    return s


def chat_of_three(folder: pathlib.Path) -> None:
    """A line goes to all other clients, whichever client vanishes; a client that has left is
    forgotten."""
    with server(folder / "chat") as (_, at):
        one, two, gone = (enter(at, n) for n in (1, 2, 3))
        one.sendall(b"are you there?\n")
        assert read(two, 18) == b"1: are you there?\n"
        assert read(gone, 18) == b"1: are you there?\n"
        reset(gone)
        two.sendall(b"yes\nin tw")
        two.sendall(b"o parts\n")
        both = b"2: yes\n2: in two parts\n"
        assert read(one, len(both)) == both
        one.close()
        two.close()


def chat_with_a_slow_client(folder: pathlib.Path) -> None:
    """A client that reads nothing misses lines, and the other clients receive all of their
    lines."""
    with server(folder / "chat") as (_, at):
        slow, talks, hears = (enter(at, n) for n in (1, 2, 3))
        slow.sendall(b"here\n")
        assert read(talks, 8) == read(hears, 8) == b"1: here\n"
        line = b"x" * 900 + b"\n"
        for _ in range(10_000):  # 9 MB: more than the system buffers for `slow`
            talks.sendall(line)
            assert read(hears, len(line) + 3) == b"2: " + line
        for s in (slow, talks, hears):
            s.close()


def bad_addresses(folder: pathlib.Path) -> None:
    """A server that is given no address in numbers says what to write, and ends."""
    for name in ("echo", "chat"):
        for bad in ("0", "localhost:1"):
            ran = subprocess.run(
                [folder / name, bad], capture_output=True, text=True, timeout=WAIT, check=False
            )
            assert ran.returncode == 2, ran
            assert "write 127.0.0.1:8080" in ran.stderr, ran


TESTS: list[Callable[[pathlib.Path], None]] = [
    echo_of_many, echo_drains, chat_of_three, chat_with_a_slow_client, bad_addresses,
]  # fmt: skip


def main() -> int:
    failed = 0
    for test in TESTS:
        try:
            test(pathlib.Path(sys.argv[1]))
        except Exception:
            failed += 1
            print(f"FAIL {test.__name__}")
            traceback.print_exc(file=sys.stdout)
    print(f"{len(TESTS) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

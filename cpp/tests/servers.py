"""Tests the example servers, with clients that are sockets of Python.

    servers.py FOLDER       the folder has the programs echo, chat and http; last line `N passed, N failed`

No client sleeps: each client reads the data that must come.
"""

from __future__ import annotations

import contextlib
import http.client
import pathlib
import random
import shutil
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
    program: pathlib.Path, *more: str, told: bool = False
) -> Iterator[tuple[subprocess.Popen[str], tuple[str, int]]]:
    """Runs the server at a port of its own. Finally sends the server SIGTERM (with `told` the test
    has done so already); the server must end with the status 0.
    """
    command = [program, "127.0.0.1:0", *more]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
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
    """With 200 clients at the same time, of which some vanish and some reset, all other clients
    receive all of their data."""
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
    """After SIGTERM the server accepts no client, but serves the clients that it has accepted until
    they leave."""
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


def answer(s: socket.socket, method: str = "GET") -> tuple[http.client.HTTPResponse, bytes]:
    """Reads one answer, as Python's client does."""
    r = http.client.HTTPResponse(s, method=method)
    r.begin()
    return r, r.read()


def http_by_clients(folder: pathlib.Path) -> None:
    """Python's client and curl get what they ask for; a connection serves several requests."""
    with server(folder / "http") as (_, at):
        c = http.client.HTTPConnection(*at, timeout=WAIT)
        mine = None
        for method, target, body, status, text in (
            ("GET", "/", None, 200, b"hello from Weft\n"),
            ("HEAD", "/", None, 200, b""),
            ("POST", "/echo", b"x" * 60_000, 200, b"x" * 60_000),
            ("POST", "/echo", b"", 200, b""),
            ("GET", "/echo", None, 405, b"only POST\n"),
            ("GET", "/nowhere", None, 404, b"nothing is there\n"),
            ("BREW", "/", None, 501, b"no such method\n"),
        ):
            c.request(method, target, body)
            r = c.getresponse()
            assert (r.status, r.read()) == (status, text), (method, target)
            assert r.getheader("Content-Length") == str(len(text) if method != "HEAD" else 16)
            mine = mine or c.sock
            assert c.sock is mine  # the connection was kept
        c.close()
        if curl := shutil.which("curl"):
            url = f"http://{at[0]}:{at[1]}"
            for extra, text in (
                ([url + "/", url + "/"], b"hello from Weft\n" * 2),
                (["--http1.0", url + "/"], b"hello from Weft\n"),
                (["-H", "Expect: 100-continue", "-d", "a=1&b=2", url + "/echo"], b"a=1&b=2"),
            ):
                ran = subprocess.run([curl, "-sS", *extra], capture_output=True, check=True)
                assert ran.stdout == text, ran


def http_in_pieces(folder: pathlib.Path) -> None:
    """The server answers a request however it is cut into pieces. A client may send requests before
    it has read the answers to earlier ones."""
    one = b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
    with server(folder / "http") as (_, at):
        s = dial(at)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for cut in range(1, len(one)):
            s.sendall(one[:cut])
            s.sendall(one[cut:])
            assert answer(s)[1] == b"abc", cut
        s.sendall(one * 50)
        whole = b""
        while whole.count(b"\r\n\r\nabc") < 50:
            more = s.recv(65536)
            assert more, "the connection has ended"
            whole += more
        s.sendall(b"GET / HTTP/1.0\r\n\r\n")
        r, text = answer(s)
        assert (text, r.getheader("Connection")) == (b"hello from Weft\n", "close")
        assert read(s, 1) == b""
        s.close()


def http_refuses(folder: pathlib.Path) -> None:
    """If the bytes are not a request, or are too many, the server sends the right status and ends
    the connection. It goes on serving all other clients."""
    host = b"Host: x\r\n"
    with server(folder / "http") as (_, at):
        for status, bad in (
            (400, b"\0\1\2\r\n\r\n"),
            (400, b"GET\r\n\r\n"),
            (400, b"GET / \r\n\r\n"),
            (400, b"GET  / HTTP/1.1\r\n" + host + b"\r\n"),
            (400, b"G(T / HTTP/1.1\r\n" + host + b"\r\n"),
            (400, b"GET /a\tb\x01 HTTP/1.1\r\n" + host + b"\r\n"),
            (400, b"GET / HTTP/1.1\r\n\r\n"),
            (400, b"GET / HTTP/1.1\r\n" + host + host + b"\r\n"),
            (400, b"GET / HTTP/1.1\r\n" + host + b"no colon\r\n\r\n"),
            (400, b"GET / HTTP/1.1\r\n" + host + b"name : value\r\n\r\n"),
            (400, b"GET / HTTP/1.1\r\n" + host + b"a: b\r\n c\r\n\r\n"),
            (400, b"GET / HTTP/1.1\r\n" + host + b"a: b\rc\r\n\r\n"),
            (400, b"POST / HTTP/1.1\r\n" + host + b"Content-Length: -1\r\n\r\n"),
            (400, b"POST / HTTP/1.1\r\n" + host + b"Content-Length: \r\n\r\n"),
            (400, b"POST / HTTP/1.1\r\n" + host + b"Content-Length: 1\r\n" * 2 + b"\r\n"),
            (400, b"POST / HTTP/1.1\r\n" + host + b"Content-Length: 1\r\n"
                  b"Transfer-Encoding: chunked\r\n\r\n"),
            (411, b"POST / HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\n"),
            (413, b"POST / HTTP/1.1\r\n" + host + b"Content-Length: 65537\r\n\r\n"),
            (413, b"POST / HTTP/1.1\r\n" + host + b"Content-Length: " + b"9" * 40 + b"\r\n\r\n"),
            (431, b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n" + host + b"\r\n"),
            (431, b"GET / HTTP/1.1\r\n" + host + b"a: b\r\n" * 2000),
            (505, b"GET / HTTP/2.0\r\n" + host + b"\r\n"),
        ):  # fmt: skip
            s = dial(at)
            s.sendall(bad)
            r, _ = answer(s)
            assert (r.status, r.getheader("Connection")) == (status, "close"), bad[:80]
            assert read(s, 1) == b"", bad[:80]
            s.close()
        gone = dial(at)
        gone.sendall(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc")
        reset(gone)
        s = dial(at)
        s.sendall(b"GET / HTTP/1.1\r\n" + host + b"\r\n")
        assert answer(s)[0].status == 200
        s.close()


def http_is_patient_for_so_long(folder: pathlib.Path) -> None:
    """A client that does not end its request gets 408; a connection without a request is closed."""
    with server(folder / "http", "0.05") as (_, at):
        slow, silent = dial(at), dial(at)
        slow.sendall(b"GET / HT")
        assert answer(slow)[0].status == 408
        assert read(slow, 1) == read(silent, 1) == b""
        slow.close()
        silent.close()


def http_drains(folder: pathlib.Path) -> None:
    """After SIGTERM the server closes idle connections, and answers requests that have begun."""
    with server(folder / "http", told=True) as (process, at):
        begun, silent = dial(at), dial(at)
        for s in (begun, silent):
            s.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert answer(s)[0].getheader("Connection") == "keep-alive"
        # The server reads both parts together. So when the first answer arrives, the server has the
        # beginning of the POST too.
        begun.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\nPOST /echo HTTP/1.1\r\nHost: x\r\n")
        assert answer(begun)[0].status == 200
        process.send_signal(signal.SIGTERM)
        assert process.stdout and process.stdout.readline() == "no more connections\n"
        assert read(silent, 1) == b""
        begun.sendall(b"Content-Length: 3\r\n\r\nend")
        r, text = answer(begun)
        assert (text, r.getheader("Connection")) == (b"end", "close")
        assert read(begun, 1) == b""
        begun.close()
        silent.close()
        assert process.stdout.readline() == "drained\n"


def bad_addresses(folder: pathlib.Path) -> None:
    """A server whose argument is not a numeric address prints what to write, and ends."""
    for name in ("echo", "chat", "http"):
        for bad in ("0", "localhost:1"):
            ran = subprocess.run(
                [folder / name, bad], capture_output=True, text=True, timeout=WAIT, check=False
            )
            assert ran.returncode == 2, ran
            assert "write 127.0.0.1:8080" in ran.stderr, ran


TESTS: list[Callable[[pathlib.Path], None]] = [
    echo_of_many, echo_drains, chat_of_three, chat_with_a_slow_client, http_by_clients,
    http_in_pieces, http_refuses, http_is_patient_for_so_long, http_drains, bad_addresses,
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

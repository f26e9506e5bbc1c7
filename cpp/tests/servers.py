"""Tests the example servers, with clients that are sockets of Python.

    servers.py FOLDER       the folder has the programs echo, chat, http and proxy; last line `N passed, N failed`

No client sleeps: each client reads the data that must come.
"""

from __future__ import annotations

import contextlib
import http.client
import pathlib
import random
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator

WAIT = 280  # seconds; only a hang takes so long


@contextlib.contextmanager
def server(
    program: pathlib.Path, *more: str, told: bool = False, proxied: tuple[str, int] | None = None
) -> Iterator[tuple[subprocess.Popen[str], tuple[str, int]]]:
    """Runs the server at a port of its own. Finally sends the server SIGTERM (with `told` the test
    has done so already); the server must end with the status 0. A proxy has the address that it
    is `proxied` for.
    """
    target = [f"{proxied[0]}:{proxied[1]}"] if proxied else []
    command = [program, "127.0.0.1:0", *target, *more]
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
    """Python's client and curl get the right answers; a connection serves several requests."""
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
    the connection. It continues to serve all other clients."""
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
    """A client that does not finish its request in time gets 408; a connection without a request is
    closed."""
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


# --- the proxy -----------------------------------------------------------------------------------


@contextlib.contextmanager
def proxy_to_socket(
    folder: pathlib.Path, *more: str, told: bool = False
) -> Iterator[tuple[subprocess.Popen[str], tuple[str, int], socket.socket]]:
    """Runs a proxy whose target is a listening socket of this test."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        door.settimeout(WAIT)
        at = door.getsockname()
        with server(folder / "proxy", *more, told=told, proxied=at) as (process, entry):
            yield process, entry, door


def connected(entry: tuple[str, int], door: socket.socket) -> tuple[socket.socket, socket.socket]:
    """Returns the two ends of a connection through the proxy: the client's and the server's."""
    client = dial(entry)
    far, _ = door.accept()
    far.settimeout(WAIT)
    return client, far


def was_reset(s: socket.socket) -> bool:
    """Reads to the end of the connection. Returns whether it was reset."""
    try:
        while s.recv(65536):
            pass
    except ConnectionResetError:
        return True
    return False


def last_words(process: subprocess.Popen[str]) -> list[str]:
    """Returns the lines that the server has yet to write."""
    assert process.stdout
    return process.stdout.read().splitlines()


def proxy_passes_both_ends(folder: pathlib.Path) -> None:
    """Each side's half-close arrives at the other side, and the other direction continues. The
    proxy counts connections and bytes."""
    with proxy_to_socket(folder, told=True) as (process, entry, door):
        client, far = connected(entry, door)
        client.sendall(b"question")
        client.shutdown(socket.SHUT_WR)
        assert read(far, 9) == b"question"
        far.sendall(b"an answer")
        assert read(client, 9) == b"an answer"
        far.shutdown(socket.SHUT_WR)
        assert read(client, 1) == b""
        client, far = connected(entry, door)
        far.shutdown(socket.SHUT_WR)  # the server ends first
        assert read(client, 1) == b""
        client.sendall(b"more")
        client.close()
        assert read(far, 5) == b"more"
        process.send_signal(signal.SIGTERM)
        assert last_words(process) == [
            "no more connections", "2 connections, 0 cut, 12 bytes up, 9 bytes down", "drained"
        ]  # fmt: skip


def proxy_holds_back(folder: pathlib.Path) -> None:
    """While the server reads nothing, the proxy reads no more from the client than its buffer and
    those of the system hold. All bytes arrive in order once the server reads."""
    block = random.Random(2).randbytes(1 << 16)
    most = 1024  # blocks: 64 MiB, several times what the system buffers
    with proxy_to_socket(folder) as (process, entry, door):
        client, far = connected(entry, door)
        client.setblocking(False)
        sent, rest = 0, b""
        # A correct proxy passes with any timeout; a longer timeout only catches a faulty proxy more
        # often.
        while sent < most and select.select([], [client], [], 0.05)[1]:
            rest = rest or block
            rest = rest[client.send(rest) :]
            sent += not rest
        assert sent < most, "the proxy has taken everything"
        client.settimeout(WAIT)

        def sends_the_rest() -> None:
            client.sendall(rest + block * 16)
            client.shutdown(socket.SHUT_WR)

        sender = threading.Thread(target=sends_the_rest)
        sender.start()
        whole = sent + bool(rest) + 16
        for i in range(whole):
            assert read(far, len(block)) == block, i
        assert read(far, 1) == b""
        sender.join()
        peak = pathlib.Path(f"/proc/{process.pid}/smaps_rollup").read_text().split("Anonymous:")[1]
        client.close()
        far.close()
        if "asan" not in str(folder):
            assert int(peak.split()[0]) < 16 * 1024, peak  # in KiB


def proxy_passes_resets_on(folder: pathlib.Path) -> None:
    """If a side resets the connection, the other side gets a reset, and not the end of the stream;
    a client whose server cannot be reached also gets a reset."""
    with proxy_to_socket(folder, told=True) as (process, entry, door):
        for vanishes, other in ((0, 1), (1, 0)):
            sides = connected(entry, door)
            sides[0].sendall(b"part")
            assert read(sides[1], 4) == b"part"
            reset(sides[vanishes])
            assert was_reset(sides[other]), vanishes
        door.close()
        client = dial(entry)
        client.sendall(b"anybody there?")
        assert was_reset(client)
        process.send_signal(signal.SIGTERM)
        assert last_words(process)[1] == "3 connections, 3 cut, 8 bytes up, 0 bytes down"


def proxy_loses_patience(folder: pathlib.Path) -> None:
    """The proxy resets a silent connection, and a connection whose reader takes nothing."""
    with proxy_to_socket(folder, "10", "0.05") as (_, entry, door):
        silent, far = connected(entry, door)
        assert was_reset(silent)
        assert was_reset(far)
        slow, far = connected(entry, door)
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            while True:
                far.sendall(b"x" * 65536)  # `slow` reads nothing
        assert was_reset(slow)


def proxy_serves_so_many(folder: pathlib.Path) -> None:
    """While CONNECTIONS clients are served, a further client waits until one of them has left."""
    with proxy_to_socket(folder, "2") as (_, entry, door):
        served = [connected(entry, door) for _ in range(2)]
        third = dial(entry)
        third.sendall(b"third")
        door.settimeout(0.05)
        with contextlib.suppress(TimeoutError):
            door.accept()
            raise AssertionError("a third connection is served")
        door.settimeout(WAIT)
        for s in served[0]:
            s.close()
        far, _ = door.accept()
        assert read(far, 5) == b"third"
        for s in (third, far, *served[1]):
            s.close()


def proxy_drains(folder: pathlib.Path) -> None:
    """After SIGTERM the connections continue until they end; a second SIGTERM resets them."""
    for signals in (1, 2):
        with proxy_to_socket(folder, told=True) as (process, entry, door):
            client, far = connected(entry, door)
            process.send_signal(signal.SIGTERM)
            assert process.stdout and process.stdout.readline() == "no more connections\n"
            with contextlib.suppress(ConnectionRefusedError, ConnectionResetError):
                dial(entry).close()
                raise AssertionError("the proxy has accepted another client")
            client.sendall(b"still here")
            assert read(far, 10) == b"still here"
            if signals == 2:
                process.send_signal(signal.SIGTERM)
                assert was_reset(client)
                assert was_reset(far)
            client.close()
            far.close()
            cut = signals - 1
            assert last_words(process) == [
                f"1 connections, {cut} cut, {0 if cut else 10} bytes up, 0 bytes down", "drained"
            ]  # fmt: skip


def http_through_the_proxy(folder: pathlib.Path) -> None:
    """curl and Python's client get the HTTP server's answers through the proxy."""
    with (
        server(folder / "http") as (_, inner),
        server(folder / "proxy", proxied=inner) as (_, at),
    ):
        c = http.client.HTTPConnection(*at, timeout=WAIT)
        for n in (0, 1, 60_000):
            c.request("POST", "/echo", b"x" * n)
            assert c.getresponse().read() == b"x" * n
        c.close()
        if curl := shutil.which("curl"):
            url = f"http://{at[0]}:{at[1]}"
            twice = [curl, "-sS", url + "/", url + "/"]
            ran = subprocess.run(twice, capture_output=True, check=True)
            assert ran.stdout == b"hello from Weft\n" * 2, ran


def all_answers(at: tuple[str, int], what: bytes) -> bytes:
    """Sends `what`, half-closes, and returns all bytes that arrive. The connection may be cut."""
    got = b""
    with dial(at) as s:
        with contextlib.suppress(OSError):  # ENOTCONN too: the connection was reset meanwhile
            s.sendall(what)
            s.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionResetError):
            while more := s.recv(65536):
                got += more
    return got


def sockets_of(process: subprocess.Popen[str]) -> int:
    count = 0
    for descriptor in pathlib.Path(f"/proc/{process.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            count += str(descriptor.readlink()).startswith("socket:")
    return count


def cut_before(
    folder: pathlib.Path, name: str
) -> Iterator[tuple[tuple[str, int], tuple[str, int]]]:
    """Sixty times, yields the address of a proxy that cuts each connection at a random byte, and
    that of the server behind it. Afterwards the server must have closed all these connections."""
    seed = 20
    print(f"cuts of {name}: seed {seed}")
    with (
        server(folder / name) as (process, inner),
        server(folder / "proxy", "1000", "60", str(seed), proxied=inner) as (_, at),
    ):
        for _ in range(60):
            yield at, inner
        while sockets_of(process) > 1:  # the server is still ending connections
            select.select([], [], [], 0.01)


def echo_is_cut(folder: pathlib.Path) -> None:
    """Wherever a connection is cut, the client gets the beginning of the right bytes."""
    numbers = random.Random(3)
    cut = 0
    for at, inner in cut_before(folder, "echo"):
        what = numbers.randbytes(3000)
        got = all_answers(at, what)
        assert what.startswith(got)
        cut += got != what
        assert all_answers(inner, b"alive") == b"alive"
    assert cut > 30


def http_is_cut(folder: pathlib.Path) -> None:
    """Wherever a connection is cut, the client gets whole answers and the beginning of one more,
    which is 400 if the request was cut."""
    request = b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 900\r\n\r\n" + b"y" * 900
    whole = 0
    for at, inner in cut_before(folder, "http"):
        one, bad = all_answers(inner, request), all_answers(inner, request[:500])
        assert one.endswith(b"y" * 900) and b"400" in bad[:20]
        rest = all_answers(at, request * 4)
        while rest.startswith(one):
            rest = rest.removeprefix(one)
            whole += 1
        assert one.startswith(rest) or bad.startswith(rest), rest
    assert 0 < whole < 240


def chat_is_cut(folder: pathlib.Path) -> None:
    """Wherever one client's connection is cut, another client gets whole lines of that client, in
    order, and all lines of the other clients."""
    # There are so few lines that no outbox drops a line, whichever client is first.
    lines = [b"line %d " % i + b"x" * 70 for i in range(50)]
    for i, (at, inner) in enumerate(cut_before(folder, "chat")):
        hears = enter(inner, 3 * i + 1)
        all_answers(at, b"\n".join(lines) + b"\n")
        speaker = enter(inner, 3 * i + 3)
        speaker.sendall(b"end\n")
        # Lines of the client whose connection was cut may still arrive after this line, because the
        # server continues to read.
        end = b"%d: end\n" % (3 * i + 3)
        got = b""
        while end not in got:
            more = hears.recv(65536)
            assert more, "the client that hears was disconnected"
            got += more
        mine = b"%d: " % (3 * i + 2)
        came = got[: got.rindex(b"\n")].split(b"\n")  # whole lines
        others = [line.removeprefix(mine) for line in came if line.startswith(mine)]
        assert others == lines[: len(others)], others
        hears.close()
        speaker.close()


def bad_addresses(folder: pathlib.Path) -> None:
    """A server whose argument is not a numeric address prints what to write, and ends."""
    for name, *more in (("echo",), ("chat",), ("http",), ("proxy", "127.0.0.1:9")):
        for bad in ("0", "localhost:1"):
            ran = subprocess.run(
                [folder / name, bad, *more],
                capture_output=True,
                text=True,
                timeout=WAIT,
                check=False,
            )
            assert ran.returncode == 2, ran
            assert "write 127.0.0.1:8080" in ran.stderr, ran


def bad_arguments(folder: pathlib.Path) -> None:
    """The proxy says what is wrong with its arguments, and ends."""
    for text, *bad in (
        ("usage: proxy ADDRESS TARGET", "127.0.0.1:0"),
        ("write 127.0.0.1:8080", "127.0.0.1:0", "localhost"),
        ("CONNECTIONS must be a number from", "127.0.0.1:0", "127.0.0.1:9", "0"),
        ("descriptors for", "127.0.0.1:0", "127.0.0.1:9", "1000000"),
        ("SECONDS must be a number from", "127.0.0.1:0", "127.0.0.1:9", "5", "nan"),
        ("SEED must be a number from", "127.0.0.1:0", "127.0.0.1:9", "5", "5", "x"),
    ):
        ran = subprocess.run(
            [folder / "proxy", *bad], capture_output=True, text=True, timeout=WAIT, check=False
        )
        assert ran.returncode == 2, ran
        assert text in ran.stderr, ran


TESTS: list[Callable[[pathlib.Path], None]] = [
    echo_of_many, echo_drains, chat_of_three, chat_with_a_slow_client, http_by_clients,
    http_in_pieces, http_refuses, http_is_patient_for_so_long, http_drains, proxy_passes_both_ends,
    proxy_holds_back, proxy_passes_resets_on, proxy_loses_patience, proxy_serves_so_many, proxy_drains,
    http_through_the_proxy, echo_is_cut, http_is_cut, chat_is_cut, bad_addresses, bad_arguments,
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

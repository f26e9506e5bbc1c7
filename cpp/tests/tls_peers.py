"""Tests that weft::tls and Python's ssl understand each other (rule 18.10).

Usage: tls_peers.py PROGRAM, where PROGRAM is the compiled tls.cpp. The last line of the output is
`N passed, N failed`.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import unittest
from collections.abc import Callable, Iterator

PROGRAM = sys.argv[1]
KEYS = pathlib.Path()
PATIENCE = 60  # seconds


def trusting(version: ssl.TLSVersion | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=KEYS / "ca.pem")
    if version:
        context.maximum_version = version
    return context


@contextlib.contextmanager
def serving(*more: str) -> Iterator[int]:
    """Starts the server of weft::tls, yields its port, and stops the server afterwards."""
    command = [PROGRAM, "serve", str(KEYS / "chain.pem"), str(KEYS / "key.pem"), *more]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert server.stdout
    try:
        yield int(server.stdout.readline())
    finally:
        server.kill()
        server.wait()
        server.stdout.close()


def echoed(port: int, context: ssl.SSLContext, data: bytes) -> bytes:
    """Sends `data` to the server of weft::tls in parts. Returns what the server sends back."""
    raw = socket.create_connection(("127.0.0.1", port), PATIENCE)
    with context.wrap_socket(raw, server_hostname="localhost") as s:
        back = bytearray()
        while len(back) < len(data):
            part = data[len(back) : len(back) + 50_000]
            s.sendall(part)
            got = 0
            while got < len(part):
                piece = s.recv(65536)
                assert piece, f"the end after {len(back)} bytes"
                got += len(piece)
                back += piece
        s.unwrap()
    return bytes(back)


def answering(context: ssl.SSLContext, serve: Callable[[ssl.SSLSocket], None], *fetch: str) -> str:
    """Runs the client of weft::tls against a server by Python's ssl, which serves one connection.
    Returns all that the client has printed.
    """
    with socket.create_server(("127.0.0.1", 0)) as door:
        door.settimeout(PATIENCE)

        def once() -> None:
            raw, _ = door.accept()
            raw.settimeout(PATIENCE)
            with contextlib.suppress(OSError), context.wrap_socket(raw, server_side=True) as s:
                serve(s)

        thread = threading.Thread(target=once)
        thread.start()
        port = str(door.getsockname()[1])
        ran = subprocess.run(
            [PROGRAM, "fetch", port, *fetch],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
        thread.join()
    return ran.stdout.strip()


def echo(s: ssl.SSLSocket) -> None:
    back = bytearray()
    while piece := s.recv(65536):
        back += piece
    s.sendall(back)
    s.unwrap()


def stops(s: ssl.SSLSocket) -> None:
    while s.recv(65536):
        pass
    s.sendall(b"part")


def own(version: ssl.TLSVersion | None = None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(KEYS / "chain.pem", KEYS / "key.pem")
    if version:
        context.maximum_version = version
    return context


class Peers(unittest.TestCase):
    def test_clients_of_tls_1_3_and_1_2(self) -> None:
        data = os.urandom(1_000_000)
        with serving() as port:
            for version in (None, ssl.TLSVersion.TLSv1_2):
                self.assertEqual(echoed(port, trusting(version), data), data)

    def test_the_server_outlives_clients_that_fail(self) -> None:
        with serving() as port:
            for garbage in (b"", b"GET / HTTP/1.0\r\n\r\n", os.urandom(1000)):
                with socket.create_connection(("127.0.0.1", port), PATIENCE) as raw:
                    raw.sendall(garbage)
            raw = socket.create_connection(("127.0.0.1", port), PATIENCE)
            with self.assertRaises(ssl.SSLError):  # this client does not trust the server
                ssl.create_default_context().wrap_socket(raw, server_hostname="localhost")
            raw.close()
            self.assertEqual(echoed(port, trusting(), b"still there"), b"still there")

    def test_a_client_must_prove_itself(self) -> None:
        known = trusting()
        known.load_cert_chain(KEYS / "chain.pem", KEYS / "key.pem")
        with serving(str(KEYS / "ca.pem")) as port:
            self.assertEqual(echoed(port, known, b"known"), b"known")
            with self.assertRaises((ssl.SSLError, ConnectionError)):
                echoed(port, trusting(), b"unknown")

    def test_servers_of_tls_1_3_and_1_2(self) -> None:
        for version in (None, ssl.TLSVersion.TLSv1_2):
            printed = answering(own(version), echo, str(KEYS / "ca.pem"), "localhost", "700000")
            self.assertEqual(printed, "700000 as sent")

    def test_a_server_that_is_not_trusted_or_stops_without_an_end(self) -> None:
        printed = answering(own(), echo, str(KEYS / "other.pem"), "localhost", "10")
        self.assertIn("certificate verify failed", printed)
        printed = answering(own(), stops, str(KEYS / "ca.pem"), "localhost", "10")
        self.assertIn("without TLS's own end", printed)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        KEYS = pathlib.Path(folder)
        subprocess.run([PROGRAM, "keys", folder], check=True)
        cases = unittest.defaultTestLoader.loadTestsFromTestCase(Peers)
        result = unittest.TextTestRunner(verbosity=1).run(cases)
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)

"""A program closes descriptors that it did not open, and reuses their numbers, as daemons do.
Neither the door nor the bell of a look takes data from such a descriptor (rules 14.9, 14.10)."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

BEFORE = """
    import os, signal, socket, stat, sys, time
    import weft
    from weft import observe

    @weft.process
    async def nothing(): pass

    def sockets():
        return {fd for fd in map(int, os.listdir("/proc/self/fd"))
                if os.path.exists(f"/proc/self/fd/{fd}") and "socket" in os.readlink(f"/proc/self/fd/{fd}")}

    def pipes():
        return {fd for fd in map(int, os.listdir("/proc/self/fd"))
                if os.path.exists(f"/proc/self/fd/{fd}") and "pipe" in os.readlink(f"/proc/self/fd/{fd}")}
"""

DOOR = """
    before = sockets()
    weft.run(nothing())
    (number,) = sockets() - before
    server = socket.create_server(("127.0.0.1", 0))
    os.dup2(server.fileno(), number)
    server.close()
    server = socket.socket(fileno=number)
    # A program that asks for a look wakes the thread, which waits at the old socket of this number.
    look = socket.socket(socket.AF_UNIX)
    look.connect(f"{os.environ['XDG_RUNTIME_DIR']}/weft/{os.getpid()}.sock")
    for _ in range(20):
        client = socket.create_connection(server.getsockname())
        server.settimeout(60)
        there, _ = server.accept()
        there.sendall(b"mine")
        assert client.recv(4) == b"mine"
    print("served")
"""

BELL = """
    before = pipes()
    observe.on_signal()
    read, write = sorted(pipes() - before)
    a, b = os.pipe()
    os.dup2(a, read)
    os.dup2(b, write)
    for _ in range(3):
        signal.raise_signal(signal.SIGUSR1)
    os.write(write, b"mine")
    assert os.read(read, 100) == b"mine"
    print("served")
"""


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="it finds the descriptors in /proc")
@pytest.mark.parametrize("text", [DOOR, BELL], ids=["door", "bell"])
def test_a_number_that_the_program_uses_itself(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules 14.9, 14.10: the program reads its own data from the descriptor, and ends well."""
    with tempfile.TemporaryDirectory(prefix="weft") as home:
        monkeypatch.setenv("XDG_RUNTIME_DIR", home)
        monkeypatch.delenv("WEFT_INSPECT", raising=False)
        program = textwrap.dedent(BEFORE) + textwrap.dedent(text)
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
    assert (done.stdout, done.returncode) == ("served\n", 0), done.stderr

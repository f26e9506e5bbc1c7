"""Rule 18.11: connect() to a name, in coroutines, greenlets and threads."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from weft import coroutines as co
from weft.coroutines import connect


def connects_to(b, address):
    async def connects(b):
        with await b.op(b.weft.connect(address)) as s:
            return s.peer

    return b.run(b.process(connects)())


@pytest.mark.parametrize("form", ["text", "tuple"])
def test_a_name_has_addresses(b, form):
    with socket.create_server(("127.0.0.1", 0)) as door:
        port = door.getsockname()[1]
        # "localhost" may also have the address ::1, where no program listens; then the next address
        # is tried.
        address = f"localhost:{port}" if form == "text" else ("localhost", port)
        assert connects_to(b, address) == f"127.0.0.1:{port}"


def test_ordinary_code_looks_up_names_too():
    with (
        socket.create_server(("127.0.0.1", 0)) as door,
        connect(("localhost", door.getsockname()[1])) as s,
    ):
        assert s.peer == f"127.0.0.1:{door.getsockname()[1]}"


def test_nobody_knows_the_name(b):
    with pytest.raises(socket.gaierror, match=r"look up nobody\.invalid, service 80") as e:
        connects_to(b, "nobody.invalid:80")
    assert e.value.errno in (socket.EAI_NONAME, socket.EAI_AGAIN)


def test_nobody_listens_at_any_address(b):
    with socket.create_server(("127.0.0.1", 0)) as door:
        port = door.getsockname()[1]
    with pytest.raises(ConnectionRefusedError, match=f"connect to 127.0.0.1:{port}"):
        connects_to(b, f"localhost:{port}")


def test_a_message_names_its_process_once():  # the kind: BadUse of C++ that Python passes on
    @co.process
    async def connects():
        await connect("300.0.0.1:80")

    with pytest.raises(co.BadUse) as e:
        co.run(connects())
    assert str(e.value).startswith('main/connects: Address: "300.0.0.1:80"')


# A getaddrinfo() that ends once a program has written to the FIFO with that name.
SLOW = """
#include <fcntl.h>
#include <netdb.h>
#include <unistd.h>
int getaddrinfo(const char* node, const char* service, const struct addrinfo* hints,
                struct addrinfo** found) {
  char c;
  int fd = open(node, O_RDONLY);
  if (fd < 0 || read(fd, &c, 1) != 1) return EAI_FAIL;
  close(fd);
  return EAI_NONAME;
}
"""

PROGRAM = """
import os, socket
from weft.coroutines import Channel, connect, move_on_after, process, run, yield_

def ends(name):
    with open(name, "w") as f:
        f.write("x")

@process
async def connects(name, limit, out):
    async with move_on_after(limit) as left:
        try:
            await connect(f"{name}:80")
        except socket.gaierror as error:
            assert error.errno == socket.EAI_NONAME
            await out("unknown")
    if left.expired:
        await out("left")

@process
async def goes_on(name, inp):
    await yield_()
    if name:
        ends(name)
    print(await inp(), flush=True)

def both(name, limit, end):
    c = Channel()
    run(connects(name, limit, c.writer()), goes_on(end, c.reader()))

@process
async def leaves():
    async with move_on_after(0.01):
        await connect("one:80")

run(*(leaves() for _ in range(500)))
# 64 look-ups are under way, and the others are queued.
assert len(os.listdir("/proc/self/task")) <= 1 + 64, os.listdir("/proc/self/task")
while len(os.listdir("/proc/self/task")) > 1:
    try:
        fd = os.open("one", os.O_WRONLY | os.O_NONBLOCK)
    except OSError:  # no look-up has the FIFO open at this moment
        os.sched_yield()
        continue
    os.write(fd, b"x" * 64)
    os.close(fd)

both("one", 0.01, None)
both("two", None, "two")
ends("one")  # ends the look-up for which no process waits any more
while len(os.listdir("/proc/self/task")) > 1:
    os.sched_yield()
print("end", flush=True)
"""


@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler")
def test_a_look_up_that_takes_long(tmp_path: Path):
    """A limit ends connect() at once, other processes run during a look-up, and of 500 look-ups
    at most 64 have a thread at one time.
    """
    (tmp_path / "slow.c").write_text(SLOW)
    build = ["cc", "-shared", "-fPIC", "-o", "slow.so", "slow.c"]
    subprocess.run(build, check=True, cwd=tmp_path)
    os.mkfifo(tmp_path / "one")
    os.mkfifo(tmp_path / "two")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "LD_PRELOAD": str(tmp_path / "slow.so"), "WEFT_INSPECT": "0"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stdout, done.returncode) == ("left\nunknown\nend\n", 0), done.stderr

"""Rule 18.11: streams, listeners and connections, in coroutines, greenlets and threads."""

from __future__ import annotations

import array
import asyncio
import errno
import gc
import os
import pickle
import resource
import signal
import socket
import struct
import threading

import pytest

import weft
from weft import coroutines as co
from weft import threads as th
from weft._watching import trace
from weft.coroutines import Listener, Stream, connect, listen, readable, writable
from weft.errors import BadUse, Cancelled, Deadlock


async def read_all(b, s):
    whole = b""
    while part := await b.op(s.read_some()):
        whole += part
    return whole


async def passes(b, w):
    await b.op(w.write(None) if not b.blocking else w(None))


async def limited(b, begins):
    """Runs an operation that must end by its limit."""
    limit = b.weft.move_on_after(0.001)
    await b.enter(limit)
    try:
        await b.op(begins())
    except Cancelled as e:
        assert await b.leave(limit, e)
    else:
        raise AssertionError("the limit has not ended the operation")


@pytest.mark.parametrize(
    "address", ["127.0.0.1:0", ("127.0.0.1", 0), "[::1]:0", ("::1", 0), "unix"]
)
def test_a_server_and_its_client(b, address, tmp_path):  # rule 18.11
    at = f"unix:{tmp_path}/socket" if address == "unix" else address

    async def serves(b, door):
        s = await b.op(door.accept())
        with s:
            while data := await b.op(s.read_some(1000)):
                await b.op(s.write_all(data.upper()))
            s.shutdown_write()
            return s.local

    async def asks(b, door):
        with await b.op(b.weft.connect(door.address)) as s:
            assert s.peer == door.address
            await b.op(s.write_all(b"question"))
            s.shutdown_write()  # half-close: this side can still read
            return await read_all(b, s)

    with b.weft.listen(at) as door:
        local, answer = b.run(b.process(serves)(door), b.process(asks)(door))
        assert (local, answer) == (door.address, b"QUESTION")


def test_what_getsockname_returns_is_an_address(b):  # rule 18.11
    async def connects(b, at):
        return (await b.op(b.weft.connect(at))).peer

    with socket.create_server(("::1", 0), family=socket.AF_INET6) as door:
        at = door.getsockname()  # a tuple of four
        assert b.run(b.process(connects)(at)) == f"[::1]:{at[1]}"


def test_a_write_waits_for_its_reader(b):  # rule 18.1
    """A limit ends a write in the middle. `sent` is the number of bytes that were written; no byte
    is lost."""
    data = os.urandom(3_000_000)

    async def writes(b, s, full):
        await limited(b, lambda: s.write_all(data))
        assert 0 < s.sent < len(data)
        await passes(b, full)
        rest = memoryview(data)[s.sent :]
        n = await b.op(s.write_some(rest))
        assert n == s.sent > 0
        await b.op(s.write_all(rest[n:]))
        assert s.sent == len(rest) - n
        s.close()

    async def reads(b, s, full):
        await b.op(full.read() if not b.blocking else full())
        return await read_all(b, s)

    here, there = Stream.pair()
    full = b.weft.Channel()
    got = b.run(b.process(reads)(here, full.reader()), b.process(writes)(there, full.writer()))
    assert got[0] == data


def test_a_limit_and_a_cancellation_take_no_byte(b):  # rules 6, 7.12, 18.1
    here, there = Stream.pair()

    async def reads(b):
        await b.op(here.read_some())

    async def ends_it(b):
        await limited(b, here.read_some)
        group = b.weft.Group()
        await b.enter(group)
        p = group.start(b.process(reads)())
        await b.op(b.weft.yield_())
        p.cancel()
        await b.leave(group)
        await b.op(there.write_all(b"abc"))
        assert await b.op(here.read_some(2)) == b"ab"
        assert await b.op(here.read_some()) == b"c"

    b.run(b.process(ends_it)())


def test_a_failure_elsewhere_ends_the_wait(b):  # rule 7.2
    here, there = Stream.pair()

    async def reads(b):
        await b.op(here.read_some())

    async def fails(b):
        await b.op(b.weft.yield_())
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        b.run(b.process(reads)(), b.process(fails)())
    there.write_all(b"x")
    assert here.read_some() == b"x"


@pytest.mark.parametrize("how", ["close", "throw", "drop"])
def test_an_operation_that_is_left_while_it_waits(how):  # rules 10.3, 18.1, 18.2
    """The operation has read nothing, and the run no longer waits for the descriptor, so the run is
    deadlocked."""
    here, there = Stream.pair()
    got = []

    async def waits():
        await here.read_some()

    @co.process
    async def leaves(r):
        c = waits()
        c.send(None)
        with pytest.raises(BadUse, match="while another operation of this process waits"):
            await there.write_all(b"no")
        if how == "close":
            c.close()
        elif how == "throw":
            with pytest.raises(LookupError):
                c.throw(LookupError())
        del c
        await there.write_all(b"x")
        got.append(await here.read_some())
        await r.read()

    c = co.Channel()
    keep = c.writer()
    with pytest.raises(Deadlock):
        co.run(leaves(c.reader()))
    assert got == [b"x"]
    del keep


def test_guards_beside_a_channel(b):  # rule 18.3
    here, there = Stream.pair()
    c = b.weft.Channel(capacity=1)

    async def selects(b, r, w):
        select, op = b.weft.select, b.op
        assert await op(select(readable(here), r, b.weft.after(0.001))) == (2, None)
        assert await op(select(readable(here), writable(here))) == (1, None)
        await op(there.write_all(b"abc"))
        await op(w.write(7) if not b.blocking else w(7))
        assert await op(select(r, readable(here), mode="priority")) == (0, 7)
        assert await op(select(r, readable(here), mode="priority")) == (1, None)
        assert await op(here.read_some()) == b"abc"
        with listen("127.0.0.1:0") as door:
            assert await op(select(readable(door), b.weft.skip(), mode="priority")) == (1, None)
            with await op(connect(door.address)):
                assert await op(select(readable(door), r)) == (0, None)

    b.run(b.process(selects)(c.reader(), c.writer()))


def test_close_ends_the_waits(b):  # rule 18.5
    here, _there = Stream.pair()
    door = listen("127.0.0.1:0")
    guard = readable(here)  # made here: a thread may begin its select after close()

    async def waits(b, begins):
        with pytest.raises(OSError, match="which was closed") as e:
            await b.op(begins())
        assert e.value.errno == errno.EBADF

    async def selects(b):
        assert await b.op(b.weft.select(guard, b.weft.after(100))) == (0, None)

    async def closes(b):
        await b.op(b.weft.yield_())
        for x in (here, here, door, door):
            x.close()

    b.run(
        b.process(waits)(here.read_some),
        b.process(waits)(door.accept),
        b.process(selects)(),
        b.process(closes)(),
    )
    for begins in (here.read_some, lambda: here.write_all(b"x"), door.accept):
        with pytest.raises(OSError, match="which was closed"):
            begins()
    assert (here.fileno(), door.fileno()) == (-1, -1)
    assert repr(here) == "<Stream, closed>"
    with pytest.raises(ValueError, match="negative"):
        readable(here)


def test_two_read_one_stream(b):  # rule 18.4
    here, there = Stream.pair()

    async def reads(b):
        return await read_all(b, here)

    async def writes(b):
        for i in range(40):
            await b.op(there.write_all(b"%04d" % i))
            await b.op(b.weft.yield_())
        there.close()

    one, two, _ = b.run(b.process(reads)(), b.process(reads)(), b.process(writes)())
    assert sorted(one + two) == sorted(b"".join(b"%04d" % i for i in range(40)))


def test_a_peer_that_resets_or_reads_no_more(b):  # rule 18.6
    async def meets(b, door):
        s = await b.op(b.weft.connect(door.address))
        far = await b.op(door.accept())
        plain = socket.socket(fileno=os.dup(far.fileno()))
        far.close()
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await b.op(b.weft.yield_())
        plain.close()
        here, there = Stream.pair()
        there.close()
        with pytest.raises(BrokenPipeError, match="write to descriptor"):
            await b.op(here.write_all(b"x"))
        with pytest.raises(OSError, match=r"descriptor|reset"):
            while True:
                await b.op(s.write_all(b"x" * 100))
        with pytest.raises(ConnectionRefusedError):
            door.close()
            await b.op(b.weft.connect(address))

    with listen("127.0.0.1:0") as door:
        address = door.address
        b.run(b.process(meets)(door))


def test_accept_without_a_descriptor(b):  # rule 18.6
    """accept() tries again until a descriptor is free."""
    taken, waits = [], []

    async def accepts(b, door):
        await limited(b, door.accept)  # now its engine exists
        waits.append(True)
        return await b.op(door.accept())

    async def frees(b, door):
        with socket.socket() as s:
            group = b.weft.Group()
            await b.enter(group)
            p = group.start(b.process(accepts)(door))
            while not waits:
                await b.op(b.weft.sleep(0.001))
            for _ in range(soft):
                try:
                    taken.append(os.dup(0))
                except OSError:
                    break
            else:
                raise AssertionError("there are more descriptors than the limit says")
            s.connect(("127.0.0.1", int(door.address.rpartition(":")[2])))
            await b.op(b.weft.sleep(0.001))
            while taken:
                os.close(taken.pop())
            await b.leave(group)
            s.send(b"x")
            return await b.op(p.result.read_some())

    soft = 400
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, limits[1]))
    try:
        with listen("127.0.0.1:0") as door:
            assert b.run(b.process(frees)(door)) == b"x"
    finally:
        while taken:
            os.close(taken.pop())
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_ctrl_c_ends_a_wait(b):  # rule 6.7
    here, there = Stream.pair()

    async def waits(b):
        await b.op(here.read_some())

    rings = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
    rings.start()
    with pytest.raises(KeyboardInterrupt):
        b.run(b.process(waits)())
    rings.join()
    there.write_all(b"x")
    assert here.read_some() == b"x"


def test_what_a_write_takes():
    here, there = Stream.pair()
    for data in (b"ab", bytearray(b"ab"), memoryview(b"xaby")[1:3], array.array("b", [97, 98])):
        there.write_all(data)
        assert here.read_some() == b"ab"
    there.write_all(b"")
    assert there.write_some(b"") == 0
    there.write_all(data=b"by name")
    assert here.read_some(most=2) == b"by"
    for bad in ("text", 3, None, memoryview(b"abcd")[::2]):
        with pytest.raises((TypeError, BufferError)):
            there.write_all(bad)


def test_a_buffer_cannot_change_its_size_while_it_is_written():  # rule 18.11
    here, there = Stream.pair()
    data = bytearray(3_000_000)

    @co.process
    async def writes():
        await there.write_all(data)

    @co.process
    async def changes():
        await co.yield_()
        with pytest.raises(BufferError):
            data.append(1)
        while there.sent < len(data):
            await here.read_some()

    co.run(writes(), changes())
    data.append(1)


def test_many_operations_that_never_wait_let_others_run():  # rule 7.7
    here, there = Stream.pair()
    seen = []

    @co.process
    async def talks():
        while not seen:
            await there.write_all(b"x")
            await here.read_some()

    @co.process
    async def runs():
        seen.append(1)

    co.run(talks(), runs())


def test_ordinary_code_and_another_thread():  # rule 18.11
    here, there = Stream.pair()
    writes = threading.Timer(0.01, there.write_all, (b"y",))
    writes.start()
    assert here.read_some() == b"y"
    writes.join()
    closes = threading.Timer(0.01, here.close)
    closes.start()
    with pytest.raises(OSError, match="which was closed"):
        here.read_some()
    closes.join()


def test_a_descriptor_that_the_program_has():  # rule 18.11
    reads, writes = os.pipe()
    with Stream(reads) as r, Stream(writes) as w:
        w.write_all(b"abc")
        assert r.read_some() == b"abc"
        with pytest.raises(OSError, match="half-close"):
            w.shutdown_write()
        with pytest.raises(OSError, match="address"):
            assert w.peer
    with pytest.raises(OSError):
        os.fstat(reads)
    a, b = socket.socketpair()
    with b, Stream(a.detach()) as s:
        b.send(b"x")
        assert s.read_some() == b"x"
    s, _ = Stream.pair()
    fd = s.fileno()
    del s, _
    gc.collect()
    with pytest.raises(OSError):
        os.fstat(fd)


def test_where_nothing_says_when_it_is_ready(b):  # rule 18.7
    here, there = Stream.pair()
    there.write_all(b"x")

    async def operates(b, begins):
        await b.op(begins())

    for begins in (here.read_some, lambda: here.write_all(b"x"), lambda: connect("127.0.0.1:9")):
        with pytest.raises(BadUse, match="with virtual time nothing says"):
            b.run(b.process(operates)(begins), clock="virtual")
    assert here.read_some() == b"x"


def test_in_a_loop_of_asyncio():  # rule 18.7
    here, there = Stream.pair()
    there.write_all(b"x")

    async def reads():
        await here.read_some()

    with pytest.raises(BadUse, match="in a loop of asyncio, which waits for descriptors by itself"):
        asyncio.run(reads())

    @co.process
    async def guest():
        await here.read_some()

    async def runs():
        await co.run_async(guest())

    with pytest.raises(BadUse, match="in a loop of asyncio"):
        asyncio.run(runs())
    assert here.read_some() == b"x"


def test_misused_operations():  # rules 11.1, 11.2, 13.8
    here, there = Stream.pair()

    @co.process
    async def forgets():
        here.read_some()

    with pytest.warns(RuntimeWarning, match="read_some was never awaited"):
        co.run(forgets())
        gc.collect()

    @co.process
    async def takes_it_as_a_result():
        _a, _b = here.read_some()

    with pytest.raises(BadUse, match=r"read_some.*await"), pytest.warns(RuntimeWarning):
        co.run(takes_it_as_a_result())

    @co.process
    async def twice():
        op = there.write_all(b"x")
        await op
        await op

    with pytest.raises(BadUse, match="write_all was awaited already"):
        co.run(twice())
    assert here.read_some() == b"x"

    waiting = []

    @co.process
    async def waits():
        waiting.append(here.read_some())
        await waiting[0]

    @co.process
    async def steals():
        await co.yield_()
        with pytest.raises(BadUse, match="read_some"):
            await waiting[0]
        await there.write_all(b"x")

    co.run(waits(), steals())


def test_listen_takes_no_name():
    for bad in ("localhost:1", ("localhost", 80)):
        with pytest.raises(BadUse, match="no address in numbers"):
            listen(bad)


@pytest.mark.parametrize("f", [listen, connect])
def test_bad_addresses(f):
    for bad, text in (
        ("127.0.0.1", "has no port"),
        ("localhost", "has no port"),
        ("localhost:http", "no such port"),
        ("localhost:", "no such port"),
        (":80", "no address in numbers"),
        ("300.1.1.1:80", "no address in numbers"),
        ("[localhost]:80", "is no address"),
        ("", "an address is missing"),
        (("localhost", 70000), "no such port"),
        (("127.0.0.1", 70000), "no such port"),
        ((1, 2), "an address is a text"),
        (("127.0.0.1",), "an address is a text"),
        (None, "an address is a text"),
        ("unix:", "has no path"),
    ):
        with pytest.raises(BadUse, match=text) as e:
            f(bad)
        assert "::" not in str(e.value).replace(repr(bad), "").replace("[::1]", "")
    with pytest.raises(TypeError, match="address"):
        f()


def test_bad_objects(tmp_path):
    here, _there = Stream.pair()
    with pytest.raises(BadUse, match=r"Stream\(s.detach\(\)\)"):
        Stream("socket")
    with socket.socket() as s, pytest.raises(BadUse, match=r"Stream\(s.detach\(\)\)"):
        Stream(s)
    with pytest.raises(ValueError, match="negative"):
        Stream(-1)
    with pytest.raises(OSError, match="adopt"):
        Stream(10_000)
    with pytest.raises(TypeError):
        Listener()
    for bad in (0, -1):
        with pytest.raises(BadUse, match="read at least one byte"):
            here.read_some(bad)
    for bad in ("2", 1.5):
        with pytest.raises(TypeError):
            here.read_some(bad)
    with pytest.raises(OverflowError):
        here.read_some(2**70)
    if "WEFT_SANITIZED" not in os.environ:  # AddressSanitizer ends a program that asks for so much
        with pytest.raises(MemoryError):
            here.read_some(2**62)
    for s in (here, listen("127.0.0.1:0")):
        with pytest.raises(BadUse, match=r"neither copied nor pickled.*accept or connect"):
            pickle.dumps(s)
    at = f"unix:{tmp_path}/here"
    with listen(at), pytest.raises(OSError, match="in use"):
        listen(at)


def test_many_connections_come_and_go(b):  # rule 18.11
    """Serves a hundred clients at once, of which every fifth closes its stream without reading the
    answer."""

    async def echoes(b, s):
        with s:
            try:
                while data := await b.op(s.read_some()):
                    await b.op(s.write_all(data))
            except ConnectionError:
                pass

    async def serves(b, door):
        group = b.weft.Group()
        await b.enter(group)
        for _ in range(100):
            group.start(b.process(echoes)(await b.op(door.accept())))
        await b.leave(group)

    async def client(b, i, at):
        with await b.op(b.weft.connect(at)) as s:
            await b.op(s.write_all(b"%d" % i * 1000))
            if i % 5 == 0:
                return b""
            s.shutdown_write()
            return await read_all(b, s)

    with listen("127.0.0.1:0") as door:
        clients = [b.process(client)(i, door.address) for i in range(100)]
        got = b.run(b.process(serves)(door), *clients)[1:]
    assert got == [b"" if i % 5 == 0 else b"%d" % i * 1000 for i in range(100)]


def test_in_a_check():  # rule 18.7
    here, there = Stream.pair()
    there.write_all(b"x")

    @co.process
    async def reads():
        await here.read_some()

    report = weft.check(lambda: co.run(reads()))
    assert report.kind == "exception"
    assert "weft check cannot say when" in report.what


def test_observed(b, tmp_path):  # rule 14.6
    """A trace has the events of processes that use streams, except those of the streams."""
    here, there = Stream.pair()

    async def talks(b, w):
        await b.op(there.write_all(b"x"))
        assert await b.op(here.read_some()) == b"x"
        await passes(b, w)

    async def hears(b, r):
        return await b.op(r.read() if not b.blocking else r())

    file = tmp_path / "t.jsonl"
    c = b.weft.Channel()
    b.run(b.process(talks)(c.writer()), b.process(hears)(c.reader()), trace=file)
    events, _ = trace.read(file)
    assert [e["op"] for e in events if e["e"] == "commit"].count("read") == 1


def test_the_backends_share_the_names():
    assert th.Stream is co.Stream is Stream
    assert th.connect is co.connect

"""Tests weft.toolkit: files and commands; `process * n` and `Channel() * n` (docs/toolkit.md)."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from parts import hows, receive, send

from weft import toolkit
from weft.coroutines import Channel, Parallel, Poisoned, process, run
from weft.errors import BadUse, Retired

PYTHON = sys.executable


@process
async def lines(out: Any, *values: Any) -> None:
    for v in values:
        await out.write(v)


@process
async def everything(source: Any) -> list[Any]:
    return [v async for v in source]


# --- files ----------------------------------------------------------------------------------------


def test_a_file_goes_through_a_network(b: Any, tmp_path: Path) -> None:
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_text("a\nb\n\nä")
    c = b.weft.Channel()
    got = b.run(toolkit.read_file(source, c.writer()), toolkit.write_file(c.reader(), target))
    assert got == [4, 4]
    assert target.read_text() == "a\nb\n\nä\n"
    d = b.weft.Channel()
    b.run(
        toolkit.read_file(source, d.writer(), newlines=True),
        toolkit.write_file(d.reader(), target, append=True, newlines=False),
    )
    assert target.read_text() == "a\nb\n\nä\n" + source.read_text()


def test_a_reader_that_goes_ends_the_reading(tmp_path: Path) -> None:
    """Rule 3.3: when the reader has ended, the process that reads the file ends."""
    source = tmp_path / "in"
    source.write_text("x\n" * 1000)
    c = Channel()

    @process
    async def one(r: Any) -> Any:
        return await r.read()

    results = run(toolkit.read_file(source, c.writer()), one(c.reader()))
    assert hows(results) == ["<retired>", "x"]


def test_no_such_file(tmp_path: Path) -> None:
    c = Channel()
    with pytest.raises(FileNotFoundError):
        run(toolkit.read_file(tmp_path / "none", c.writer()), everything(c.reader()))


def test_what_came_before_a_poison_is_in_the_file(tmp_path: Path) -> None:
    """Rule 4.3: the values before the poison are in the file."""
    c = Channel()
    target = tmp_path / "out"

    @process
    async def poisons(w: Any) -> None:
        await w.write("kept")
        w.poison()

    results = run(poisons(c.writer()), toolkit.write_file(c.reader(), target))
    assert hows(results) == [None, "<poisoned>"]
    assert target.read_text() == "kept\n"


# --- commands -------------------------------------------------------------------------------------


def python(text: str) -> list[str]:
    return [PYTHON, "-c", text]


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_streams_and_status(b: Any) -> None:
    i, o, e = (b.weft.Channel(name) for name in "ioe")
    text = "import sys\nfor line in sys.stdin: print(line.strip()[::-1])\nprint('done', end='', file=sys.stderr)\nsys.exit(3)"
    got = b.run(
        toolkit.command(python(text), stdin=i.reader(), stdout=o.writer(), stderr=e.writer()),
        b.process(send)(i.writer(), "abc", "def"),
        b.process(receive)(o.reader()),
        b.process(receive)(e.reader()),
    )
    assert got == [3, None, ["cba", "fed"], ["done"]]


def test_bytes_and_much_of_them() -> None:
    i, o = Channel(), Channel()
    blocks = [bytes([n]) * 100_000 for n in range(10)]
    copy = "import sys, shutil; shutil.copyfileobj(sys.stdin.buffer, sys.stdout.buffer)"
    status, _, got = run(
        toolkit.command(python(copy), stdin=i.reader(), stdout=o.writer(), mode="bytes"),
        lines(i.writer(), *blocks),
        everything(o.reader()),
    )
    assert status == 0 and b"".join(got) == b"".join(blocks)


def test_a_command_that_reads_no_more() -> None:
    """Rule 3.3: a process that writes to the command meets Retired."""
    i = Channel()

    @process
    async def endless(w: Any) -> str:
        try:
            while True:
                await w.write("x")
        except Retired:
            return "told"

    assert run(toolkit.command(python("pass"), stdin=i.reader()), endless(i.writer())) == [
        0,
        "told",
    ]


def test_a_command_whose_input_never_comes() -> None:
    """The process ends when the command ends, although the writer of its input continues."""
    i, done = Channel(), Channel()

    @process
    async def holds(w: Any, r: Any) -> None:
        async for _ in r:
            pass

    @process
    async def outer(w: Any) -> Any:
        return (await Parallel(toolkit.command(python("pass"), stdin=i.reader())))[0]

    assert run(holds(i.writer(), done.reader()), outer(done.writer())) == [None, 0]


STUBBORN = (
    "import os, signal, sys, time\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "print(os.getpid(), flush=True)\n"
    "while True: time.sleep(100)"
)
PLAIN = STUBBORN.replace("signal.signal(signal.SIGTERM, signal.SIG_IGN)\n", "")


@pytest.mark.parametrize("text", [PLAIN, STUBBORN])
def test_cancelled_it_leaves_no_child(text: str) -> None:
    """Rule 6: the command is terminated, or killed if necessary, and reaped."""
    o = Channel()
    child = toolkit.command(python(text), stdout=o.writer(), grace=0.1)

    @process
    async def cancels(r: Any) -> int:
        pid = int(await r.read())
        child.cancel()
        return pid

    status, pid = run(child, cancels(o.reader()))
    assert status.how == "cancelled" and gone(pid)
    assert status.where.startswith("toolkit.py:")


def test_a_failure_elsewhere_leaves_no_child() -> None:
    """Rule 7.2: when another process fails, the command is ended and reaped."""
    o = Channel()
    pids = []

    @process
    async def fails(r: Any) -> None:
        pids.append(int(await r.read()))
        raise ValueError("elsewhere")

    with pytest.raises(ValueError, match="elsewhere"):
        run(toolkit.command(python(PLAIN), stdout=o.writer()), fails(o.reader()))
    assert gone(pids[0])


def test_poison_ends_the_child_and_spreads() -> None:
    """Rule 4.3: poison passes from the command's output to its input."""
    i, o = Channel("i"), Channel("o")

    @process
    async def poisons(r: Any) -> int:
        pid = int(await r.read())
        r.poison(7)
        return pid

    @process
    async def told(w: Any) -> Any:
        try:
            while True:
                await w.write("x")
        except Poisoned as p:
            return p.strength

    text = "import os\nprint(os.getpid(), flush=True)\nwhile True: print(input(), flush=True)"
    status, pid, strength = run(
        toolkit.command(python(text), stdin=i.reader(), stdout=o.writer()),
        poisons(o.reader()),
        told(i.writer()),
    )
    assert (status.how, strength) == ("poisoned", 7) and gone(pid)


def test_no_such_command_and_bad_use() -> None:
    with pytest.raises(FileNotFoundError):
        run(toolkit.command(["/no/such/command"]))
    with pytest.raises(BadUse, match="mode"):
        run(toolkit.command(["true"], mode="lines"))  # type: ignore[arg-type]
    i = Channel()
    with pytest.raises(BadUse, match="send bytes"):
        run(
            toolkit.command(python("input()"), stdin=i.reader(), mode="bytes"),
            lines(i.writer(), "text"),
        )


def test_no_file_descriptor_is_left() -> None:
    def some() -> None:
        i, o = Channel(), Channel()
        run(
            toolkit.command(python("print(input())"), stdin=i.reader(), stdout=o.writer()),
            lines(i.writer(), "x"),
            everything(o.reader()),
        )

    some()
    before = len(list(Path("/proc/self/fd").iterdir()))
    some()
    # An earlier test may have left some descriptors.
    assert len(list(Path("/proc/self/fd").iterdir())) <= before


# --- several of the same --------------------------------------------------------------------------


def test_clones_share_their_ends(b: Any) -> None:
    """Rule 2.3: an end is released when the last of these processes finishes."""
    c = b.weft.Channel()

    async def tells(b: Any, w: Any, what: int) -> None:
        await b.op(w.write(what))

    worker = b.process(tells)
    got = b.run(*(worker(c.writer(), 5) * 3), b.process(receive)(c.reader()))
    assert got == [None, None, None, [5, 5, 5]]


def test_clones_have_every_kind_of_argument() -> None:
    """Arguments by position, by keyword, with defaults, variable, and used in an inner function."""

    @process
    async def takes(a: Any, /, b: Any = 2, *rest: Any, k: Any, d: Any = 9, **more: Any) -> Any:
        def inner() -> Any:
            return a

        return (inner(), b, rest, k, d, more)

    one = (1, 2, (3, 4), 5, 9, {"x": 6})
    assert run(*(takes(1, 2, 3, 4, k=5, x=6).named("t") * 3)) == [one] * 3
    assert run(*(2 * takes(1, k=5))) == [(1, 2, (), 5, 9, {})] * 2


def test_clones_are_named_as_the_first() -> None:
    paths = []

    @process
    async def says() -> None:
        from weft.coroutines import current_process

        paths.append(current_process().path)  # type: ignore[union-attr]

    run(says().named("x") * 2)
    assert paths == ["main/x[0]", "main/x[1]"]
    assert says() * 0 == []


def test_clones_that_cannot_be() -> None:
    """Rule 11.1: processes and channels that cannot be copied, and wrong numbers, are refused."""

    @process
    async def says() -> None:
        pass

    p = says()
    run(p)
    with pytest.raises(BadUse, match="already started"):
        p * 2
    q = says()
    with pytest.raises(BadUse, match="the number must be"):
        q * -1
    with pytest.raises(TypeError):
        q * "x"  # type: ignore[operator]
    run(q)


def test_channel_arrays() -> None:
    cs = Channel("c", capacity=2, overflow="drop_newest") * 3
    assert [c.name for c in cs] == ["c[0]", "c[1]", "c[2]"]
    writers = -cs
    readers = cs.readers()
    assert len(readers) == len(writers) == 3

    @process
    async def fills(w: Any) -> None:
        for i in range(5):
            await w.write(i)

    run(fills(w) for w in writers)
    assert [c.stats().dropped for c in cs] == [3, 3, 3]
    assert not any(r.closed for r in readers)
    (unnamed,) = 1 * Channel()
    assert unnamed.name.startswith("test_toolkit.py:") and unnamed.name.endswith("[0]")
    cs.poison()
    with pytest.raises(Poisoned):
        cs[2].reader()
    with pytest.raises(BadUse, match="the number must be"):
        Channel() * -1
    with pytest.raises(TypeError):
        Channel() * 1.5  # type: ignore[operator]


def test_an_array_keeps_immunity() -> None:
    """Rule 4.4: the channels of an array have the immunity of the original."""
    (c,) = Channel(immunity=3) * 1
    c.poison(2)
    assert c.reader() is not None

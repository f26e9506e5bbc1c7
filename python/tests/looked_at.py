"""Programs that run while tests inspect them: their texts, and the functions that start them (rules
14.9, 14.10).

The fixture `home` (conftest.py) is the runtime directory that these programs and the tests share.
"""

from __future__ import annotations

import contextlib
import subprocess
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from children import child, weft

from weft._watching import visit as _visit

PIPE = """
    import sys, time
    from weft import Channel, process, run

    @process
    async def source(out):
        n = 0
        while True:
            await out.write(n)
            n += 1

    @process
    async def enrich(orders, priced):
        async for n in orders:
            time.sleep(0.01)
            await priced.write(n)

    @process
    async def store(priced):
        async for n in priced:
            if n == 2:
                print("ready", flush=True)

    a, b = Channel("orders"), Channel("priced", capacity=4)
    run(source(a.writer()), enrich(a.reader(), b.writer()), store(b.reader()))
"""

WAITS = """
    from weft import Channel, process, run

    @process
    async def says(out):
        print("ready", flush=True)
        await out.write(1)

    @process
    async def waits(silent):
        await silent.read()

    c, d = Channel("given"), Channel("silent")
    keep = c.reader(), d.writer()
    import weft
    with weft.Outside(due=True):
        run(says(c.writer()), waits(d.reader()))
"""


@contextlib.contextmanager
def running(
    tmp_path: Path, text: str, *arguments: str, first: str = "ready", **how: Any
) -> Iterator[subprocess.Popen[str]]:
    """Runs a program, and yields it once it has printed its first line."""
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    with child("-m", "weft.cli", "run", *arguments, str(path), **how) as p:
        assert p.stdout is not None and p.stderr is not None
        line = p.stdout.readline()
        assert line.startswith(first), line + p.stderr.read()
        yield p


LOOKS = 25


def looks_until(shows: Callable[[Any], object], pid: int, interval: float = 0.4) -> Any:
    """Looks at the program until `shows` accepts a look, and returns that look.

    A look lasts for a part of a second. On a busy machine a process may wait for a CPU meanwhile,
    or the look may be taken at an unusual moment. So a single look does not show what the program
    usually does. The last of LOOKS looks is returned whatever it shows, so that the test's own
    assertions report the fault.
    """
    with _visit.Looking(pid) as looking:
        looking.look(0.05)  # after this look, the channel of a waiting thread is known
        for _ in range(LOOKS):
            network = looking.look(interval)
            if shows(network):
                break
    return network


def weft_until(shows: Callable[[str], object], *arguments: str) -> str:
    """Runs the command `weft` until `shows` accepts its output, and returns that output. Each run
    is one look, so it is repeated for the same reasons as in looks_until()."""
    for _ in range(LOOKS):
        done = weft(*arguments)
        assert done.returncode == 0, done.stderr
        if shows(done.stdout):
            break
    return done.stdout


def shares(network: Any, *wanted: tuple[str, float, tuple[str, ...]]) -> bool:
    """Returns whether each wanted process had one of the given states for more than the given share
    of the look's time. An entry of `wanted` holds the path, the share and the states."""
    rows = {row.path: row for row in network.rows}
    return all(path in rows and rows[path].part(*things) > least for path, least, things in wanted)


def refused(pid: int) -> str:
    with pytest.raises(_visit.NoLook) as error:
        _visit.look(pid)
    return str(error.value)

"""Signals that ask a program where its processes are (rules 14.9, 14.10)."""

from __future__ import annotations

import signal
import sys
import textwrap
from pathlib import Path

import pytest
from children import child, until_asleep
from looked_at import WAITS, running

from weft._watching import visit as _visit

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux's /proc")


@pytest.mark.parametrize("backend", ["coroutines", "threads", "greenlets"])
def test_sigusr1_says_where_everybody_is(home: Path, tmp_path: Path, backend: str) -> None:
    """Rule 14.10: the answer has the form of `weft top --once`, and the program continues."""
    with running(tmp_path, WAITS, "--on", backend) as p:
        assert p.stderr is not None
        until_asleep(p.pid)
        lines = []
        for _ in range(2):
            p.send_signal(signal.SIGUSR1)
            assert p.stderr.readline() == "weft: the processes are:\n"
            lines.append(sorted(p.stderr.readline().strip() for _ in range(2)))
        rows = [row for row in _visit.look(p.pid, 0.05).rows if row.kind != "main"]
        p.send_signal(signal.SIGINT)
        err = p.communicate()[1]
    assert lines[0] == lines[1] == sorted(_visit.where_lines(rows, p.pid)), lines
    assert all(line in err for line in lines[0]), err


def test_a_signal_is_answered_while_the_main_thread_computes(home: Path) -> None:
    text = """
        import os, signal, sys
        from weft.coroutines import process, run
        from weft.observe import on_signal

        on_signal(signal.SIGUSR2)

        @process
        async def computes():
            print("ready", flush=True)
            while True:
                pass

        run(computes())
    """
    with child("-c", textwrap.dedent(text)) as p:
        assert p.stdout is not None and p.stderr is not None and p.stdout.readline()
        p.send_signal(signal.SIGUSR2)
        assert p.stderr.readline() == "weft: the processes are:\n"
        assert "main/computes: running at <string>:" in p.stderr.readline()


def test_a_deadlock_is_declared_beside_on_signal() -> None:
    """Rule 10.3: a deadlock is raised, because the handler of on_signal() does not count as one
    that may act."""
    text = """
        import signal
        from weft.coroutines import Channel, Deadlock, process, run
        from weft.observe import on_signal

        on_signal()

        @process
        async def reads(c):
            await c.read()

        c = Channel("c")
        keep = c.writer()
        try:
            run(reads(c.reader()))
        except Deadlock:
            print("deadlock")
    """
    with child("-c", textwrap.dedent(text)) as p:
        assert p.communicate()[0] == "deadlock\n"


def test_signals_that_have_another_meaning() -> None:
    from weft.errors import BadUse
    from weft.observe import on_signal

    for number in (signal.SIGKILL, signal.SIGINT, 0, 12345):
        with pytest.raises(BadUse, match=r"take signal\.SIGUSR1"):
            on_signal(number)

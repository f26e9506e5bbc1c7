"""Tests that the old names share channels with Weft's own names, and that Weft's newer rules leave
the old names unchanged.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from typing import Any

import pytest

from weft._backends import io as _io


def test_programs_know_nothing_of_a_result_that_says_why_it_is_none() -> None:  # rule 7.1
    from weft.compat import apycsp
    from weft.compat.pycsp import threads as pycsp

    async def main() -> Any:
        c = apycsp.Channel("c")
        await c.poison()
        return await apycsp.Parallel(apycsp_reads(c.read))

    @apycsp.process
    async def apycsp_reads(cin: Any) -> Any:
        return await cin()

    assert asyncio.run(main()) == [None]

    @pycsp.process
    def pycsp_reads(cin: Any) -> Any:
        return cin()

    c = pycsp.Channel("c")
    pycsp.retire(-c)
    assert pycsp.Parallel(pycsp_reads(+c)) == [None]
    pycsp.shutdown()


@pytest.mark.parametrize("select_of", ["PriSelect", "FairSelect", "AltSelect", "Alternation"])
def test_a_choice_of_pycsp_ends_with_the_first_channel_that_retires(select_of: str) -> None:
    from weft.compat.pycsp import current as p

    ending, other = p.Channel("ending"), p.Channel("other")
    writer, kept = ending.writer(), other.writer()
    guards = [p.InputGuard(ending.reader()), p.InputGuard(other.reader())]
    p.retire(writer)
    with pytest.raises(p.ChannelRetireException):
        if select_of == "Alternation":
            p.Alternation([{g.g[0]: None} for g in guards]).select()
        else:
            getattr(p, select_of)(*guards)
    p.retire(kept)
    p.shutdown()


def test_calls_of_io_that_wait_for_each_other_all_run() -> None:
    """Rule 7.9: more calls than the pool has threads can wait for each other."""
    from weft.compat.pycsp import greenlets as pycsp

    many = _io.LIMIT + 7
    together = threading.Barrier(many)

    @pycsp.io
    def meets() -> int:
        return together.wait(280)

    @pycsp.process
    def calls() -> int:
        return int(meets())

    assert sorted(pycsp.Parallel([calls() for _ in range(many)])) == list(range(many))
    pycsp.shutdown()


def test_without_the_extension_module_it_says_what_it_needs() -> None:
    code = "try: import weft.compat.apycsp\nexcept ImportError as e: print(e)\nelse: raise 1"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "WEFT_PURE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "extension module" in done.stdout


def test_it_needs_nothing_of_the_commands() -> None:
    code = "import sys, weft.compat.pycsp.threads\nassert not {'click', 'rich'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)

"""Tests programs whose threads gevent has replaced: networks work, and operations that cannot work
are refused (rule 11.1).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from test_processes import nobody_is_left, program  # noqa: F401

pytest.importorskip("gevent", reason="gevent is not installed")

PATCHED = """
import gevent.monkey
gevent.monkey.patch_all()
"""

LATE = """
from weft.processes import Executor, Hosts, process, run
from weft.coroutines import io

@io
def called():
    return 1

@process
def one():
    return 1

import weft.coroutines as co

@co.process
async def calls():
    return await called()

if __name__ == "__main__":
    import gevent.monkey
    gevent.monkey.patch_all()
    def executor():
        with Executor(1) as pool:
            return pool.submit(int, "1").result()
    for what in (lambda: run(one()), lambda: Hosts(1), executor, lambda: run(calls())):
        try:
            print(what())
        except BaseException as error:
            print(type(error).__name__, error)
"""

NETWORK = """
from weft.{} import Channel, process, run, sleep, timeout

@process
{}def gives(out):
    for value in range(3):
        {}out.write(value)
        {}sleep(0.001)

@process
{}def takes(inp):
    return [{}inp.read() for _ in range(3)]

c = Channel("c")
print(run(gives(c.writer()), takes(c.reader())))
"""


@pytest.mark.parametrize("module", ["weft.processes", "weft.net"])
def test_os_processes_are_refused_at_import(module: str, tmp_path: Path) -> None:
    result = program(tmp_path, f"{PATCHED}import {module}")
    assert result.returncode == 1
    last = result.stderr.splitlines()[-1]
    assert "gevent has replaced those of this program" in last or "weft.net needs" in last
    assert "program that is not patched" in last or "weft.net needs" in last


def test_io_is_refused_where_it_decorates(tmp_path: Path) -> None:
    result = program(tmp_path, f"{PATCHED}from weft.coroutines import io\n@io\ndef f(): pass")
    assert "BadUse: @io needs threads of the system, and gevent" in result.stderr


def test_a_program_that_is_patched_later_is_refused_at_the_call(tmp_path: Path) -> None:
    result = program(tmp_path, LATE)
    lines = result.stdout.splitlines()
    assert len(lines) == 4, result.stdout + result.stderr
    assert all("BadUse" in line and "gevent has replaced" in line for line in lines), lines


@pytest.mark.parametrize("backend", ["coroutines", "threads", "greenlets"])
def test_networks_within_one_os_process_work(backend: str, tmp_path: Path) -> None:
    words = ("async ", "await ") if backend == "coroutines" else ("", "")
    of, awaits = words
    text = NETWORK.format(backend, of, awaits, awaits, of, awaits)
    result = program(tmp_path, PATCHED + text)
    assert (result.stdout, result.stderr) == ("[None, [0, 1, 2]]\n", "")

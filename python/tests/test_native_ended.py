"""Tests native components that end their thread (rules 7.14, 16.1), or throw something that is not
text."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from components import HERE, collect, needs_compiler, source

import weft.native
import weft.threads as th
from weft.native import ComponentError
from weft.processes import BadUse, Channel, Hosts

pytestmark = needs_compiler
SOURCE = HERE / "component_ended.cpp"


@pytest.fixture(scope="module")
def ended() -> Any:
    return weft.native.load(SOURCE)


@pytest.fixture(scope="module")
def host() -> Iterator[Hosts]:
    with Hosts(1) as one:
        yield one


def passes(component: Any, how: str, got: list[Any], **where: Any) -> None:
    """Runs a network that fails. Appends to `got` the values that the reader has read."""
    a, b = Channel("a"), Channel("b")

    @th.process
    def reads(inp: Any) -> None:
        got.extend(inp)

    th.Parallel(
        source(a.writer(), [7]), component(a.reader(), b.writer(), how, **where), reads(b.reader())
    )


@pytest.mark.parametrize("how", ["exit", "cancel"])
@pytest.mark.parametrize("where", ["thread", "process", "a host"])
def test_a_process_whose_thread_it_ends_has_failed(
    ended: Any, host: Hosts, where: Any, how: str
) -> None:  # the cancelled reader may or may not have read the value
    """The component's ends are closed, the values that it wrote have arrived, and other processes
    continue in the same OS process."""
    on = host if where == "a host" else where
    for _ in range(2):
        got: list[Any] = []
        with pytest.raises(BadUse, match=r"main/passes: its thread was ended, by pthread_exit"):
            passes(ended.passes, how, got, on=on)
        assert got in ([7], [])  # the cancelled reader may or may not have read the value
    a, b = Channel("a"), Channel("b")
    assert th.Parallel(
        source(a.writer(), [8]),
        ended.passes(a.reader(), b.writer(), "returns", on=on),
        collect(b.reader()),
    )[2] == [8]


@pytest.mark.parametrize("name", ["passes", "passes_task"])
def test_what_it_throws_may_be_no_text(ended: Any, name: str) -> None:  # rule 16.1
    with pytest.raises(ComponentError, match="std::runtime_error: no \ufffd\ufffd text"):
        passes(getattr(ended, name), "bytes", [])


def test_on_the_pool_the_program_ends_and_says_which_process_it_was(ended: Any) -> None:
    """A process that ends a thread of the pool ends the program, because other processes need that
    thread."""
    program = (
        "import weft.native, weft.threads as th\n"
        f"component = weft.native.load({str(SOURCE)!r})\n"
        "a, b = th.Channel('a'), th.Channel('b')\n"
        "writes = th.process(lambda out: out.write(7))\n"
        "reads = th.process(lambda inp: list(inp))\n"
        "th.Parallel(writes(a.writer()), reads(b.reader()),\n"
        "            component.passes_task(a.reader(), b.writer(), 'exit'))\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.returncode == -6, result.stderr
    assert "weft: main/passes_task: pthread_exit() or pthread_cancel() here" in result.stderr

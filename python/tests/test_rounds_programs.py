"""Deadlock over Python and C++ programs that share channels (WIRE.md 10.8, rule 10.1)."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import library_object
import os_process_targets_stuck as targets_stuck
import pytest
from components import needs_compiler

import weft.threads as th
from weft import _helper_threads
from weft._distributed_deadlock import programs as _programs
from weft._distributed_deadlock import rounds as _rounds
from weft._extension import native
from weft.processes import Channel, Deadlock, Parallel, PeerDied

pytestmark = [needs_compiler, pytest.mark.together]  # all tests use one program

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("beside") / "beside"
    return library_object.program(made, HERE / "beside.cpp")


class Beside:
    """The C++ program, which reads from `a` and writes to `b`; a byte at `person` lets it begin."""

    def __init__(self, program: Path, how: str) -> None:
        _rounds.answer_programs()
        ours, theirs = socket.socketpair()
        there, self.person = os.pipe()
        self.process = subprocess.Popen(
            [program, how, str(theirs.fileno()), str(there)],
            pass_fds=[theirs.fileno(), there],
            stdout=subprocess.PIPE,
            text=True,
        )
        theirs.close()
        os.close(there)
        self.link = native._Link(ours.detach(), "python")
        self.a, self.b = Channel("a"), Channel("b")
        self.link.give(self.a.reader(), "in")
        self.link.give(self.b.writer(), "out")

    def end(self) -> tuple[int, str]:
        out, _ = self.process.communicate(timeout=280)
        return self.process.returncode, out

    def close(self) -> None:
        self.link.close()
        os.close(self.person)
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


@pytest.fixture
def beside(program: Path) -> Iterator[Callable[[str], Beside]]:
    made: list[Beside] = []

    def start(how: str) -> Beside:
        made.append(Beside(program, how))
        return made[-1]

    yield start
    for one in made:
        one.close()


def line_below(text: str) -> str:
    lines = Path(targets_stuck.__file__).read_text().splitlines()
    return f"os_process_targets_stuck.py:{lines.index(text) + 2}"


def test_a_deadlock_is_told_in_both_with_names_and_lines_of_both(beside: Any) -> None:  # wire 10.8
    other = beside("passes")
    with pytest.raises(Deadlock) as caught:
        Parallel(targets_stuck.pass_on_here(other.b.reader(), other.a.writer()))
    report = caught.value.report
    assert "2 processes are blocked" in report and "they are in 2 programs" in report
    here = f"in python ({os.getpid()})"
    there = f"in beside ({other.process.pid})"
    line = line_below("def pass_on_here(inp: Any, out: Any) -> None:")
    assert f"main/pass_on_here: read 'b' at {line}, {here}" in report
    assert "main/passes: read 'in a' at beside.cpp:" in report and there in report
    assert "main/pass_on_here in python waits for main/passes in beside" in report
    assert "main/passes in beside waits for main/pass_on_here in python" in report
    assert caught.value.knot == ["main/pass_on_here in python", "main/passes in beside"]
    assert [(p.path, p.places) for p in caught.value.processes] == [("main/pass_on_here", ("'b'",))]
    assert other.end() == (42, report + "\n")


def test_it_is_the_same_if_the_other_program_finds_it(
    beside: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_rounds, "_ask_beyond_hosts", lambda ring: False)
    other = beside("passes")
    with pytest.raises(Deadlock) as caught:
        Parallel(targets_stuck.pass_on_here(other.b.reader(), other.a.writer()))
    assert other.end() == (42, caught.value.report + "\n")
    assert caught.value.processes[0].path == "main/pass_on_here"


def test_the_ends_that_go_with_who_has_told_come_too_late(
    beside: Any, monkeypatch: pytest.MonkeyPatch
) -> None:  # wire 10.6, 10.8
    """The other program reports the deadlock and ends, and its ends are closed before this program
    has acted on the report. This program raises Deadlock nevertheless..
    """
    monkeypatch.setattr(_rounds, "_ask_beyond_hosts", lambda ring: False)
    other = beside("passes")
    declare = _rounds._declare

    def late(*arguments: Any, **more: Any) -> None:
        other.process.wait()
        declare(*arguments, **more)

    monkeypatch.setattr(_rounds, "_declare", late)
    with pytest.raises(Deadlock, match="they are in 2 programs"):
        Parallel(targets_stuck.pass_on_here(other.b.reader(), other.a.writer()))


def test_a_root_answers_for_its_hosts(beside: Any) -> None:
    other = beside("passes")
    c = Channel("c")
    with pytest.raises(Deadlock) as caught:
        Parallel(
            targets_stuck.pass_on(other.b.reader(), c.writer()),
            targets_stuck.pass_on_here(c.reader(), other.a.writer()),
        )
    report = caught.value.report
    assert "3 processes are blocked" in report and "they are in 3 programs" in report
    assert "read 'c'" in report and "read 'b'" in report and "read 'in a'" in report
    assert len(caught.value.knot) == 3
    assert other.end() == (42, report + "\n")


def looked_at(times: int, monkeypatch: pytest.MonkeyPatch, then: Callable[[], None]) -> list[bool]:
    """Makes rounds with other programs call `then` after `times` of them. Returns a list of the
    rounds' results."""
    found: list[bool] = []
    ask = _rounds._ask_programs

    def asks(ring: Any) -> Any:
        got = ask(ring)
        found.append(_programs.still(*got))
        if len(found) == times:
            then()
        return got

    monkeypatch.setattr(_rounds, "_ask_programs", asks)
    return found


def test_a_program_that_waits_for_a_person_keeps_it_from_being_told(
    beside: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = beside("person")
    found = looked_at(3, monkeypatch, lambda: os.write(other.person, b"*") and None)
    got = Parallel(
        th.process(lambda out: out.write(7))(other.a.writer()),
        th.process(lambda inp: inp.read())(other.b.reader()),
    )
    assert got[1] == 7
    assert found[:3] == [False] * 3
    assert other.end()[0] == 0


def test_a_program_that_answers_no_rounds_may_do_anything(
    beside: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = beside("silent")
    late = threading.Event()
    kept = [other.a.writer()]
    found = looked_at(3, monkeypatch, late.set)

    def writes() -> None:
        # The thread counts as a helper thread, so it does not prevent the report of the deadlock.
        _helper_threads.add()
        late.wait(280)
        kept.pop().write("late")

    thread = threading.Thread(target=writes)
    thread.start()
    got = Parallel(th.process(lambda inp: inp.read())(other.b.reader()))
    thread.join()
    assert got == ["late"]
    assert found[:3] == [False] * 3
    assert other.end()[0] == 0


def test_a_program_that_is_killed_between_two_rounds_is_a_death(
    beside: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = beside("person")
    looked_at(1, monkeypatch, other.process.kill)
    with pytest.raises(PeerDied):
        Parallel(th.process(lambda inp: inp.read())(other.b.reader()))
    assert other.end()[0] == -9


def test_networks_that_end_well_after_many_looks(beside: Any) -> None:
    other = beside("passes")

    @th.process
    def slowly(out: Any, inp: Any) -> Any:
        th.sleep(0.3)  # during this time all other processes wait
        out.write("well")
        return inp.read()

    assert Parallel(slowly(other.a.writer(), other.b.reader())) == ["well"]
    assert other.end()[0] == 0

"""Requests of compat's pycsp to the program that is the home of a channel
(weft/compat/pycsp/_asking.py)."""

from __future__ import annotations

from typing import Any

import pytest

from weft import threads as th
from weft.compat.pycsp._asking import Asking, Turn, channels
from weft.errors import PeerDied, Retired


@th.process
def answers(requests: Any, log: Any, received: Any, go_on: Any) -> list[Any]:
    """Answers each question with the question itself. The first answer is sent only after
    `go_on`."""
    seen = []
    for number, *what in requests:
        seen.append(what)
        if len(seen) == 1:
            received.write(None)
            go_on.read()
        log.write((number, what[0]))
    return seen


@th.process
def asks(line: Asking, what: str) -> Any:
    return line.ask(what)


@th.process
def reads(r: Any) -> Any:
    return r.read()


def test_a_cancelled_reader_leaves_no_answer_for_the_next() -> None:  # rule 6.2
    asked, message = channels()
    received, go_on = th.Channel("came"), th.Channel("go on")
    line = Asking(asked.writer(), message.reader())
    arrived, release = received.reader(), go_on.writer()
    with th.Group() as g:
        server = g.start(
            answers(asked.reader(), message.writer(), received.writer(), go_on.reader())
        )
        first = g.start(asks(line, "one"))
        arrived.read()
        first.cancel()
        release.write(None)
        assert line.ask("two", 5) == "two"
        assert line.ask("three") == "three"
        line._asked.retire()
    assert server.result == [["one"], ["two", 5], ["three"]]


def test_each_of_many_gets_its_own_answer() -> None:
    asked, message = channels()
    received, go_on = th.Channel("came"), th.Channel("go on", capacity=1)
    line = Asking(asked.writer(), message.reader())
    arrived, release = received.reader(), go_on.writer()
    release.write(None)
    with th.Group() as g:
        g.start(answers(asked.reader(), message.writer(), received.writer(), go_on.reader()))
        g.start(reads(arrived))
        questions = [f"question {i}" for i in range(20)]
        assert th.Parallel(*[asks(line, q) for q in questions]) == questions
        line._asked.retire()


def test_a_program_that_should_answer_is_gone() -> None:
    asked, message = channels()
    line = Asking(asked.writer(), message.reader())
    asked.reader().retire()
    with pytest.raises((PeerDied, Retired)):
        line.ask("one")
    with pytest.raises((PeerDied, Retired)):  # the failed question has returned the turn
        line.ask("two")


def test_a_turn_is_given_back_by_who_fails() -> None:
    turn = Turn()
    with pytest.raises(ZeroDivisionError), turn:
        raise ZeroDivisionError
    with turn:
        pass

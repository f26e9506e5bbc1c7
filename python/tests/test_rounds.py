"""Tests the rounds of a deadlock over OS processes (WIRE.md 10.1 to 10.5), with hosts that the test
simulates: wrong answers, late answers, hosts that die in the middle, two rounds at once.
"""

from __future__ import annotations

import pickle
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from weft._distributed_deadlock import knots as _knots
from weft._distributed_deadlock import rounds as _rounds
from weft._distributed_deadlock.members import STATE


def space(incarnation: int, waits: bool = True, sessions: Any = ()) -> _rounds.Space:
    return _rounds.Space(
        incarnation, incarnation, waits, list(sessions), [], [], [], [], False, {}, {}
    )


def answer(question: bytes, reports: Any) -> bytes:
    packed = pickle.dumps(reports)
    return question + struct.pack("!I", len(packed)) + packed


class Host:
    """A host as its parent sees it. The test decides what the host does."""

    def __init__(self) -> None:
        ours, self.there = socket.socketpair()
        self.member = _rounds.Member(ours)

    def asked(self) -> bytes:
        return self.there.recv(_rounds.ASKED, socket.MSG_WAITALL)

    def says(self, what: bytes) -> None:
        self.there.sendall(what)

    def close(self) -> None:
        self.there.close()
        self.member.close()


@pytest.fixture
def hosts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Host]]:
    """Makes hosts. Rounds ask only these hosts. The thread that looks on its own, which an earlier
    test may have started, does not ask these hosts, because a round of the test would give way to
    that thread. This address space is number 1."""
    made: list[Host] = []
    over = threading.Event()
    monkeypatch.setattr(_rounds, "_attend", lambda ring: over.wait())
    ask = _rounds._all_spaces

    def all_spaces() -> list[_rounds.Space]:
        if threading.current_thread().name == "weft: asks hosts":
            raise _rounds._Gone
        return ask()

    monkeypatch.setattr(_rounds, "_all_spaces", all_spaces)
    monkeypatch.setattr(_rounds, "_here", lambda ready: [])
    members: set[_rounds.Member] = set()
    monkeypatch.setattr(_rounds, "_members", members)
    monkeypatch.setattr(_rounds, "_mine", lambda asked: space(1))

    def start() -> Host:
        made.append(Host())
        members.add(made[-1].member)
        return made[-1]

    yield start
    over.set()
    for one in made:
        one.close()


def in_thread(f: Callable[[], Any]) -> Callable[[], Any]:
    """Runs a function beside the test. Returns a function that waits for its end and returns its
    result, or its exception."""
    got: list[Any] = []

    def run() -> None:
        try:
            got.append(f())
        except BaseException as e:
            got.append(e)

    thread = threading.Thread(target=run)
    thread.start()

    def result() -> Any:
        thread.join()
        return got[0]

    return result


# --- the answers of a host ------------------------------------------------------------------------


def test_an_answer_comes_in_any_pieces(hosts: Any) -> None:  # wire 10.2
    h = hosts()
    h.member.ask()
    for byte in answer(h.asked(), [space(2)])[:-1]:
        h.says(bytes([byte]))
        assert h.member.take() is None and not h.member.gone
    h.says(answer(b"=====", [space(2)])[-1:])
    assert h.member.take() == [space(2)]


def test_the_answer_to_an_earlier_question_is_none(hosts: Any) -> None:  # wire 10.2
    h = hosts()
    h.member.ask()
    first = h.asked()
    h.member.ask()
    second = h.asked()
    assert first != second
    h.says(answer(first, [space(2, waits=False)]))
    assert h.member.take() is None
    h.says(answer(second, [space(2)]))
    assert h.member.take() == [space(2)]


def test_of_two_answers_at_once_the_one_that_was_asked_for_counts(hosts: Any) -> None:  # wire 10.2
    h = hosts()
    h.member.ask()
    first = h.asked()
    h.member.ask(_rounds.WHERE)
    second = h.asked()
    h.says(answer(first, [space(2)]) + b"!" + answer(second, ["a line"]))
    assert h.member.take() == ["a line"]
    assert h.member.stands  # wire 10.1: an unasked report between rounds is not lost


def test_a_host_that_dies_within_its_answer_has_gone(hosts: Any) -> None:  # wire 10.2
    h = hosts()
    h.member.ask()
    outcome = answer(h.asked(), [space(2)])
    h.says(outcome[: len(outcome) // 2])
    h.there.close()
    assert h.member.take() is None and not h.member.gone
    assert h.member.take() is None and h.member.gone


@pytest.mark.parametrize(
    "nonsense",
    [
        b"nonsense",
        b"=\0\0\0\0\0\0\0\x04\x80\x04]q",  # a pickle that breaks off
        b"=\0\0\0\0\xff\xff\xff\xff",  # an answer of four gigabytes
    ],
    ids=["no answer", "no pickle", "too long"],
)
def test_a_host_that_says_what_is_no_answer_is_not_heard_any_more(
    hosts: Any, nonsense: bytes
) -> None:  # wire 10.2
    h = hosts()
    h.member.ask()
    question = h.asked()
    h.says(question + nonsense[_rounds.ASKED :] if nonsense[:1] == b"=" else nonsense)
    assert h.member.take() is None and h.member.gone


# --- a round --------------------------------------------------------------------------------------


def test_a_round_has_what_all_say(hosts: Any) -> None:  # wire 10.2
    one, two = hosts(), hosts()
    result = in_thread(_rounds._all_spaces)
    two.says(answer(two.asked(), [space(3), space(4)]))
    one.says(answer(one.asked(), [space(2)]))
    assert sorted(s.incarnation for s in result()) == [1, 2, 3, 4]


def test_a_host_that_dies_in_the_middle_voids_the_round(hosts: Any) -> None:  # wire 10.2
    one, two = hosts(), hosts()
    result = in_thread(_rounds._all_spaces)
    one.says(answer(one.asked(), [space(2)]))
    two.asked()
    two.there.close()
    assert isinstance(result(), _rounds._Gone)


def test_so_does_one_that_could_not_tell(hosts: Any) -> None:  # wire 10.2
    """A host whose own host has ended cannot report the state of that host, and counts as ended
    too."""
    one = hosts()
    result = in_thread(_rounds._all_spaces)
    one.says(answer(one.asked(), []))
    assert isinstance(result(), _rounds._Gone)


def test_so_does_one_that_says_what_is_no_answer(hosts: Any) -> None:  # wire 10.2
    one = hosts()
    result = in_thread(_rounds._all_spaces)
    one.says(one.asked() + b"\0\0\0\x01?")
    assert isinstance(result(), _rounds._Gone)


def test_what_comes_late_of_a_void_round_is_not_taken_for_the_next(hosts: Any) -> None:  # wire 10.3
    """Otherwise a host that continued between the two rounds would be found in the state of the
    first round."""
    one, two = hosts(), hosts()
    result = in_thread(_rounds._all_spaces)
    late = one.asked()
    two.asked()
    two.there.close()
    assert isinstance(result(), _rounds._Gone)
    _rounds._members.discard(two.member)
    result = in_thread(_rounds._all_spaces)
    again = one.asked()
    one.says(answer(late, [space(2, waits=True)]))
    one.says(answer(again, [space(2, waits=False)]))
    assert [s.waits for s in result()] == [True, False]


def test_two_rounds_at_once_have_an_answer_each(hosts: Any) -> None:  # wire 10.3
    """Each round has its own answers: the second begins when the first has ended, or one round
    gives way to the other and starts again.
    """
    one = hosts()
    results = [in_thread(_rounds._all_spaces) for _ in range(2)]
    answers: list[bytes] = []

    def says() -> None:
        while question := one.asked():
            answers.append(question)
            one.says(answer(question, [space(1 + len(answers))]))

    speaker = threading.Thread(target=says)
    speaker.start()
    first, second = (r()[1].incarnation for r in results)
    one.member.hang_up()
    speaker.join()
    assert first != second and len(set(answers)) == len(answers)


# --- a host that is stopped -----------------------------------------------------------------------


def test_one_that_does_not_answer_holds_up_nobody_who_leaves(hosts: Any) -> None:  # rule 14.7
    stopped = hosts()
    result = in_thread(_rounds._all_spaces)
    stopped.asked()
    leaver = hosts().member
    # If leave() wakes late, the round asks again before leave() removes the member.
    _rounds._members.discard(leaver)
    _rounds.leave(leaver)
    stopped.says(answer(stopped.asked(), [space(2)]))  # the host continues, and is asked again
    assert [s.incarnation for s in result()] == [1, 2]


def test_nor_who_asks_the_others(hosts: Any) -> None:  # rule 14.7
    stopped, other = hosts(), hosts()
    result = in_thread(_rounds._all_spaces)
    stopped.asked()
    other.says(answer(other.asked(), [space(3)]))
    where = in_thread(
        lambda: _rounds.ask([stopped.member, other.member], _rounds.WHERE, None, 280.0)
    )
    # If the second thread wakes late, the first thread asks again before it gives way once more.
    for one in (stopped, other):
        while (question := one.asked())[:1] == STATE:
            pass
        assert question[:1] == _rounds.WHERE
    other.says(answer(question, ["a line"]))
    stopped.member.hang_up()
    assert where() == ([(other.member, ["a line"])], [])
    assert isinstance(result(), _rounds._Gone)


def test_one_that_has_left_meanwhile_keeps_nobody_from_being_heard(
    hosts: Any,
) -> None:  # rule 14.7
    """The round listed the host before the host left. In an earlier version all other hosts then
    counted as silent, and so as lost.
    """
    left, other = hosts(), hosts()
    whom = [left.member, other.member]
    _rounds.leave(left.member)
    where = in_thread(lambda: _rounds.ask(whom, _rounds.WHERE, None, 280.0))
    other.says(answer(other.asked(), ["a line"]))
    assert where() == ([(other.member, ["a line"])], [])


def test_one_that_hears_nothing_is_asked_all_the_same(hosts: Any) -> None:  # rule 14.7
    """The host's socket is full. In an earlier version the full socket delayed the asking thread
    forever."""
    stopped = hosts()
    for _ in range(10_000):
        stopped.member.ask()
    stopped.member.ask(_rounds.FOLLOW, "more")
    assert not stopped.member.gone


def test_a_handler_amid_this_threads_own_question_asks_nothing(hosts: Any) -> None:  # rule 6.7
    """A handler that asked would take the answers to the thread's question for its own, and no code
    would take the answers to the handler's question.
    """
    one = hosts()
    one.member.ask(_rounds.FOLLOW, "more")
    with _rounds._asking, _rounds._asking.lock:
        assert _rounds.ask([one.member], _rounds.WHERE, None, 280.0) == ([], [one.member])
    assert one.asked()[:1] == _rounds.FOLLOW


# --- the root looks -------------------------------------------------------------------------------

STILL = [space(1, sessions=[(2, 5, 7)]), space(2, sessions=[(1, 7, 5)])]
MOVED = [space(1, sessions=[(2, 6, 7)]), space(2, sessions=[(1, 7, 6)])]
RUNS = [space(1), space(2, waits=False)]
GONE = _rounds._Gone()


@pytest.fixture
def look(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., tuple[int, int, bool]]]:
    """Yields a function that looks, with the given rounds, and returns how many rounds were asked,
    how many deadlocks were reported, and whether another look follows.
    """
    ring, bell = socket.socketpair()
    bell.setblocking(False)
    monkeypatch.setattr(_rounds, "_bell", bell.fileno())
    monkeypatch.setattr(_rounds, "_answers", False)
    monkeypatch.setattr(_rounds, "AGAIN", (0,) * len(_rounds.AGAIN))
    # The thread that asks hosts may still look on behalf of an earlier test. That thread uses the
    # real rounds.
    here, really = threading.get_ident(), _rounds._all_spaces

    def looks(*rounds: Any, rung: bytes = b"") -> tuple[int, int, bool]:
        left = list(rounds)
        log: list[Any] = []

        def asks() -> Any:
            if threading.get_ident() != here:
                return really()
            one = left.pop(0)
            if isinstance(one, Exception):
                raise one
            return one

        monkeypatch.setattr(_rounds, "_all_spaces", asks)

        def tell(spaces: Any) -> None:
            if threading.get_ident() == here:
                log.append(spaces)

        monkeypatch.setattr(_knots, "tell", tell)
        monkeypatch.setattr(_rounds, "AGAIN", (0.001,) * 5 if rung else (0,) * 5)
        if rung:
            bell.send(rung)
        _rounds._look(ring)
        ring.setblocking(False)
        try:
            again = b"!" in ring.recv(100)
        except BlockingIOError:
            again = False
        ring.setblocking(True)
        return len(rounds) - len(left), len(log), again

    yield looks
    ring.close()
    bell.close()


def test_two_rounds_alike_are_a_deadlock(look: Any) -> None:  # wire 10.3
    assert look(STILL, STILL) == (2, 1, False)


def test_one_that_has_moved_between_the_rounds_is_none(look: Any) -> None:  # wire 10.3
    """The host is asked again, and the deadlock is reported once the host no longer moves."""
    assert look(STILL, MOVED, STILL, STILL) == (4, 1, False)


def test_one_that_went_on_between_the_rounds_is_none(look: Any) -> None:  # wire 10.3
    assert look(STILL, RUNS, RUNS, RUNS, RUNS, RUNS) == (6, 0, False)


def test_a_root_asks_five_times_and_then_when_it_is_told_anew(look: Any) -> None:  # wire 10.5
    assert look(*[RUNS] * 9) == (5, 0, False)
    assert look(*[RUNS] * 9, rung=b"!") == (5, 0, True)


def test_a_host_that_goes_between_the_rounds_is_no_deadlock(look: Any) -> None:  # wire 10.2
    assert look(STILL, GONE, STILL, STILL) == (4, 1, False)
    assert look(*[GONE] * 9) == (5, 0, False)


def test_one_that_leaves_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # rules 10.1, 11.4
    """A host has ended, but a process that it forked still holds its socket. The round must not
    wait for that host."""
    # With this slice, the asking thread gives way to no other thread during the test.
    monkeypatch.setattr(_rounds, "SLICE", 280.0)
    ours, of_fork = socket.socketpair()
    member = _rounds.Member(ours)
    _rounds.join(member)
    got: list[str] = []

    def asks() -> None:
        try:
            _rounds._all_spaces()
        except _rounds._Gone:
            got.append("gone")

    asking = threading.Thread(target=asks)
    asking.start()
    of_fork.recv(_rounds.ASKED, socket.MSG_WAITALL)  # from now on the round waits for an answer
    _rounds.leave(member)
    asking.join()
    of_fork.close()
    assert got == ["gone"]

"""Tests rounds with another program, which the test simulates frame by frame (WIRE.md 10.6 to
10.8): wrong answers, no answers, two rounds at once, a death in the middle, and frames that are not
reports.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

import weft.threads as th
from weft import _helper_threads
from weft._distributed_deadlock import programs as _programs
from weft._distributed_deadlock import rounds as _rounds
from weft._extension import native
from weft.processes import Channel, Deadlock, Parallel, PeerDied

DONE, GIVE, OFFER, PUT, HELLO, BYE, ASK, ANSWERED, TELL = 20, 30, 1, 7, 40, 41, 43, 44, 45
BODY, WRITE = 128, 1
ME = 4711  #: the incarnation of the simulated program


class Frame(NamedTuple):
    kind: int
    where: int
    txn: int
    op: int
    val: int
    body: bytes


class Peer:
    """The other program. It holds the writer end of a channel that this program reads, and answers
    as `heard` decides. Its thread holds no end of this program, so it counts as a helper thread."""

    def __init__(self, heard: Callable[[Peer, Frame], None]) -> None:
        _rounds.answer_programs()
        ours, self.there = socket.socketpair()
        self.link = native._Link(ours.detach(), "python")
        self.c: Any = Channel("c")
        self.seq = 0
        self.opened = False
        self.heard = heard
        self.why = ""  # the reason for the end of the session, as the peer received it
        self.errors: list[BaseException] = []
        name = struct.pack("<II", 0, 0) + b"played"
        self.send(HELLO, where=0x54464557, txn=1 | 1 << 16, op=ME, val=5 | 65528 << 32, body=name)
        self.link.give(self.c.writer(), "out")
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def send(
        self, kind: int, where: int = 0, txn: int = 0, op: int = 0, val: int = 0, body: bytes = b""
    ) -> None:
        body += bytes(-len(body) % 8)
        head = struct.pack("<HBBIIIQQ", 32 + len(body), kind, 0, where, self.seq, txn, op, val)
        self.seq += 1
        self.there.sendall(head + body)

    def say(self, to: Frame, what: bytes, where: int = 0) -> None:
        self.send(ANSWERED, where, to.txn, to.op, len(what), what)

    def _exactly(self, n: int) -> bytes:
        got = self.there.recv(n, socket.MSG_WAITALL) if n else b""
        if len(got) < n:
            raise EOFError
        return got

    def _run(self) -> None:
        _helper_threads.add()
        try:
            while True:
                size, kind, _, where, _, txn, op, val = struct.unpack(
                    "<HBBIIIQQ", self._exactly(32)
                )
                body = self._exactly(size - 32)
                if kind == BYE:
                    self.why = body[:val].decode()
                    return
                self.heard(self, Frame(kind, where, txn, op, val, body))
        except (EOFError, OSError):
            pass
        except BaseException as e:
            self.errors.append(e)
        finally:
            self.there.close()
            _helper_threads.remove()

    def reads(self) -> Any:
        """Returns a function that runs a network of this program which waits for the other
        program."""
        return Parallel(th.process(lambda inp: inp.read())(self.c.reader()))

    def close(self) -> None:
        self.link.close()
        self.thread.join()
        assert not self.errors


@pytest.fixture
def peer() -> Iterator[Callable[[Callable[[Peer, Frame], None]], Peer]]:
    made: list[Peer] = []

    def start(heard: Callable[[Peer, Frame], None]) -> Peer:
        made.append(Peer(heard))
        return made[-1]

    yield start
    for one in made:
        one.close()


def program(
    waits: bool = True, sent: int = 0, received: int = 0, peer: int = 0, name: str = "played"
) -> bytes:
    """Returns a program's report on itself (WIRE.md 10.7), with one session and no process."""
    text = name.encode()
    return (
        struct.pack("<QI", ME, len(text))
        + text
        + struct.pack("<IB", 99, waits)
        + struct.pack("<I", 0)
        + struct.pack("<IQII", 1, peer, sent, received)
        + struct.pack("<III", 0, 0, 0)
    )


def incarnation() -> int:
    return native._network()[0]


def counters() -> tuple[int, int]:
    """Returns how many frames this program has sent to the simulated one, and how many it has
    received."""
    return next((sent, got) for who, sent, got in native._network()[2] if who == ME)


class Answers:
    """Answers each ASK with the next of the given answers. After the last answer the session is
    closed."""

    def __init__(self, *how: Callable[[Peer, Frame], None]) -> None:
        self.left = list(how)
        self.rounds = 0

    def __call__(self, peer: Peer, f: Frame) -> None:
        if f.kind != ASK:
            return
        self.rounds += 1
        if not self.left:
            raise EOFError
        self.left.pop(0)(peer, f)


def honest(waits: bool = True, more_sent: int = 0) -> Callable[[Peer, Frame], None]:
    def says(peer: Peer, f: Frame) -> None:
        got, sent = counters()
        peer.say(f, program(waits, sent + more_sent, got, incarnation()))

    return says


# --- answers --------------------------------------------------------------------------------------


def test_a_peer_that_answers_as_it_should_and_waits_is_in_the_deadlock(peer: Any) -> None:
    """wire 10.3, 10.8: a correct answer leads to a report. So in the tests below, the wrong part of
    the answer is the reason for the missing report."""
    p = peer(Answers(honest(), honest()))
    with pytest.raises(Deadlock) as caught:
        p.reads()
    assert "read 'c'" in caught.value.report


@pytest.mark.parametrize(
    "wrong",
    [
        honest(waits=False),
        honest(more_sent=1),  # a frame that is still under way
        lambda peer, f: peer.say(f, b""),
        lambda peer, f: peer.say(f, program(peer=incarnation())[:-1]),
        lambda peer, f: peer.say(f, program(peer=incarnation()) + b"?"),
        # A session with a program that was not asked.
        lambda peer, f: peer.say(f, program(peer=4712, sent=1)),
        lambda peer, f: peer.say(f, program(peer=incarnation()), where=2),
        lambda peer, f: peer.say(f, struct.pack("<QI", ME, 0xFFFFFFFF)),
    ],
    ids=["runs", "under way", "nothing", "cut", "too long", "unknown", "not whole", "huge"],
)
def test_an_answer_that_shows_no_standstill(peer: Any, wrong: Any) -> None:  # wire 10.3, 10.7
    """The answer leads to no report, and the session continues: the next look finds the
    deadlock."""
    p = peer(Answers(wrong, honest(), honest()))
    with pytest.raises(Deadlock):
        p.reads()
    assert p.heard.rounds == 3


def test_one_that_has_moved_between_the_rounds(peer: Any) -> None:  # wire 10.3
    """A program that has moved between two rounds is asked again; the deadlock is raised once two
    rounds agree."""

    def anew(f: Callable[[int], bytes]) -> Callable[[Peer, Frame], None]:
        return lambda peer, frame: peer.say(frame, f(incarnation()))

    def rested(times: int) -> Callable[[Peer, Frame], None]:
        def says(peer: Peer, f: Frame) -> None:
            got, sent = counters()
            whole = program(True, sent, got, incarnation())
            at = 8 + 4 + len("played") + 5
            peer.say(f, whole[:at] + struct.pack("<II", 1, times) + whole[at + 4 :])

        return says

    p = peer(Answers(rested(1), rested(2), rested(2), rested(2)))
    with pytest.raises(Deadlock):
        p.reads()
    assert p.heard.rounds == 4


def test_an_answer_in_pieces(peer: Any) -> None:  # wire 10.6
    def in_pieces(peer: Peer, f: Frame) -> None:
        got, sent = counters()
        whole = program(True, sent, got, incarnation())
        peer.say(f, whole[:10], where=1)
        peer.say(f, whole[10:])

    p = peer(Answers(in_pieces, in_pieces))
    with pytest.raises(Deadlock):
        p.reads()


# --- faults ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (lambda peer, f: peer.say(f, b"", where=3), "neither that more comes nor"),
        (lambda peer, f: [peer.say(f, b""), peer.say(f, b"")], "not asked for"),
        (lambda peer, f: peer.send(TELL, 2, 1, ME), "neither that more comes nor"),
    ],
    ids=["of no kind", "twice", "a report of no kind"],
)
def test_a_frame_of_a_round_that_is_a_fault_ends_the_session(
    peer: Any, wrong: Any, why: str
) -> None:  # wire 10.6, 14.2
    p = peer(Answers(wrong, *[lambda peer, f: None] * 9))
    with pytest.raises(PeerDied):
        p.reads()
    p.thread.join()
    assert why in p.why


def test_a_peer_that_dies_in_the_middle_of_a_round_is_a_death(peer: Any) -> None:  # wire 10.6
    """If the peer dies between the two parts of its answer, the reader meets PeerDied."""

    def half(peer: Peer, f: Frame) -> None:
        peer.say(f, program(peer=incarnation())[:10], where=1)
        raise EOFError

    p = peer(Answers(half))
    with pytest.raises(PeerDied):
        p.reads()


def test_a_peer_that_does_not_answer_keeps_it_from_being_told(
    peer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:  # wire 10.5
    """The peer is silent, like a stopped program. Once the peer answers again, new answers count,
    and its late answer is ignored."""
    monkeypatch.setattr(_rounds, "PATIENCE", 0.01)
    late: list[Frame] = []

    def then(peer: Peer, f: Frame) -> None:
        monkeypatch.setattr(_rounds, "PATIENCE", 60.0)
        peer.say(late[0], program(peer=incarnation()))
        honest()(peer, f)

    p = peer(Answers(lambda peer, f: late.append(f), then, honest(), honest(), honest()))
    with pytest.raises(Deadlock):
        p.reads()
    assert p.heard.rounds >= 3


# --- two rounds at once ---------------------------------------------------------------------------


def test_two_who_ask_at_once_are_both_answered(peer: Any) -> None:  # wire 10.6
    """During this program's round the peer also asks, and then asks again on another path.
    This program answers the first question, and gives an empty answer to the second.
    """
    heard: list[tuple[int, int, int]] = []
    ours: list[Frame] = []

    def listens(peer: Peer, f: Frame) -> None:
        if f.kind == ASK and f.op != ME:
            if not ours:
                peer.send(ASK, txn=7, op=ME)
                peer.send(ASK, txn=7, op=ME)
                ours.append(f)
            else:
                honest()(peer, f)
        elif f.kind == ANSWERED:
            heard.append((f.op, f.txn, f.val))
            if len(heard) == 2:
                honest()(peer, ours[0])

    p = peer(listens)
    with pytest.raises(Deadlock):
        p.reads()
    assert [(op, txn) for op, txn, _ in heard[:2]] == [(ME, 7)] * 2
    assert sorted(val > 0 for _, _, val in heard[:2]) == [False, True]


def test_a_program_that_begins_another_round_is_answered_for_that_alone(
    peer: Any,
) -> None:  # wire 10.6, 10.8
    """Of the rounds of one asking program only the latest counts."""
    heard: list[int] = []

    def listens(peer: Peer, f: Frame) -> None:
        if f.kind == ASK and f.op != ME:
            peer.send(ASK, txn=8, op=ME)
            peer.send(ASK, txn=7, op=ME)  # this question is late
        elif f.kind == ANSWERED:
            heard.append(f.txn)
            if len(heard) == 2:
                raise EOFError

    p = peer(listens)
    with pytest.raises(PeerDied):
        p.reads()
    assert sorted(heard) == [7, 8]


# --- reports of deadlocks -------------------------------------------------------------------------


def report(text: str = "deadlock: as they say", *paths: str) -> bytes:
    return b"".join(
        (
            struct.pack("<I", len(text)),
            text.encode(),
            struct.pack("<I", len(paths)),
            *(struct.pack("<I", len(p)) + p.encode() for p in paths),
        )
    )


def test_a_program_that_answers_trusts_the_programs_that_may_ask(peer: Any) -> None:  # wire 10.6
    p = peer(
        Answers(lambda peer, f: peer.send(TELL, 0, 1, ME, len(report("x", "a")), report("x", "a")))
    )
    with pytest.raises(Deadlock) as caught:
        p.reads()
    assert (caught.value.report, caught.value.knot) == ("x", ["a"])


def test_a_report_that_breaks_off_anywhere_is_none(peer: Any) -> None:  # wire 10.6, 10.7
    """Each truncated report is ignored, and so are the bytes after it; the session continues."""
    whole = report("deadlock", "main/a in b", "main/c in d")
    assert native._rounds_told(whole) == ("deadlock", ["main/a in b", "main/c in d"])
    for n in range(len(whole)):
        assert native._rounds_told(whole[:n]) is None, n

    def lies(peer: Peer, f: Frame) -> None:
        for n in range(len(whole)):
            peer.send(TELL, 0, n + 1, ME, n, whole[:n])
        honest(waits=False)(peer, f)

    p = peer(Answers(lies, honest(), honest()))
    with pytest.raises(Deadlock) as caught:
        p.reads()
    assert "read 'c'" in caught.value.report


def test_answers_with_any_byte_changed_or_left_out_are_no_deadlock_and_no_crash() -> None:
    """wire 10.7: a report with a changed byte may still be consistent; a report with parts left out
    never is."""
    one = program(True, 3, 4, 1)
    other = _programs.packed_spaces(
        [_rounds.Space(7, 1, True, [(ME, 4, 3)], [], [], [], [], False, {}, {})]
    )
    both = one + other
    assert _programs.still(both)
    for n in range(len(both)):
        assert not _programs.still(both[:n]) or n in (0,), n
        for bit in (1, 0x80):
            changed = both[:n] + bytes([both[n] ^ bit]) + both[n + 1 :]
            assert _programs.still(changed) in (False, True)
            assert _programs.moved(both, changed) in (False, True)
            native._rounds_knot(changed)

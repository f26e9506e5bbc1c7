"""Rules 6.1, 7.12 in the model: limits as scopes, and which request a process meets. Each test
enumerates every outcome. At the end of the file there are mutants of the model. The test that is
named for a mutant must notice that mutant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from conformance.checker import check
from conformance.composing import Composing
from conformance.explore import run
from conformance.interp import Sim
from conformance.limiting import Limiting
from conformance.model import World
from conformance.networks import FEATURES, generate, readable
from conformance.program import Proc
from conformance.retiring import retiring
from conformance.tests.kit import both, drops, net, proc, runs

OK = ("ok",)
CANCELLED = ("Cancelled",)
TIMEOUT = ("Timeout",)
ENDED_BY_IT = ("ok", (("expired", True),))
NOT_BY_IT = ("ok", (("expired", False),))
IDLE = proc(9, ["0w"])


def within(how: str, t: int, *body: list[Any]) -> list[Any]:
    return ["limit", how, list(body), t]


def catching(what: str, *body: list[Any], then: tuple[list[Any], ...] = ()) -> list[Any]:
    return ["try", list(body), [what], list(then)]


def alone(*body: list[Any]) -> dict[str, Any]:
    """Returns a process that holds both ends of a channel, so that its reads and writes wait
    forever.
    """
    return net(1, proc(1, ["0r", "0w"], *body))


def times(network: dict[str, Any], pid: int) -> list[tuple[str, int]]:
    """Returns the results of a process's operations, with their times, in a network with only one
    outcome.
    """
    seen = {
        tuple(
            (r["out"][0], r["t"])
            for r in run(network, seed, grain, check=True)
            if r.get("p") == pid and r["e"] == "ret"
        )
        for seed in range(10)
        for grain in ("atomic", "cores")
    }
    (one,) = seen
    return list(one)


@pytest.mark.parametrize("wait", [["read", 0], ["write", 1], ["sleep", 9], ["sync", 0]])
def test_it_ends_what_the_block_waits_for(wait: list[Any]) -> None:
    given = alone(catching("Timeout", within("timeout", 1, wait)), ["sleep", 1])
    given["barriers"] = [2]
    assert both(given, 1) == {(OK, CANCELLED, TIMEOUT, OK)}
    assert runs(given) == {"ok"}


def test_a_select_and_an_extended_read() -> None:
    for wait in (["select", "fair", [{"g": "in", "end": 0}]], ["ext", 0, []]):
        assert both(alone(within("move_on", 1, wait)), 1) == {(OK, CANCELLED, ENDED_BY_IT)}


def test_uncaught_it_is_a_failure() -> None:
    assert runs(alone(within("timeout", 1, ["read", 0]))) == {"Timeout"}


def test_a_block_in_time_is_left_as_if_there_were_none() -> None:
    given = alone(within("timeout", 5, ["sleep", 1]), ["sleep", 9])
    assert both(given, 1) == {(OK, OK, NOT_BY_IT, OK)}


def test_to_move_on_raises_nothing() -> None:
    assert both(alone(within("move_on", 1, ["sleep", 9])), 1) == {(OK, CANCELLED, ENDED_BY_IT)}


def test_a_deadline_is_a_time_of_the_clock() -> None:
    given = alone(
        ["sleep", 1],
        within("move_on", 5, within("deadline", 3, ["sleep", 1], ["sleep", 1], ["yield"])),
    )
    # If two limits are due at the same moment, either may be first.
    assert OK in {log[4] for log in both(given, 1)}
    assert times(alone(["sleep", 1], within("deadline", 3, ["sleep", 9])), 1)[2:] == [
        ("Cancelled", 3),
        ("Timeout", 3),
    ]
    assert times(alone(["sleep", 3], within("deadline", 2, ["sleep", 9])), 1)[2:] == [
        ("Cancelled", 3),
        ("Timeout", 3),
    ]


def test_it_stays_through_several_operations() -> None:
    given = alone(within("move_on", 3, ["sleep", 1], ["sleep", 1], ["sleep", 9]))
    assert times(given, 1)[1:] == [("ok", 1), ("ok", 2), ("Cancelled", 3), ("ok", 3)]


def test_nothing_or_less_acts_at_the_first_operation() -> None:
    """A limit of 0 or less ends even an operation that could commit."""
    for t in (0, -1):
        given = net([{"capacity": 1}], proc(1, ["0w", "0r"], within("move_on", t, ["write", 0])))
        assert both(given, 1) == {(OK, CANCELLED, ENDED_BY_IT)}


def test_a_request_that_was_not_met_is_taken_back() -> None:
    given = alone(within("timeout", 0, ["enrol", 0]), ["sleep", 1])
    given["barriers"] = [0]
    assert both(given, 1) == {(OK, OK, NOT_BY_IT, OK)}


def test_what_catches_it_goes_on_without_a_limit() -> None:
    given = alone(within("timeout", 1, catching("Cancelled", ["sleep", 9]), ["sleep", 9]))
    assert both(given, 1) == {(OK, CANCELLED, OK, NOT_BY_IT)}


def test_another_exception_of_the_block_passes() -> None:
    given = alone(catching("Fail", within("move_on", 1, ["fail"])), ["sleep", 2])
    assert both(given, 1) == {(OK, ("Fail",), NOT_BY_IT, OK)}


def test_scopes_within_let_the_outer_ones_pass() -> None:
    given = alone(within("move_on", 1, within("move_on", 5, ["sleep", 9])), ["sleep", 9])
    assert both(given, 1) == {(OK, OK, CANCELLED, NOT_BY_IT, ENDED_BY_IT, OK)}


def test_the_inner_one_alone() -> None:
    given = alone(
        within("move_on", 5, catching("Timeout", within("timeout", 1, ["sleep", 9])), ["sleep", 1])
    )
    assert both(given, 1) == {(OK, OK, CANCELLED, TIMEOUT, OK, NOT_BY_IT)}


def test_of_two_that_ask_before_it_is_met_the_outermost_is_told_once() -> None:
    given = alone(
        within(
            "move_on",
            0,
            within("timeout", 0, catching("Cancelled", ["sleep", 1], then=(["sleep", 1],))),
            ["sleep", 1],
        )
    )
    assert both(given, 1) == {(OK, OK, CANCELLED, OK, NOT_BY_IT, OK, NOT_BY_IT)}
    given = alone(within("move_on", 0, within("timeout", 0, ["sleep", 1])))
    assert both(given, 1) == {(OK, OK, CANCELLED, NOT_BY_IT, ENDED_BY_IT)}


def test_a_cancellation_from_outside_passes() -> None:
    given = net(
        1, proc(1, ["0r"], within("move_on", 5, ["read", 0])), proc(2, ["0w"], ["cancel", 1])
    )
    found = both(given, 1)
    assert (OK, CANCELLED, NOT_BY_IT) in found
    assert all(ENDED_BY_IT not in log for log in found)


@pytest.mark.parametrize("grain", ["atomic", "cores"])
def test_beside_an_expiry_it_is_from_outside(grain: str) -> None:
    sim = Sim(alone(within("move_on", 0, ["sleep", 1])), grain)
    p = called(sim, "sleep")
    assert p.limits == ("asked",)
    sim._request_cancel(p)
    sim.apply(("arrive", 1, "cancel"))
    assert (p.by, p.cancel, p.limits) == (-1, False, ("open",))


def called(sim: Sim, kind: str) -> Proc:
    """Runs until process 1 is about to do an operation of this kind, and returns the process."""
    while 1 not in sim.procs or sim.procs[1].st != "called" or sim._kind(sim.procs[1]) != kind:
        sim.apply(sim.steps()[0])
    return sim.procs[1]


def test_two_requests_before_the_first_is_met_are_one() -> None:
    """Rule 6.1: the first request withdraws the waiting operation, which raises one Cancelled for
    both requests.
    """
    sim = Sim(alone(catching("Cancelled", ["read", 0]), ["sleep", 1]))
    p = called(sim, "read")
    sim.apply(next(s for s in sim.steps() if s[0] == "arrive"))
    sim._request_cancel(p)
    sim._request_cancel(p)
    came_to = []
    while steps := sim.steps():
        record = sim.apply(steps[0])
        if record and record.get("p") == 1 and record["e"] == "ret":
            came_to.append(record["out"][0])
    assert came_to == ["Cancelled", "ok"]


def test_it_may_be_set_anew() -> None:
    given = alone(
        within("timeout", 1, ["reschedule", 3], ["sleep", 2], ["reschedule", 2], ["sleep", 9])
    )
    assert times(given, 1)[2:] == [("ok", 2), ("ok", 2), ("Cancelled", 4), ("Timeout", 4)]
    expired = alone(within("move_on", 0, ["reschedule", 2], ["sleep", 1]))
    assert both(expired, 1) == {(OK, OK, OK, NOT_BY_IT)}, "the request was taken back"
    at_once = alone(within("move_on", 9, ["reschedule", 0], ["sleep", 1]))
    assert both(at_once, 1) == {(OK, OK, CANCELLED, ENDED_BY_IT)}


def test_not_once_it_was_met_nor_where_there_is_none() -> None:
    given = alone(within("move_on", 0, catching("Cancelled", ["sleep", 1]), ["reschedule", 3]))
    assert {log[2] for log in both(given, 1)} == {("BadUse",)}
    assert both(alone(["reschedule", 3]), 1) == {(("BadUse",),)}


def test_what_the_block_started_is_cancelled_and_waited_for() -> None:
    kids = [proc(2, [], ["sleep", 9]), proc(3, [], ["sleep", 1])]
    given = alone(within("move_on", 2, ["par", kids]))
    assert {log[-1] for log in both(given, 1) if CANCELLED in log} == {ENDED_BY_IT}
    assert both(given, 2) == {(CANCELLED,)}
    assert both(given, 3) == {(OK,)}
    one_by_one = alone(within("move_on", 2, ["seq", kids]))
    assert both(one_by_one, 3) == {()}, "and what was not begun is not"


def test_its_children_are_asked_once() -> None:
    """Rule 6.1: one Cancelled stands for both requests, so the children are asked to end only
    once."""
    stubborn = proc(2, [], catching("Cancelled", ["sleep", 9], then=(["sleep", 5],)))
    given = alone(within("move_on", 3, within("move_on", 1, ["par", [stubborn]])))
    assert both(given, 2) == {(CANCELLED, OK)}


def test_the_second_failure_of_a_group_asks_nobody() -> None:
    """Rule 7.2: only the first failure cancels the other processes."""
    stubborn = proc(3, ["0r"], catching("Cancelled", ["sleep", 9], then=(["sleep", 5],)))
    failing = proc(
        2, ["0w"], catching("Cancelled", ["sleep", 9], then=(["sleep", 2], ["fail"])), ["sleep", 9]
    )
    given = net(1, proc(1, [], ["sleep", 1], ["fail"]), failing, stubborn)
    assert both(given, 3) == {(CANCELLED, OK)}
    assert runs(given) == {"Group"}


def test_no_value_is_lost_by_one() -> None:
    reader = proc(1, ["0r"], ["loop", 2, [within("move_on", 1, ["read", 0])]], ["read", 0])
    given = net(1, reader, proc(2, ["0w"], ["sleep", 1], ["write", 0]))
    for log in both(given, 1):
        assert sum(x == ("ok", "2.0") for x in log) == 1, log
    assert drops(given) == {(0,)}


def test_a_writer_that_is_held_is_not_let_go() -> None:
    """Rules 1.6, 6.3: a limit does not end a write whose value a reader holds in an extended
    read."""
    given = net(
        1,
        proc(1, ["0w"], within("timeout", 1, ["write", 0]), ["sleep", 1]),
        proc(2, ["0r"], ["ext", 0, [["sleep", 3]]]),
    )
    assert both(given, 1) == {(OK, OK, NOT_BY_IT, OK)}
    assert [t for _, t in times(given, 1)] == [0, 3, 3, 4]


def test_a_process_that_will_be_asked_is_in_no_deadlock() -> None:
    """Rule 10.3: the timer of a limit counts as outside, so its process is in no deadlock."""
    assert runs(alone(within("move_on", 9, ["read", 0]))) == {"ok"}
    assert runs(alone(within("move_on", 1, ["read", 0]), ["read", 0])) == {"Deadlock"}


def test_a_process_that_catches_the_deadlocks_cancelled_and_waits_again_is_asked_again() -> None:
    """Rule 10.1: a process that catches the Cancelled of a deadlock and waits again is cancelled
    again."""
    given = alone(catching("Cancelled", ["read", 0]), ["read", 0])
    assert both(given, 1) == {(CANCELLED, CANCELLED)}
    assert runs(given) == {"Deadlock"}


def test_bad_use_by_one_who_is_asked() -> None:
    """Rules 6.1, 11.1: bad use and Cancelled are both possible at the start of the operation."""
    given = alone(within("move_on", 0, ["retire", 0], ["read", 0]))
    assert {log[2] for log in both(given, 1)} == {CANCELLED, ("BadUse",)}


# ---------------------------------------------------------------------- the checker, the generator

HISTORY = alone(within("move_on", 2, ["sleep", 9]), ["sleep", 1])


@pytest.mark.parametrize(
    ("at", "wrong"),
    [
        (2, {"out": ["ok"]}),
        (2, {"t": 1}),
        (2, {"t": 3}),
        (3, {"out": ["ok", {"expired": False}]}),
        (3, {"out": ["Timeout"]}),
        (4, {"out": ["Cancelled"]}),
    ],
)
@pytest.mark.parametrize("grain", ["atomic", "cores"])
def test_the_checker_flags(at: int, wrong: dict[str, Any], grain: str) -> None:
    history = run(HISTORY)
    assert check(HISTORY, history, grain)
    message = [k for k, r in enumerate(history) if r.get("p") == 1 and r["e"] == "ret"]
    k = message[at - 1]
    assert not check(HISTORY, [*history[:k], {**history[k], **wrong}, *history[k + 1 :]], grain)


@pytest.mark.parametrize("make", [generate, retiring])
def test_random_networks_have_limits_that_end_blocks(make: Callable[..., dict[str, Any]]) -> None:
    ended = met = late = 0
    for seed in range(60):
        given = make(seed, features=FEATURES)
        for r in run(given, seed):
            if r["e"] == "ret":
                ended += r["out"] == ["ok", {"expired": True}]
                met += r["out"] == ["Timeout"]
                late += r["out"] == ["ok", {"expired": False}]
    assert min(ended, met, late) >= 5, (ended, met, late)
    assert "within move_on" in " ".join(readable(make(s, features=FEATURES)) for s in range(20))


# ---------------------------------------------------------------------------- mutants of the model


def meet_innermost(self: Limiting, p: Proc) -> None:
    MEET(self, p)
    asked = [k for k, x in enumerate(p.limits) if x in ("open", "met")]
    if p.by >= 0:
        p.by = asked[-1]


def meet_one(self: Limiting, p: Proc) -> None:
    before = p.limits
    MEET(self, p)
    p.limits = tuple("met" if k == p.by else x for k, x in enumerate(before))


def meet_inside_first(self: Limiting, p: Proc) -> None:
    outside = p.cancel
    p.cancel = outside and "asked" not in p.limits
    MEET(self, p)


def close_keeps_the_request(self: Limiting, p: Proc, how: str) -> Any:
    asked = p.limits[-1] == "asked"
    out = CLOSE(self, p, how)
    p.cancel |= asked
    return out


def close_takes_any(self: Limiting, p: Proc, how: str) -> Any:
    p.by = len(p.limits) - 1
    return CLOSE(self, p, how)


def close_moves_on(self: Limiting, p: Proc, how: str) -> Any:
    return CLOSE(self, p, "move_on")


def move_leaves_the_timer(self: Limiting, p: Proc, t: int) -> None:
    timers = self.timers[:]
    MOVE(self, p, t)
    self.timers = sorted({*self.timers, *timers})


def move_a_met_one(self: Limiting, p: Proc, t: int) -> None:
    if p.limits[-1:] == ("met",):
        self._set_state(p, len(p.limits) - 1, "open")
    MOVE(self, p, t)


def set_a_timer_always(self: Limiting, p: Proc, at: int) -> None:
    self.arm(max(at, self.now), p.pid, ~(len(p.limits) - 1))


def pursue_alone(self: Limiting, p: Proc) -> None:
    self.cancel(p.pid)


def pursue_again(self: Limiting, p: Proc) -> None:
    p.passed = False
    PURSUE(self, p)


def goes_on_and_meets_nothing(self: Sim, p: Proc, how: tuple[Any, ...]) -> Any:
    return self._joined(p, how) if p.st == "join" else self.take(p.pid)


def decide_forgets_limits(self: World, op: Any, out: Any) -> None:
    DECIDE(self, op, out)
    self.timers = [t for t in self.timers if t[1] != op.pid]


def every_failure_dooms(self: Any, p: Proc) -> None:
    last = p.todo[:1] == (("done",),)
    FINISH(self, p)
    if last and self._failed(p):
        siblings = self.root if p.parent < 0 else self.procs[p.parent].kids
        self._doom(tuple(k for k in siblings if k != p.pid))


MEET, CLOSE, MOVE = Limiting._meet, Limiting._close, Limiting._move
PURSUE, DECIDE, FINISH = Limiting._pursue, World._decide, Composing._finish
MUTANTS: dict[Callable[..., Any], tuple[type, str, Callable[[], None]]] = {
    meet_innermost: (
        Limiting,
        "_meet",
        test_of_two_that_ask_before_it_is_met_the_outermost_is_told_once,
    ),
    meet_one: (
        Limiting,
        "_meet",
        test_of_two_that_ask_before_it_is_met_the_outermost_is_told_once,
    ),
    meet_inside_first: (
        Limiting,
        "_meet",
        lambda: test_beside_an_expiry_it_is_from_outside("atomic"),
    ),
    close_keeps_the_request: (Limiting, "_close", test_a_request_that_was_not_met_is_taken_back),
    close_takes_any: (Limiting, "_close", test_a_cancellation_from_outside_passes),
    close_moves_on: (Limiting, "_close", test_uncaught_it_is_a_failure),
    move_leaves_the_timer: (Limiting, "_move", test_it_may_be_set_anew),
    move_a_met_one: (Limiting, "_move", test_not_once_it_was_met_nor_where_there_is_none),
    set_a_timer_always: (Limiting, "_set", test_nothing_or_less_acts_at_the_first_operation),
    pursue_alone: (Limiting, "_pursue", test_what_the_block_started_is_cancelled_and_waited_for),
    pursue_again: (Limiting, "_pursue", test_its_children_are_asked_once),
    goes_on_and_meets_nothing: (
        Sim,
        "_cancelled",
        test_two_requests_before_the_first_is_met_are_one,
    ),
    decide_forgets_limits: (World, "_decide", test_it_stays_through_several_operations),
    every_failure_dooms: (Composing, "_finish", test_the_second_failure_of_a_group_asks_nobody),
}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.__name__)
def test_each_mutant_of_the_model_is_noticed(
    mutant: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    where, name, notices = MUTANTS[mutant]
    monkeypatch.setattr(where, name, mutant)
    with pytest.raises((AssertionError, RuntimeError, ValueError)):
        notices()

"""Rule 7.11 in the model: the end of a process, used as a guard, awaited, or watched. Each test
enumerates every outcome.
"""

from __future__ import annotations

from typing import Any

import pytest

from conformance.checker import check
from conformance.explore import run
from conformance.tests.kit import both, logs, net, proc, runs


def end(pid: int, **more: Any) -> dict[str, Any]:
    return {"g": "ended", "p": pid, **more}


def reads(slot: int) -> dict[str, Any]:
    return {"g": "in", "end": slot}


def watched(p: dict[str, Any]) -> dict[str, Any]:
    return {**p, "watched": True}


def hows(network: dict[str, Any], pid: int, grain: str = "atomic") -> set[str]:
    """Returns what process `pid` may learn about the end of another process."""
    found = set()
    for seed in range(60):
        for r in run(network, seed, grain, check=True):
            if r.get("p") == pid and r["e"] == "ret":
                found |= {x["how"] for x in r["out"] if isinstance(x, dict) and "how" in x}
    return found


ENDS = {
    "returned": [],
    "retired": [["read", 0]],
    "failed": [["fail"]],
}


@pytest.mark.parametrize("grain", ["atomic", "cores"])
@pytest.mark.parametrize("how", ENDS)
def test_it_says_how_the_process_ended(how: str, grain: str) -> None:
    given = net(
        1, watched(proc(1, ["0r"], *ENDS[how])), proc(2, ["0w"], ["retire", 0], ["ended", 1])
    )
    found = hows(given, 2, grain)
    assert how in found
    assert found <= {how}


def test_a_poisoned_and_a_cancelled_one() -> None:
    poisoned = net(1, proc(1, ["0r"], ["read", 0]), proc(2, ["0w"], ["poison", 0, 1], ["ended", 1]))
    assert hows(poisoned, 2) == {"poisoned"}
    cancelled = net(1, proc(1, ["0r"], ["sleep", 9]), proc(2, ["0w"], ["cancel", 1], ["ended", 1]))
    assert hows(cancelled, 2) == {"cancelled"}


def test_it_is_ready_once_the_process_has_let_go_and_stays_so() -> None:
    """When the process has ended, its channel has retired. The reader waits only for the end of the
    process, which stays ready.
    """
    given = net(
        1,
        proc(1, ["0w"], ["sleep", 1]),
        proc(2, ["0r"], ["ended", 1], ["ended", 1], ["iter", 0, [], 3]),
    )
    returned = ("ok", (("how", "returned"),))
    assert both(given, 2) == {(returned, returned, ("stop",))}
    assert runs(given) == {"ok"}


def test_a_select_waits_for_it_though_its_sources_have_retired() -> None:
    """Rule 5.6: the end of a process is a guard that lasts, like a barrier."""
    given = net(
        1,
        proc(1, [], ["sleep", 2]),
        proc(2, ["0w"], ["retire", 0]),
        proc(3, ["0r"], ["select", "fair", [reads(0), end(1)]]),
    )
    assert {out[0][:2] for out in logs(given, 3)} == {("ok", 1)}


def test_with_priority_the_first_ready_one_is_taken() -> None:
    given = net(
        1,
        proc(1, []),
        proc(2, ["0w"], ["write", 0]),
        proc(3, ["0r"], ["sleep", 1], ["select", "priority", [end(1), reads(0)]], ["read", 0]),
    )
    assert {out[1][:2] for out in logs(given, 3)} == {("ok", 0)}
    assert {out[2] for out in logs(given, 3)} == {("ok", "2.0")}, "the value is still there"


def test_ones_own_end_is_bad_use() -> None:
    given = net(1, proc(1, ["0r"], ["ended", 1]), proc(2, ["0w"]))
    assert {out[0][0] for out in logs(given, 1)} == {"BadUse"}


def test_a_process_that_waits_for_an_end_waits_for_that_process() -> None:
    """Rule 10.2: the process that waits for an end, and the process whose end it is, are the
    knot."""
    given = net(1, proc(1, ["0r"], ["read", 0]), proc(2, ["0w"], ["ended", 1]))
    assert runs(given) == {"Deadlock"}
    out = run(given)[-2]["out"]
    assert out[1]["knots"] == [[1, 2]]


def test_an_end_of_what_is_never_started_is_never_ready() -> None:
    given = net(1, proc(1, ["0r"], ["ended", 7]), proc(2, ["0w"], ["sleep", 1]))
    assert runs(given) == {"Deadlock"}


@pytest.mark.parametrize("asks", [True, False])
def test_a_watched_failure_is_its_watchers_while_one_lives(asks: bool) -> None:
    given = net(
        1,
        watched(proc(1, ["0r"], ["sleep", 1], ["fail"])),
        proc(2, ["0w"], ["ended", 1] if asks else ["sleep", 1], ["sleep", 5]),
    )
    assert runs(given) == {"ok" if asks else "Fail"}


def test_one_that_has_gone_watches_no_more() -> None:
    given = net(
        1,
        watched(proc(1, ["0r"], ["sleep", 5], ["fail"])),
        proc(2, ["0w"], ["select", "fair", [end(1), {"g": "timeout", "t": 1}]]),
    )
    assert runs(given) == {"Fail"}


def test_in_a_parallel_it_is_no_result() -> None:
    given = net(1, watched(proc(1, ["0r"], ["fail"])), proc(2, ["0w"], ["ended", 1]))
    failed_before_anybody_asked = ("Fail", (("pids", (1,)),))
    assert both(given, 0) == {(("ok", ("<failed>", 2)),), (failed_before_anybody_asked,)}


def test_the_checker_flags_an_end_that_came_too_early_or_was_another() -> None:
    given = net(1, proc(1, ["0r"], ["sleep", 2]), proc(2, ["0w"], ["ended", 1]))
    history = run(given)
    assert check(given, history)
    for wrong in ({"how": "failed"}, {"how": "cancelled"}):
        other = [
            {**r, "out": ["ok", wrong]} if r.get("p") == 2 and r["e"] == "ret" else r
            for r in history
        ]
        assert not check(given, other)
    early = [{**r, "t": 1} if r.get("p") == 2 and r["e"] == "ret" else r for r in history]
    assert not check(given, early)

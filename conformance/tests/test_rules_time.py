"""Rules 7, 8, 10 and 11 of SEMANTICS.md: composition, barriers, time, deadlock, bad use."""

from __future__ import annotations

from math import inf

import pytest

from conformance.explore import run
from conformance.objects import BadUse, Barrier, Guard, Op
from conformance.tests.kit import Table, both, logs, net, outcomes, proc, runs


def times(history, pid):
    return [r["t"] for r in history if r.get("p") == pid and r["e"] == "ret"]


# ----------------------------------------------------------------------------------- 7 composition


def test_rule_7_1_results_in_order():
    n = net(0, proc(3, [], ["sleep", 2]), proc(1, []), proc(2, [], ["sleep", 1]))
    assert both(n, 0) == {(("ok", (3, 1, 2)),)}


def test_rule_7_1_with_none_an_empty_list():
    assert both(net(0), 0) == {(("ok", ()),)}


def test_rule_7_2_the_first_failure_cancels_and_is_raised():
    n = net(1, proc(1, ["0r"], ["read", 0]), proc(2, [], ["fail"]), proc(3, ["0w"], ["sleep", 100]))
    assert runs(n) == {"Fail"}
    assert {x[-1] for x in logs(n, 0)} == {("Fail", (("pids", (2,)),))}
    assert (("Cancelled",),) in logs(n, 1)


def test_rule_7_2_several_failures_in_the_order_of_the_processes():
    n = net(0, proc(2, [], ["fail"]), proc(1, [], ["fail"]))
    assert (("Group", (("pids", (2, 1)),)),) in both(n, 0)


def test_rule_7_3_sequence_one_after_another():
    n = net(0, proc(9, [], ["seq", [proc(1, [], ["sleep", 2]), proc(2, [], ["sleep", 3])]]))
    assert times(run(n), 2) == [5]
    assert both(n, 9) == {(("ok", (1, 2)),)}


def test_rule_7_3_sequence_stops_at_the_first_failure():
    n = net(
        0,
        proc(
            9,
            [],
            ["try", [["seq", [proc(1, [], ["fail"]), proc(2, [], ["sleep", 1])]]], ["Fail"], []],
        ),
    )
    assert logs(n, 2) == {()} and runs(n) == {"ok"}


def test_rule_7_4_spawn_outlives_its_group():
    n = net(0, proc(1, [], ["spawn", proc(2, [], ["sleep", 7])]), proc(3, []))
    history = run(n)
    order = [(r["e"], r.get("p")) for r in history]
    assert order.index(("end", 0)) < order.index(("end", 2)) < order.index(("run", None))


def test_rule_7_4_the_run_fails_with_a_spawned_process():
    assert runs(net(0, proc(1, [], ["spawn", proc(2, [], ["fail"])]))) == {"Fail"}


def test_rule_7_4_who_is_spawned_into_a_failing_run_is_cancelled():
    catches = ["try", [["sleep", 1]], ["Cancelled"], []]
    late = proc(3, [], ["sleep", 5])
    n = net(0, proc(1, [], ["spawn", proc(2, [], ["fail"])], catches, ["spawn", late]))
    for log in logs(n, 3):
        assert log in {(("Cancelled",),), ()}
    assert runs(n) == {"Fail"}


def test_rule_7_7_yield_lets_every_runnable_process_run():
    # Processes 2 and 3 have operations that have committed when process 1 yields: so both continue
    # before process 1 does.
    n = net(
        2,
        proc(1, ["0w", "1w"], ["write", 0], ["write", 1], ["yield"]),
        proc(2, ["0r"], ["read", 0]),
        proc(3, ["1r"], ["read", 0]),
    )
    for seed in range(50):
        order = [
            (r["p"], r["e"], r["out"][0]) for r in run(n, seed) if r["e"] == "ret" and "p" in r
        ]
        last = [k for k, r in enumerate(order) if r[0] == 1][-1]
        assert all(k < last for k, r in enumerate(order) if r[0] in (2, 3))


def test_rule_7_7_ends_are_let_go_before_the_group_is_told():
    n = net(1, proc(9, [], ["par", [proc(1, ["0w"])]], ["sleep", 1]), proc(2, ["0r"], ["read", 0]))
    history = [r for r in run(n, 3) if r.get("p") == 2 and r["e"] == "ret"]
    assert history[0]["out"] == ["Retired"] and history[0]["t"] == 0


# ----------------------------------------------------------------------------- 8 barriers and time


def test_rule_8_1_all_go_on_when_all_have_arrived():
    n = net(
        0,
        proc(1, [], ["sleep", 3], ["sync", 0]),
        proc(2, [], ["sync", 0], ["sync", 0]),
        proc(3, [], ["sleep", 1], ["resign", 0]),
        barriers=[3],
    )
    assert runs(n) == {"Deadlock"}  # process 2's second phase lacks process 1
    assert times(run(n), 1) == [3, 3]


def test_rule_8_2_resign_completes_the_phase_and_enrol_adds():
    n = net(
        0,
        proc(1, [], ["sync", 0]),
        proc(2, [], ["enrol", 0], ["sleep", 1], ["resign", 0], ["resign", 0]),
        barriers=[2],
    )
    assert runs(n) == {"ok"}


@pytest.mark.parametrize("stmt", ["resign", "sync"])
def test_rule_8_2_bad_use(stmt):
    n = net(0, proc(1, [], [stmt, 0]), barriers=[0])
    assert runs(n) == {"BadUse"}
    with pytest.raises(BadUse):
        Barrier(-1)


def test_rule_8_3_a_cancelled_sync_needs_another_arrival():
    t = Table()
    t.barriers = [Barrier(2)]
    t.start(Op(1, "sync", (Guard("barrier", 0),)))
    t.cancel(1)
    t.start(Op(2, "sync", (Guard("barrier", 0),)))
    assert t.waits(2)
    t.start(Op(3, "sync", (Guard("barrier", 0),)))
    assert t.out(2) == t.out(3) == ("ok", 0)


def test_rule_8_4_a_barrier_as_a_guard():
    t = Table({})
    t.barriers = [Barrier(2)]
    t.select(1, t.g_in(0), Guard("barrier", 0))
    assert t.waits(1)
    t.select(2, Guard("barrier", 0), Guard("skip"))
    assert t.out(1) == ("ok", 1) and t.out(2) == ("ok", 0)
    assert t.chans[0].lines == [[], []]


def test_rule_8_5_never_early_and_equal_deadlines_in_order():
    t = Table()
    for pid in (5, 3, 4):
        t.start(Op(pid, "sleep", (Guard("time", value=7),)))
    t.start(Op(9, "sleep", (Guard("time", value=2),)))
    t.advance()
    assert t.now == 2
    t.fire()
    assert t.out(9)
    t.advance()
    order = []
    while t.timers:
        order.append(t.timers[0][1])
        t.fire()
    assert order == [5, 3, 4] and t.now == 7


def test_rule_8_6_virtual_time_stands_still_while_anything_can_run():
    n = net(
        1,
        proc(1, ["0r"], ["select", "fair", [{"g": "in", "end": 0}, {"g": "timeout", "t": 1}]]),
        proc(2, ["0w"], ["loop", 5, [["yield"]]], ["write", 0]),
    )
    assert {x[0][1] for x in both(n, 1)} == {0}


def test_rule_8_6_then_it_jumps():
    assert times(run(net(0, proc(1, [], ["sleep", 1_000_000]))), 1) == [1_000_000]


# ------------------------------------------------------------------------------------- 10 deadlock


def deadlock(n):
    (verdict,) = {dict(o)["run"][0] for o in outcomes(n)}
    assert verdict[0] == "Deadlock"
    return dict(verdict[1])


def test_rule_10_1_everything_blocked_and_all_are_cancelled():
    n = net(
        2,
        proc(1, ["0r", "1w"], ["read", 0], ["write", 1]),
        proc(2, ["1r", "0w"], ["read", 0], ["write", 1]),
    )
    assert runs(n) == {"Deadlock"}
    assert {x[-1][0] for p in (1, 2) for x in logs(n, p)} <= {"Cancelled", "Retired"}


def test_rule_10_2_the_report_names_blocked_and_knot():
    # Processes 1 and 2 wait for each other; 3 waits for 1.
    n = net(
        3,
        proc(1, ["0r", "1w", "2w"], ["read", 0]),
        proc(2, ["1r", "0w"], ["read", 0]),
        proc(3, ["2r"], ["read", 0]),
    )
    found = deadlock(n)
    assert found["blocked"] == (1, 2, 3) and found["knots"] == ((1, 2),)


def test_rule_10_2_who_waits_for_nobody_is_a_knot():
    found = deadlock(net(1, proc(1, ["0r"], ["read", 0])))
    assert found["knots"] == ((1,),)


def test_rule_10_3_armed_timers_are_outside():
    n = net(1, proc(1, ["0r"], ["read", 0]), proc(2, ["0w"], ["sleep", 5], ["write", 0]))
    assert runs(n) == {"ok"}


# -------------------------------------------------------------------------------------- 11 bad use


def test_rule_11_1_bad_use_changes_nothing():
    t = Table({})
    before = t.world_key()
    with pytest.raises(BadUse, match="reading a writer"):
        t.start(Op(1, "read", (Guard("in", 0, t.w[0]),)))
    with pytest.raises(BadUse, match="writing a reader"):
        t.start(Op(1, "write", (Guard("out", 0, t.r[0], "x"),)))
    assert t.world_key() == before


def test_rule_11_2_a_process_exists_once():
    with pytest.raises(ValueError, match="two processes"):
        run(net(0, proc(1, []), proc(1, [])))


def test_rule_12_2_dropped_values_are_released_after_the_step():
    # An end among dropped values is retired, and a party that waits at its channel learns of the
    # retirement in the same step.
    t = Table({"capacity": 1, "overflow": "drop_newest"}, {})
    t.write(1, "x")
    t.read(2, 1)
    t.write(3, ("end", t.w[1]))
    assert t.out(2) == ("Retired", 0) and t.chans[0].dropped == 1


def test_rule_8_5_a_deadline_beyond_the_clock_never_comes():
    assert runs(net(0, proc(1, [], ["sleep", inf]), proc(2, [], ["sleep", 3]))) == {"Deadlock"}
    guards = [{"g": "in", "end": 0}, {"g": "timeout", "t": inf}]
    n = net(1, proc(1, ["0r"], ["select", "fair", guards]), proc(2, ["0w"], ["write", 0]))
    assert runs(n) == {"ok"}

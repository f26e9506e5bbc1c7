"""Rules 5 and 6 of SEMANTICS.md: choice and cancellation."""

from __future__ import annotations

import pytest

from conformance.explore import run
from conformance.interp import Sim
from conformance.objects import BadUse, Guard
from conformance.tests.kit import Op, Table, both, logs, net, outcomes, proc, runs, values


def sel(mode, *guards):
    return ["select", mode, list(guards)]


def gin(k, **more):
    return {"g": "in", "end": k, **more}


def gout(k, **more):
    return {"g": "out", "end": k, **more}


def test_rule_5_1_exactly_one_guard_on_both_sides():
    n = net(
        2,
        proc(1, ["0w", "1w"], sel("fair", gout(0), gout(1))),
        proc(2, ["0r", "1r"], sel("fair", gin(0), gin(1))),
    )
    for grain in ("atomic", "cores"):
        for o in map(dict, outcomes(n, grain)):
            (_, i), (_, j, value) = o[1][0], o[2][0]
            assert i == j and value == f"1.{i}"


def test_rule_5_2_guards_and_preconditions():
    t = Table({}, {})
    t.write(1, "x", 0)
    t.select(2, t.g_in(0, pre=False), t.g_in(1))
    assert t.waits(2)
    t.write(3, "y", 1)
    assert t.out(2) == ("ok", 1, "y") and t.waits(1)


def test_rule_5_2_a_deadline_is_a_time_and_a_timeout_a_span():
    n = net(
        1,
        proc(1, ["0r", "0w"], ["sleep", 2], sel("fair", gin(0), {"g": "deadline", "t": 5})),
        proc(2, [], ["sleep", 9]),
    )
    history = run(n)
    assert [(r["out"], r["t"]) for r in history if r.get("p") == 1 and r["e"] == "ret"] == [
        (["ok"], 2),
        (["ok", 1], 5),
    ]


def test_rule_5_3_selects_with_input_and_output_guards_meet():
    both_ways = ["0r", "1w"], ["0w", "1r"]
    n = net(
        2,
        *(
            proc(
                k + 1,
                both_ways[k % 2],
                sel("fair", gin(0 if k % 2 == 0 else 1), gout(1 if k % 2 == 0 else 0)),
            )
            for k in range(2)
        ),
    )
    for grain in ("atomic", "cores"):
        assert runs(n, grain) == {"ok"}


def test_rule_5_4_fair_within_n():
    # Channels 0 and 1 are unbounded and full of values: a guard that stays ready is chosen at least
    # in every second select.
    n = net(
        [{"capacity": 9}, {"capacity": 9}],
        proc(1, ["0w", "1w"], ["loop", 4, [["write", 0], ["write", 1]]], ["sleep", 9]),
        proc(2, ["0r", "1r"], ["sleep", 1], ["loop", 4, [sel("fair", gin(0), gin(1))]]),
    )
    for log in logs(n, 2):
        chosen = [x[1] for x in log[1:]]
        assert all(
            chosen[k] != chosen[k + 1] or k + 2 >= len(chosen) or chosen[k + 2] != chosen[k]
            for k in range(len(chosen) - 1)
        )
        assert all({0, 1} <= set(chosen[k : k + 3]) for k in range(len(chosen) - 2))


def test_rule_5_4_priority_takes_the_first_ready():
    t = Table({"capacity": 1}, {"capacity": 1})
    t.write(1, "a", 0)
    t.write(2, "b", 1)
    t.select(3, t.g_in(1), t.g_in(0), mode="priority")
    assert t.out(3) == ("ok", 0, "b")


def test_rule_5_4_random_may_take_any_ready():
    n = net(
        [{"capacity": 1}] * 2,
        proc(1, ["0w", "1w"], ["write", 0], ["write", 1], ["sleep", 9]),
        proc(2, ["0r", "1r"], ["sleep", 1], sel("random", gin(0), gin(1))),
    )
    assert {x[-1][1] for x in logs(n, 2)} == {0, 1}


def test_rule_5_5_the_same_end_twice_is_two_guards():
    t = Table({})
    t.select(1, t.g_in(0), t.g_in(0))
    t.write(2, "x")
    assert t.out(1) == ("ok", 0, "x")
    assert t.chans[0].lines == [[], []]


@pytest.mark.parametrize(
    "guards",
    [lambda t: (), lambda t: (t.g_in(0, pre=False),), lambda t: (t.g_in(0), t.g_out(0, "x"))],
)
def test_rule_5_5_bad_selects(guards):
    t = Table({})
    before = t.world_key()
    with pytest.raises(BadUse):
        t.select(1, *guards(t))
    assert t.world_key() == before  # 11.1: nothing has changed


def test_rule_5_7_a_ready_guard_beats_an_expired_timer():
    t = Table({"capacity": 1})
    t.write(9, "x")
    t.now = 10
    t.select(1, Guard("time", value=3), t.g_in(0))
    assert t.out(1) == ("ok", 1, "x")


def test_rule_5_7_skip_with_priority_competes_in_its_place():
    t = Table({"capacity": 1})
    t.write(9, "x")
    t.select(1, Guard("skip"), t.g_in(0), mode="priority")
    assert t.out(1) == ("ok", 0)


def test_rule_5_7_fair_skips_only_when_nothing_is_ready():
    t = Table({"capacity": 1})
    t.write(9, "x")
    t.select(1, Guard("skip"), t.g_in(0))
    assert t.out(1) == ("ok", 1, "x")
    t.select(2, Guard("skip"), t.g_in(0))
    assert t.out(2) == ("ok", 0)


@pytest.mark.parametrize("idle", [{"g": "skip"}, {"g": "timeout", "t": 0}])
@pytest.mark.parametrize("mode", ["fair", "random"])
def test_rule_5_7_no_schedule_skips_what_is_ready(idle, mode):
    n = net(
        [{"capacity": 1}],
        proc(1, ["0w"], ["write", 0], ["sleep", 9]),
        proc(2, ["0r"], ["sleep", 1], sel(mode, idle, gin(0))),
    )
    assert both(n, 2) == {(("ok",), ("ok", 1, "1.0"))}


@pytest.mark.parametrize("span", [0, -1])
def test_rule_5_7_a_timeout_of_zero_or_less_is_a_skip(span):
    n = net(
        1,
        proc(1, ["0r"], sel("fair", gin(0), {"g": "timeout", "t": span})),
        proc(2, ["0w"], ["sleep", 1]),
    )
    assert both(n, 1) == {(("ok", 1),)}


def test_rule_5_8_a_raising_function():
    n = net(
        1,
        proc(1, ["0w"], sel("fair", gout(0, fn="raise"))),
        proc(2, ["0r"], ["try", [["read", 0]], ["PeerDied"], []]),
    )
    assert {x[0][0] for x in both(n, 1)} == {"Fail", "Retired"} - {"Retired"}
    assert both(n, 2) == {(("PeerDied",),)}


def test_rule_5_8_nothing_was_sent_into_the_buffer():
    t = Table({"capacity": 1})
    t.select(1, t.g_out(0, "x", raises=True))
    assert t.out(1) == ("Fail", 0) and t.chans[0].buf == []


def test_rule_5_10_no_trace_at_the_others():
    t = Table({}, {})
    t.select(1, t.g_in(0), t.g_out(1, "v"))
    t.write(2, "x", 0)
    assert t.chans[1].lines == [[], []] and t.chans[1].buf == []
    t.check_invariants()


# ---------------------------------------------------------------------------------- 6 cancellation


def cancelling(*sibling, ends=("0r",), chans=1, peer=()):
    """Returns a group in which process 3 fails and so cancels process 2; process 4, the peer, is
    outside the group.
    """
    return net(
        chans,
        proc(
            1,
            [],
            [
                "try",
                [["par", [proc(2, list(ends), *sibling), proc(3, [], ["fail"])]]],
                ["Fail"],
                [],
            ],
        ),
        *peer,
    )


def test_rule_6_1_at_the_start_and_while_parked():
    n = cancelling(["read", 0], peer=[proc(4, ["0w"], ["sleep", 3], ["write", 0])])
    assert logs(n, 2) <= {(("Cancelled",),), (("ok", "4.0"),), ()}
    assert (("Cancelled",),) in logs(n, 2)


def test_rule_6_1_at_the_start_even_of_one_that_could_commit():
    sim = Sim(net([{"capacity": 1}], proc(1, ["0w"], ["write", 0]), proc(2, ["0r"], ["sleep", 1])))
    while sim.procs.get(1) is None or sim.procs[1].st != "called":
        sim.apply(next(s for s in sim.steps() if s[1] in (0, 1)))
    sim.procs[1].cancel = True
    assert [s for s in sim.steps() if s[1] == 1] == [("arrive", 1, "cancel")]


def test_rule_6_1_a_request_from_another_thread_is_heard_of_a_moment_later():
    n = net(
        1,
        proc(1, ["0r"], ["try", [["read", 0]], ["Cancelled"], []], ["yield"]),
        proc(2, ["0w"], ["sleep", 1], ["cancel", 1], ["write", 0]),
    )
    first = {grain: {x[0] for x in logs(n, 1, grain) if x} for grain in ("atomic", "cores")}
    assert first == {"atomic": {("Cancelled",)}, "cores": {("Cancelled",), ("ok", "2.0")}}


def test_rule_6_1_heard_of_or_not_one_request_raises_one_cancelled():
    n = net(
        1,
        proc(1, ["0r"], *[["try", [["read", 0]], ["Cancelled"], []]] * 2, ["sleep", 1]),
        proc(2, ["0w"], ["sleep", 1], ["cancel", 1], ["write", 0], ["sleep", 5]),
    )
    for log in logs(n, 1, "cores"):
        assert list(log).count(("Cancelled",)) == 1, log


def test_rule_6_2_withdrawn_whole():
    t = Table({}, {})
    t.select(1, t.g_in(0), t.g_out(1, "v"))
    assert t.cancel(1) and t.out(1) == ("Cancelled",)
    t.write(2, "x", 0)
    t.read(3, 1)
    assert t.waits(2) and t.waits(3)


def test_rule_6_3_after_the_commit_the_operation_completes():
    t = Table({})
    t.write(1, "x")
    t.read(2)
    assert not t.cancel(1) and t.out(1) == ("ok", 0)


def test_rule_6_4_nothing_lost_or_doubled():
    # Either the cancelled reader took the value, or the value is still with the writer, for the
    # other reader.
    n = cancelling(["read", 0], peer=[proc(4, ["0w"], ["write", 0]), proc(5, ["0r"], ["read", 0])])
    for grain in ("atomic", "cores"):
        for o in map(dict, outcomes(n, grain)):
            got = [
                v
                for p in (2, 5)
                for v in values(tuple(x for x in o.get(p, ()) if x[0] == "ok" and len(x) > 1))
            ]
            assert got == ["4.0"], o


def test_rule_6_5_an_uncaught_cancelled_is_no_failure():
    n = cancelling(["read", 0], peer=[proc(4, ["0w"], ["sleep", 2])])
    assert runs(n) == {"ok"}


def test_one_request_raises_one_cancelled():
    n = net(
        1,
        proc(1, ["0r"], ["try", [["read", 0]], ["Cancelled"], []], ["sleep", 1]),
        proc(2, [], ["cancel", 1]),
        proc(3, ["0w"], ["sleep", 5]),
    )
    assert {tuple(x[0] for x in log) for log in logs(n, 1)} == {
        ("Cancelled", "ok"),
        (),
    }  # (): cancelled before it ran


def test_a_select_on_cores_commits_between_its_enrolments():
    t = Table({}, {})
    op = Op(1, "select", (t.g_in(0), t.g_in(1)))
    t.begin(op)
    t.enrol(1, 0)
    t.write(2, "x", 0)
    assert op.state == "done" and op.out == ("ok", 0, "x")
    t.check_invariants()


def test_rule_5_7_a_deadline_that_has_passed_never_beats_a_ready_guard():
    for mode in ("fair", "priority", "random"):
        t = Table({})
        t.write(1, "x")
        t.select(2, Guard("time", value=0), t.g_in(0), mode=mode)
        assert t.out(2) == ("ok", 1, "x")


def test_rule_5_7_a_timeout_of_zero_competes_in_its_place():
    guards = sel("priority", {"g": "timeout", "t": 0}, gin(0))
    n = net(1, proc(1, ["0w"], ["write", 0]), proc(2, ["0r"], ["yield"], guards))
    for grain in ("atomic", "cores"):
        assert {log[-1] for log in logs(n, 2, grain)} == {("ok", 0)}


def test_rule_5_8_a_value_in_the_making_takes_its_place_when_it_is_made():
    t = Table({"capacity": 1})
    t.write(1, "full")
    t.select(2, t.g_out(0, "made", made=True))
    assert t.waits(2)
    t.read(3)
    assert t.out(3) == ("ok", 0, "full") and t.ops[2].state == "making"
    t.read(4)
    t.write(5, "first")  # every slot is taken: the value goes straight to the reader (1.5)
    assert t.out(4) == ("ok", 0, "first")
    t.make(2)
    assert t.out(2) == ("ok", 0) and t.chans[0].buf == ["made"]


def test_rule_5_8_a_function_that_raises_frees_its_slot():
    t = Table({"capacity": 1})
    t.write(1, "full")
    t.select(2, t.g_out(0, "made", raises=True))
    t.read(3)
    t.write(4, "next")
    assert t.waits(4)
    t.make(2)
    assert t.out(2) == ("Fail", 0) and t.out(4) == ("ok", 0) and t.chans[0].buf == ["next"]


def test_rule_8_2_a_barrier_guard_with_nobody_enrolled_is_bad_use():
    n = net(1, proc(1, ["0w"], ["resign", 0], sel("fair", {"g": "barrier", "b": 0})), barriers=[1])
    assert both(n, 1) == {(("ok",), ("BadUse",))}

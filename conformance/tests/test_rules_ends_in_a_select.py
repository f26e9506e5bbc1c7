"""Rules 5.2, 5.5 and 5.6 of SEMANTICS.md: guards that are off, and guards whose channel has ended.

`T` is a table of six rendezvous channels. A guard that is off has `pre=False`; a guard with
ended="raise" has `ends=True`.
"""

from __future__ import annotations

import itertools

import pytest

from conformance.checker import check
from conformance.explore import run
from conformance.objects import READ, WRITE, BadUse, Barrier, Guard, Op
from conformance.tests.kit import Table, both, logs, net, proc, runs

OFF = {"pre": False}
LOUD = {"ends": True}
TIMER, SKIP, BARRIER = Guard("time", value=5), Guard("skip"), Guard("barrier", 0)


def table():
    t = Table(*[{}] * 6)
    t.barriers.append(Barrier(2))
    return t


def retire_for(t, *guards):
    """Makes the other side of each guard's channel retire."""
    for g in guards:
        t.close((t.w if g.kind == "in" else t.r)[g.on], "retired")


def sel(mode, *guards):
    return ["select", mode, list(guards)]


def gin(k, **more):
    return {"g": "in", "end": k, **more}


def gout(k, **more):
    return {"g": "out", "end": k, **more}


# ---------------------------------------------------------------------------- which guards decide


# (name, guards, those that retire, what follows: the guards that the outcome may name, or "waits",
# or the chosen guard). Guards that are off retire before the select begins, because their channels
# are checked then.
def cases():
    t = table()
    a, b = t.g_in(0), t.g_in(1)
    x, y = t.g_out(2, "x"), t.g_out(3, "y")
    off = {g: g._replace(pre=False) for g in (a, b, x, y)}
    loud = {g: g._replace(ends=True) for g in (a, b, x, y)}
    yield "a merge has sources left", (a, b), (a,), "waits"
    yield "a merge has none left", (a, b), (a, b), {0, 1}
    yield "a dispatcher has workers left", (x, y), (x,), "waits"
    yield "a dispatcher has none left", (x, y), (x, y), {0, 1}
    yield "outputs decide alone", (a, x), (x,), {1}
    yield "inputs do not where an output is on", (a, x), (a,), "waits"
    yield "all that is on has gone", (a, x), (a, x), {1}
    yield "a full buffer: nobody left to take", (off[a], x), (x,), {1}
    yield "a full buffer whose source has gone hands out", (off[a], x), (a,), "waits"
    yield "an empty buffer whose source has gone", (a, off[x]), (a,), {0}
    yield "an empty buffer with nobody to take takes one", (a, off[x]), (x,), "waits"
    yield "an off output is held by an open input", (a, x, off[y]), (x,), "waits"
    yield "by a loud one too", (loud[a], x, off[y]), (x,), "waits"
    yield "but not by one that has gone", (a, x, off[y]), (a, x), {1}
    yield "an off output that has gone holds nothing", (a, x, off[y]), (y, x), {1}
    yield "an off output alone holds nothing", (x, off[y]), (x,), {0}
    yield "an off input holds nothing by itself", (a, off[b]), (a,), {0}
    yield "nor by another input", (off[b], a, x), (a, x), {2}
    yield "an off input is held by a timer", (a, off[b], TIMER), (a,), "waits"
    yield "and also where an output decides", (x, off[b], TIMER), (x,), "waits"
    yield "not if it has gone", (a, off[b], TIMER), (b, a), {0}
    yield "a timer holds an off input only", (x, off[y], TIMER), (x,), {0}
    yield "a timer decides nothing", (a, TIMER), (a,), {0}
    yield "a timer that is off holds nothing", (a, off[b], TIMER._replace(pre=False)), (a,), {0}
    yield "a timer alone", (off[a], TIMER), (a,), "waits"
    yield "a skip holds an off input", (a, off[b], SKIP), (a,), ("ok", 2)
    yield "a skip decides nothing", (a, SKIP), (a,), {0}
    yield "a barrier decides against the inputs", (a, BARRIER), (a,), "waits"
    yield "not against the outputs", (x, BARRIER), (x,), {0}
    yield "nor does one that is off", (a, BARRIER._replace(pre=False)), (a,), {0}
    yield "a loud input", (a, loud[b]), (b,), {1}
    yield "a loud input beside an output", (loud[a], x), (a,), {0}
    yield "a loud output", (x, loud[y]), (y,), {1}
    yield "a loud guard that is off", (a, loud[b]._replace(pre=False)), (b,), "waits"
    yield "a loud guard, and the last", (a, loud[b]), (a, b), {0, 1}
    yield "one end twice, once loud", (a, loud[a]), (a,), {0, 1}


CASES = list(cases())
NAMES = [c[0] for c in CASES]


def outcome_of(t, guards, expected):
    if expected == "waits":
        assert t.waits(1)
    elif isinstance(expected, tuple):
        assert t.out(1) == expected
    else:
        why, named = t.out(1)[:2]
        assert why == "Retired"
        assert set(named if isinstance(named, tuple) else (named,)) <= expected
    t.check_invariants()


@pytest.mark.parametrize("case", CASES, ids=NAMES)
@pytest.mark.parametrize("mode", ["fair", "priority", "random"])
def test_rule_5_6_at_the_beginning(case, mode):
    _, guards, gone, expected = case
    t = table()
    retire_for(t, *gone)
    t.select(1, *guards, mode=mode)
    outcome_of(t, guards, expected)


@pytest.mark.parametrize("case", [c for c in CASES if c[3] != ("ok", 2)], ids=lambda c: c[0])
def test_rule_5_6_while_it_waits_in_whatever_order_they_go(case):
    _, guards, gone, expected = case
    if SKIP in guards:
        return  # the select never waits
    off = [g for g in gone if not any(g.on == h.on and h.pre for h in guards)]
    for order in itertools.permutations(g for g in gone if g not in off):
        t = table()
        retire_for(t, *off)
        t.select(1, *guards)
        assert t.waits(1)
        retire_for(t, *order)
        outcome_of(t, guards, expected)


def test_rule_5_6_what_is_off_is_asked_when_the_select_begins():
    t = table()
    x, y = t.g_out(2, "x"), t.g_out(3, "y", pre=False)
    t.select(1, t.g_in(0), x, y)
    retire_for(t, y, x)
    assert t.waits(1)  # y was open when the select began
    retire_for(t, t.g_in(0))
    assert t.out(1) == ("Retired", 1)


@pytest.mark.parametrize("case", [c for c in CASES if BARRIER not in c[1]], ids=lambda c: c[0])
def test_rule_5_6_no_schedule_of_cores_does_otherwise(case):
    """Puts the guards of each case into a network. The ends at the other sides of their channels
    are closed before, between and after the enrolments.
    """
    _, guards, gone, expected = case
    ends, data = [], []
    for g in guards:
        if g.kind in ("in", "out"):
            ends.append(f"{g.on}{'r' if g.kind == 'in' else 'w'}")
            data.append((gin if g.kind == "in" else gout)(len(ends) - 1))
        elif g.kind == "time":
            data.append({"g": "timeout", "t": 5})
        else:
            data.append({"g": "skip"})
        data[-1].update({} if g.pre else OFF, **(LOUD if g.ends else {}))
    used = sorted({g.on for g in guards if g.kind in ("in", "out")})
    left = {g.on for g in gone}
    stays = [f"{c}{'w' if f'{c}r' in ends else 'r'}" for c in used if c not in left]
    # The select checks the guards when it begins if it has a skip, which is chosen immediately, or
    # a guard that is off, whose channel is checked only then.
    asked = SKIP in guards or any(not g.pre and g.on in left for g in guards)
    before = [["sleep", 1]] if asked else []
    n = net(
        6,
        proc(1, ends, *before, sel("fair", *data)),
        proc(2, stays, ["sleep", 9]),
        *(proc(3 + k, [f"{c}{'w' if f'{c}r' in ends else 'r'}"]) for k, c in enumerate(left)),
    )
    for log in logs(n, 1, "cores"):
        out = log[len(before)]
        if isinstance(expected, set):
            assert out[0] == "Retired" and dict(out[1])["guard"] in expected, log
        elif expected == "waits":
            # The select waits until process 2 ends, at time 9, or until its own timer expires.
            assert out[0] == "Retired" or out[:1] == ("ok",), log
            if any(g.kind == "time" and g.pre for g in guards):
                assert out[0] == "ok", log
        else:
            assert out == expected, log


# --------------------------------------------------------------------------- which guards compete


def test_rule_5_6_a_merge_in_a_network_gets_all_values_and_ends_with_its_last_source():
    n = net(
        2,
        proc(1, ["0w"], ["write", 0]),
        proc(2, ["1w"], ["write", 0], ["write", 0]),
        proc(3, ["0r", "1r"], ["loop", 9, [sel("fair", gin(0), gin(1))]]),
    )
    for log in both(n, 3):
        assert sorted(x[-1] for x in log[:-1]) == ["1.0", "2.0", "2.1"]
        assert log[-1][0] == "Retired"


def test_rule_5_6_a_ready_guard_competes_with_the_end_of_all():
    t = table()
    t.write(9, "v", 0)
    x = t.g_out(2, "x")
    retire_for(t, x)
    op = Op(1, "select", (t.g_in(0), x))
    assert t.choices(op) == [0, 1]
    assert t.choices(Op(1, "select", op.guards, mode="priority")) == [0]
    assert t.choices(Op(1, "select", op.guards[::-1], mode="priority")) == [0]


def test_rule_5_6_by_priority_it_competes_in_the_place_of_any_that_decides():
    t = table()
    t.write(9, "v", 0)
    x, y = t.g_out(2, "x"), t.g_out(3, "y")
    retire_for(t, x, y)
    assert t.choices(Op(1, "select", (x, t.g_in(0), y), mode="priority")) == [0, 1]


def test_rule_5_6_fair_lets_the_end_of_all_wait_for_n_selects_at_most():
    """A select has a full source, and two outputs whose readers have ended: the select raises at
    its second call at the latest.
    """
    n = net(
        [{"capacity": 9}, {}, {}],
        proc(1, ["0w"], ["loop", 6, [["write", 0]]], ["sleep", 9]),
        proc(
            2,
            ["0r", "1w", "2w"],
            ["sleep", 1],
            ["loop", 5, [sel("fair", gin(0), gout(1), gout(2))]],
        ),
        proc(3, ["1r", "2r"]),
    )
    found = {tuple(x[0] for x in log[1:]) for log in logs(n, 2)}
    assert found == {("Retired",), ("ok", "Retired")}


def test_rule_5_4_a_silent_guard_is_not_counted_in_n():
    """Three guards, one of them silent: if the other two stay ready, each is chosen every second
    time.
    """
    n = net(
        [{"capacity": 9}, {"capacity": 9}, {}],
        proc(1, ["0w", "1w"], ["loop", 4, [["write", 0], ["write", 1]]], ["sleep", 9]),
        proc(
            2, ["0r", "1r", "2r"], ["sleep", 1], ["loop", 4, [sel("fair", gin(0), gin(1), gin(2))]]
        ),
        proc(3, ["2w"]),
    )
    for log in logs(n, 2):
        chosen = [x[1] for x in log[1:]]
        assert all({0, 1} == set(chosen[k : k + 2]) for k in range(3)) or chosen[0] != chosen[1]
        assert all(len(set(chosen[k : k + 3])) == 2 for k in range(2))


@pytest.mark.parametrize("mode", ["fair", "priority"])
def test_rule_5_6_poison_and_death_compete_in_their_place(mode):
    for how, why in (("poison", "Poisoned"), ("die", "PeerDied")):
        t = table()
        t.write(9, "v", 0)
        if how == "poison":
            t.poison(1)
        else:
            t.close(t.w[1], "died", died=True)
        t.select(1, t.g_in(1), t.g_in(0), mode=mode)
        assert t.out(1)[:2] == (why, 0)
        t.select(2, t.g_in(0), t.g_in(1), mode="priority")
        assert t.out(2) == ("ok", 0, "v")


# --------------------------------------------------------------- guards that are silent for good


def test_rule_5_6_a_silent_guard_that_is_poisoned_is_heard_by_the_next_select():
    for retire_first in (True, False):
        t = table()
        if retire_first:
            retire_for(t, t.g_in(0))
        t.select(1, t.g_in(0), t.g_in(1))
        retire_for(t, t.g_in(0))
        t.poison(0)
        assert t.waits(1)
        t.write(2, "v", 1)
        assert t.out(1) == ("ok", 1, "v")
        t.select(3, t.g_in(0), t.g_in(1))
        assert t.out(3)[:2] == ("Poisoned", 0)


def test_rule_5_6_a_select_that_waits_with_a_poisoned_silent_guard_ends_by_retirement():
    t = table()
    t.select(1, t.g_in(0), t.g_in(1))
    retire_for(t, t.g_in(0))
    t.poison(0)
    retire_for(t, t.g_in(1))
    assert t.out(1) == ("Retired", (0, 1))


def test_rule_5_6_a_guard_leaves_its_line_when_it_falls_silent():
    t = table()
    t.select(1, t.g_in(0), t.g_in(1))
    retire_for(t, t.g_in(0))
    assert t.chans[0].lines[READ] == [] and t.chans[1].lines[READ] == [(1, 1)]
    t.select(2, t.g_out(2, "x"), t.g_out(3, "y"))
    retire_for(t, t.g_out(3, "y"))
    assert t.chans[3].lines[WRITE] == []


def test_rule_5_6_what_is_buffered_is_handed_out_first():
    t = Table({"capacity": 2}, {})
    t.write(9, "v", 0)
    retire_for(t, t.g_in(0), t.g_in(1))
    t.select(1, t.g_in(0), t.g_in(1))
    assert t.out(1) == ("ok", 0, "v")
    t.select(2, t.g_in(0), t.g_in(1))
    assert t.out(2)[0] == "Retired"


def test_rule_5_6_a_select_that_waits_for_ever_is_a_deadlock():
    """The source that feeds a cycle has ended, and the cycle waits for itself."""
    n = net(
        2,
        proc(1, ["0w"]),
        proc(2, ["0r", "1r"], ["loop", 3, [sel("fair", gin(0), gin(1))]]),
        proc(3, ["1w", "1r"], ["read", 1]),
    )
    assert runs(n) == runs(n, "cores") == {"Deadlock"}


# ---------------------------------------------------------------------------- guards that are off


def test_rule_5_2_a_guard_that_is_off_takes_no_part_in_any_check():
    t = table()
    t.select(1, t.g_in(0), t.g_out(0, "x", pre=False))  # both ends of one channel
    assert t.waits(1)
    t.close(t.r[1], "retired")
    t.select(2, t.g_in(1, pre=False), t.g_in(2))  # a closed end
    assert t.waits(2)
    t.barriers.append(Barrier(0))
    t.select(3, Guard("barrier", 1, pre=False), t.g_in(3))  # no party is enrolled
    assert t.waits(3)


def test_rule_5_2_a_guard_that_is_off_holds_nothing_open_when_its_own_end_is_closed():
    t = table()
    t.close(t.r[1], "retired")
    retire_for(t, t.g_in(0))
    t.select(1, t.g_in(0), t.g_in(1, pre=False), TIMER)
    assert t.out(1) == ("Retired", 0)


def test_rule_5_5_one_barrier_twice_among_the_guards_that_are_on_is_bad_use():
    t = table()
    with pytest.raises(BadUse, match="twice"):
        t.select(1, BARRIER, t.g_in(0), BARRIER)
    t.select(2, BARRIER, BARRIER._replace(pre=False))
    assert t.waits(2)


# ------------------------------------------------------------------------------------- the checker


def test_the_checker_flags_a_select_that_ends_with_its_first_source():
    n = net(
        2,
        proc(1, ["0w"]),
        proc(2, ["1w"], ["sleep", 1], ["write", 0]),
        proc(3, ["0r", "1r"], sel("fair", gin(0), gin(1))),
    )
    history = run(n)
    assert check(n, history)
    for r in history:
        if r.get("p") == 3 and r["e"] == "ret":
            r["out"], r["t"] = ["Retired", {"guard": 0}], 0
    history = [r for r in history if r.get("p") != 2 or r["e"] == "call"][: len(history)]
    for grain in ("atomic", "cores"):
        assert not check(n, history, grain)

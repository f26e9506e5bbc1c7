"""Rules 1 to 4 of SEMANTICS.md: channels, ends, retire, poison."""

from __future__ import annotations

import pytest

from conformance.objects import READ, WRITE, BadUse, Chan
from conformance.tests.kit import Table, both, drops, logs, net, outcomes, proc, runs, values

# -------------------------------------------------------------------------------------- 1 channels


def test_rule_1_1_a_write_completes_when_its_value_is_taken():
    t = Table({})
    t.write(1, "x")
    assert t.waits(1)
    t.read(2)
    assert t.out(1) == ("ok", 0) and t.out(2) == ("ok", 0, "x")


def test_rule_1_1_any_number_of_ends():
    n = net(
        1,
        proc(1, ["0w"], ["write", 0]),
        proc(2, ["0w"], ["write", 0]),
        proc(3, ["0r"], ["read", 0]),
        proc(4, ["0r"], ["read", 0]),
    )
    assert runs(n) == {"ok"} and runs(n, "cores") == {"ok"}
    assert {values(x)[0] for x in both(n, 3)} == {"1.0", "2.0"}


def test_rule_1_2_waiting_readers_first_come_first_served():
    t = Table({})
    t.read(1)
    t.read(2)
    t.write(3, "x")
    assert t.out(1) == ("ok", 0, "x") and t.waits(2)


def test_rule_1_2_waiting_writers_first_come_first_served():
    t = Table({})
    t.write(1, "a")
    t.write(2, "b")
    t.read(3)
    assert t.out(3)[2] == "a" and t.waits(2)


def test_rule_1_2_a_committed_select_is_passed_over():
    t = Table({}, {})
    t.select(1, t.g_in(0), t.g_in(1))
    t.read(2, 0)
    t.write(3, "x", 1)  # the select commits at channel 1
    t.write(4, "y", 0)
    assert t.out(1) == ("ok", 1, "x") and t.out(2) == ("ok", 0, "y")


def test_rule_1_3_a_buffer_of_n():
    t = Table({"capacity": 2})
    t.write(1, "a")
    t.write(2, "b")
    t.write(3, "c")
    assert t.out(1) and t.out(2) and t.waits(3)
    t.read(4)
    assert t.out(4)[2] == "a" and t.out(3)


def test_rule_1_3_values_leave_in_the_order_of_commitment():
    n = net(
        [{"capacity": 2}],
        proc(1, ["0w"], ["loop", 4, [["write", 0]]]),
        proc(2, ["0r"], ["loop", 4, [["read", 0]]]),
    )
    assert [values(x) for x in both(n, 2)] == [["1.0", "1.1", "1.2", "1.3"]]


@pytest.mark.parametrize(
    "bad",
    [
        {"capacity": -1},
        {"capacity": 1.5},
        {"capacity": True},
        {"capacity": 1, "overflow": "burst"},
        {"capacity": 0, "overflow": "drop_oldest"},
        {"immunity": 0},
    ],
)
def test_rule_1_3_anything_else_is_bad_use(bad):
    with pytest.raises(BadUse, match="give"):
        Chan(**bad)


@pytest.mark.parametrize(
    "overflow, left, dropped",
    [
        ("drop_oldest", ["2", "3"], 1),
        ("drop_newest", ["1", "2"], 1),
        ("unbounded", ["1", "2", "3"], 0),
    ],
)
def test_rule_1_4_overflow(overflow, left, dropped):
    t = Table({"capacity": 2, "overflow": overflow})
    for k in (1, 2, 3):
        t.write(k, str(k))
        assert t.out(k) == ("ok", 0)
    assert t.chans[0].buf == left and t.chans[0].dropped == dropped


@pytest.mark.parametrize("overflow", ["drop_oldest", "drop_newest", "unbounded"])
def test_rule_1_4_an_output_guard_is_always_ready(overflow):
    t = Table({"capacity": 1, "overflow": overflow}, {})
    t.write(1, "a")
    t.select(2, t.g_out(0, "b"), t.g_in(1))
    assert t.out(2) == ("ok", 0)


def test_rule_1_4_block_is_the_default():
    assert Chan(1).overflow == "block"


def test_rule_1_5_straight_to_the_waiting_reader():
    t = Table({"capacity": 3})
    t.read(1)
    t.write(2, "x")
    assert t.out(1) == ("ok", 0, "x") and t.chans[0].buf == []


def test_rule_1_5_the_first_waiting_writer_moves_up():
    t = Table({"capacity": 1})
    for k in (1, 2, 3):
        t.write(k, str(k))
    t.read(9)
    assert t.out(2) == ("ok", 0) and t.waits(3) and t.chans[0].buf == ["2"]


def test_rule_1_6_extended_read_holds_the_writer():
    t = Table({})
    t.write(1, "x")
    t.read(2, ext=True)
    assert t.out(2) == ("ok", 0, "x") and t.out(1) is None and not t.waits(1)
    t.release(2)
    assert t.out(1) == ("ok", 0)


def test_rule_1_6_the_slot_of_a_buffer_stays_occupied():
    t = Table({"capacity": 1})
    t.write(1, "x")
    t.read(2, ext=True)
    t.write(3, "y")
    assert t.waits(3)
    t.release(2)
    assert t.out(3) == ("ok", 0)


def test_rule_1_6_poison_in_the_block_does_not_take_it_back():
    t = Table({})
    t.write(1, "x")
    t.read(2, ext=True)
    t.poison(0)
    t.release(2)
    assert t.out(1) == ("ok", 0)


def test_rule_1_6_the_block_ends_however_it_ends():
    n = net(
        1,
        proc(1, ["0w"], ["write", 0]),
        proc(2, ["0r"], ["try", [["ext", 0, [["fail"]]]], ["Fail"], []]),
    )
    assert both(n, 1) == {(("ok",),)} and runs(n) == {"ok"}


def test_rule_1_6_a_held_writer_cannot_be_cancelled():
    t = Table({})
    t.write(1, "x")
    t.read(2, ext=True)
    assert not t.cancel(1)
    t.release(2)
    assert t.out(1) == ("ok", 0)


# ------------------------------------------------------------------------------------------ 2 ends


def test_rule_2_1_ends_are_counted_when_made():
    t = Table({})
    t.make_end(0, READ)
    assert t.chans[0].live == [2, 1]


def test_rule_2_2_an_operation_on_a_closed_end_says_how_it_was_closed():
    t = Table({})
    t.close(t.r[0], "retired")
    with pytest.raises(BadUse, match="retired"):
        t.read(1)
    assert 1 not in t.ops


def test_rule_2_3_a_finished_process_lets_go():
    n = net(1, proc(1, ["0w"], ["loop", 2, [["write", 0]]]), proc(2, ["0r"], ["iter", 0, []]))
    assert both(n, 2) == {(("ok", "1.0"), ("ok", "1.1"), ("stop",))} and runs(n) == {"ok"}


def test_rule_2_3_a_shared_end_goes_with_the_last_holder():
    t = Table({})
    t.hold(t.w[0], 1)
    t.hold(t.w[0], 2)
    t.let_go(t.w[0], 1)
    assert t.ends[t.w[0]].how == ""
    t.let_go(t.w[0], 2)
    assert "last process" in t.ends[t.w[0]].how


def test_rule_2_3_held_from_the_making_of_the_process():
    # Process 2 of the sequence has not started, but it holds the writer end: so the reader waits
    # for process 2.
    n = net(
        1,
        proc(9, [], ["seq", [proc(1, ["0w"], ["write", 0]), proc(2, ["0w"], ["write", 0])]]),
        proc(3, ["0r"], ["iter", 0, []]),
    )
    assert [values(x) for x in both(n, 3)] == [["1.0", "2.0"]]


def test_rule_2_4_a_sent_end_moves():
    n = net(
        2,
        proc(1, ["0w", "1w"], ["send", 0, 1], ["try", [["write", 1]], ["BadUse"], []]),
        proc(2, ["0r"], ["read", 0], ["write", 1]),
        proc(3, ["1r"], ["read", 0]),
    )
    assert both(n, 1) == {(("ok",), ("BadUse",))}
    assert both(n, 2) == {(("ok", "end"), ("ok",))}
    assert both(n, 3) == {(("ok", "2.0"),)}


def test_rule_2_4_a_write_that_does_not_commit_leaves_the_end():
    t = Table({}, {})
    t.write(1, ("end", t.w[1]))
    t.cancel(1)
    assert t.ends[t.w[1]].how == ""


def test_rule_2_4_an_end_dropped_undelivered_is_retired():
    t = Table({"capacity": 1}, {})
    t.write(1, ("end", t.w[1]))
    t.read(2, 1)
    t.poison(0)
    assert t.out(2) == ("Retired", 0)


def test_rule_2_5_ended_for_good():
    t = Table({})
    t.close(t.w[0], "retired")
    assert t.make_end(0, READ) == (-1, "Retired")
    assert t.make_end(0, WRITE)[1] == "Retired"


def test_rule_2_5_a_side_that_never_had_an_end_is_not_ended():
    t = Table()
    t.chans = [Chan()]
    _, why = t.make_end(0, READ)
    assert why == "" and t.chans[0].ended(READ) == ""


# ---------------------------------------------------------------------------------------- 3 retire


def test_rule_3_1_readers_drain_the_buffer_then_retired():
    n = net(
        [{"capacity": 3}],
        proc(1, ["0w"], ["loop", 3, [["write", 0]]]),
        proc(2, ["0r"], ["loop", 4, [["read", 0]]]),
    )
    assert both(n, 2) == {(("ok", "1.0"), ("ok", "1.1"), ("ok", "1.2"), ("Retired",))}


def test_rule_3_1_blocked_writers_are_drained_too():
    t = Table({})
    t.write(1, "x")
    t.close(t.w[0], "retired")
    t.read(2)
    t.read(3)
    assert t.out(2) == ("ok", 0, "x") and t.out(3) == ("Retired", 0)


def test_rule_3_2_a_waiting_read_may_still_receive():
    t = Table({})
    t.read(1)
    t.close(t.r[0], "retired")
    t.write(2, "x")
    assert t.out(1) == ("ok", 0, "x")
    t.write(3, "y")
    assert t.out(3) == ("Retired", 0)


def test_rule_3_2_when_the_blocked_party_leaves_the_channel_ends():
    t = Table({}, {})
    t.select(1, t.g_in(0), t.g_in(1))
    t.close(t.r[0], "retired")
    t.write(2, "x", 1)  # The select commits at channel 1.
    t.write(3, "y", 0)
    assert t.out(3) == ("Retired", 0)


def test_rule_3_3_writers_end_and_the_buffer_is_dropped():
    n = net(
        [{"capacity": 1}],
        proc(1, ["0w"], ["write", 0], ["write", 0], ["write", 0]),
        proc(2, ["0r"], ["read", 0]),
    )
    for log in both(n, 1):
        assert log[-1][0] == "Retired"
    assert drops(n) == {(0,), (1,)}  # 0: the reader had ended before the second write


def test_rule_3_3_the_exception_carries_the_value_back():
    n = net(1, proc(1, ["0w"], ["write", 0]), proc(2, ["0r"], ["retire", 0]))
    assert both(n, 1) == {(("Retired", (("value", "1.0"),)),)}


def test_rule_3_4_iteration_ends_quietly_only_on_retired():
    n = net(1, proc(1, ["0w"], ["poison", 0, 1]), proc(2, ["0r"], ["iter", 0, []]))
    assert {x[-1][0] for x in both(n, 2)} == {"Poisoned"}


def test_rule_3_5_an_uncaught_retired_ends_quietly():
    n = net(1, proc(1, ["0w"]), proc(2, ["0r"], ["read", 0]))
    assert both(n, 0) == {(("ok", (1, "<retired>")),)}


def test_rules_2_5_3_5_an_end_raised_by_asking_for_a_new_end_is_a_failure():
    asks = proc(2, ["0r"], ["retire", 0], ["par", [proc(3, ["0r"])]])
    assert both(net(1, asks), 0) == {(("Retired", (("pids", (2,)),)),)}
    spawns = proc(2, ["0r"], ["retire", 0], ["spawn", proc(3, ["0r"])])
    assert both(net(1, spawns), 0) == {(("Retired", (("pids", (2,)),)),)}
    # An exception that is raised again further out is still a failure. A failure that has been
    # caught is like any other exception.
    inside = proc(1, [], ["par", [proc(2, ["0r"], ["retire", 0], ["par", [proc(3, ["0r"])]])]])
    assert both(net(1, inside), 0) == {(("Retired", (("pids", (1,)),)),)}
    caught = proc(2, ["0r"], ["retire", 0], ["try", [["par", [proc(3, ["0r"])]]], ["Retired"], []])
    assert both(net(1, caught), 0) == {(("ok", (2,)),)}


def test_rules_3_5_4_3_an_unmet_poison_fails_its_process_and_poisons_its_ends():
    asks = proc(1, ["0r", "1w"], ["poison", 0, 2], ["par", [proc(3, ["0r"])]])
    n = net(2, asks, proc(2, ["1r"], ["try", [["read", 0]], ["Cancelled"], [["read", 0]]]))
    assert {x[-1] for x in both(n, 2) if x} == {("Poisoned", (("strength", 2),))}
    assert both(n, 0) == {(("Poisoned", (("pids", (1,)),)),)}


def test_rule_7_1_the_run_of_exactly_one_process_raises_what_left_it():
    n = net(1, proc(1, [], ["cancel", 0]))
    assert runs(n) == {"Cancelled", "ok"}  # "ok" if the children of process 0 had ended (7.2)
    n["main"]["body"] = [["try", n["main"]["body"], ["Cancelled"], []]]
    assert runs(n) == {"ok"}
    asks = net(1, proc(1, ["0r"]), before=[["par", [proc(2, ["0r"])]]])
    assert runs(asks) == {"Retired"}


# ---------------------------------------------------------------------------------------- 4 poison


def test_rule_4_1_idempotent_and_monotone():
    t = Table({})
    t.poison(0, 3)
    t.poison(0, 2)
    assert t.chans[0].poison == 3
    with pytest.raises(BadUse):
        t.poison(0, 0)


def test_rule_4_2_at_the_poisoning():
    t = Table({"capacity": 1})
    t.write(1, "a")
    t.write(2, "b")
    t.poison(0, 2)
    assert t.out(1) == ("ok", 0) and t.out(2) == ("Poisoned", 0, 2, 0)
    assert t.chans[0].dropped == 1
    t.read(3)
    assert t.out(3) == ("Poisoned", 0, 2, 0)


def test_rule_4_2_the_strength_is_that_of_the_channel_when_the_process_goes_on():
    n = net(
        1,
        proc(1, ["0r"], ["read", 0]),
        proc(2, ["0w"], ["sleep", 1], ["poison", 0, 1], ["poison", 0, 2]),
    )
    assert both(n, 1) == {(("Poisoned", (("strength", k),)),) for k in (1, 2)}


def test_rule_4_2_committed_values_are_delivered_and_values_come_back():
    t = Table({})
    t.read(1)
    t.write(2, "x")
    t.poison(0)
    assert t.out(1) == ("ok", 0, "x")
    n = net(1, proc(1, ["0w"], ["write", 0]), proc(2, ["0r"], ["poison", 0, 1]))
    assert both(n, 1) == {(("Poisoned", (("strength", 1), ("value", "1.0"))),)}


def test_rule_4_2_poison_outranks_retirement_and_death():
    t = Table({})
    t.close(t.w[0], "died", died=True)
    t.poison(0)
    t.read(1)
    assert t.out(1)[0] == "Poisoned"


def test_rule_4_3_poison_spreads_with_its_strength():
    n = net(
        2,
        proc(1, ["0w"], ["poison", 0, 2]),
        proc(2, ["0r", "1w"], ["read", 0], ["write", 1]),
        proc(3, ["1r"], ["read", 0]),
    )
    assert both(n, 3) == {(("Poisoned", (("strength", 2),)),)}
    assert both(n, 0) == {(("ok", (1, "<poisoned>", "<poisoned>")),)}


def test_rule_4_3_who_catches_it_stops_the_spread():
    n = net(
        2,
        proc(1, ["0w"], ["poison", 0, 1]),
        proc(2, ["0r", "1w"], ["try", [["read", 0]], ["Poisoned"], []], ["write", 1]),
        proc(3, ["1r"], ["read", 0]),
    )
    assert [values(x) for x in both(n, 3)] == [["2.0"]]


def test_rule_4_4_immunity():
    t = Table({"immunity": 3})
    t.poison(0, 2)
    assert t.chans[0].poison == 0
    t.poison(0, 3)
    assert t.chans[0].poison == 3


def test_rule_4_5_death_after_draining():
    t = Table({"capacity": 2})
    t.write(1, "x")
    t.close(t.w[0], "died", died=True)
    t.read(2)
    t.read(3)
    assert t.out(2) == ("ok", 0, "x") and t.out(3) == ("PeerDied", 0)


def test_rule_4_5_peer_died_is_a_failure():
    n = net(1, proc(1, ["0w"], ["die", 0]), proc(2, ["0r"], ["iter", 0, []]))
    assert {x[-1] for x in both(n, 2)} == {("PeerDied",)} and runs(n) == {"PeerDied"}


def test_rule_4_5_any_dead_end_counts_when_the_last_is_gone():
    t = Table({})
    second, _ = t.make_end(0, WRITE)
    t.close(t.w[0], "died", died=True)
    t.read(1)
    assert t.waits(1)
    t.close(second, "retired")
    assert t.out(1) == ("PeerDied", 0)


def test_rule_4_6_a_failure_retires_and_does_not_poison():
    n = net(
        1,
        proc(9, [], ["try", [["par", [proc(1, ["0w"], ["fail"]), proc(2, [])]]], ["Fail"], []]),
        proc(3, ["0r"], ["read", 0]),
    )
    assert both(n, 3) == {(("Retired",),)}


def test_outcomes_name_every_process():
    n = net(1, proc(1, ["0w"], ["write", 0]), proc(2, ["0r"], ["read", 0]))
    (only,) = outcomes(n)
    assert dict(only)["run"] == (("ok",),) and logs(n, 2) == {(("ok", "1.0"),)}


def test_rule_1_5_an_extended_read_waits_for_a_slot():
    t = Table({"capacity": 1})
    t.write(1, "a")
    t.read(2, ext=True)  # the slot of its value stays occupied
    t.write(3, "b")
    t.read(4, ext=True)
    assert t.waits(3) and t.waits(4)
    t.release(2)
    assert t.out(3) == ("ok", 0) and t.out(4) == ("ok", 0, "b")


def test_rule_1_5_a_plain_reader_takes_straight_from_a_writer():
    t = Table({"capacity": 1})
    t.write(1, "a")
    t.read(2, ext=True)
    t.write(3, "b")
    t.read(4)
    assert t.out(3) == ("ok", 0) and t.out(4) == ("ok", 0, "b")


def test_rule_4_1_poison_through_a_closed_end_is_bad_use():
    n = net(1, proc(1, ["0w"], ["retire", 0], ["poison", 0, 1]), proc(2, ["0r"], ["read", 0]))
    assert both(n, 1) == {(("ok",), ("BadUse",))}

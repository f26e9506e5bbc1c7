"""Tests the checker and the shrinker: histories of the model are never flagged, and histories with
an injected error are always flagged.
"""

from __future__ import annotations

import copy
import random

import pytest

from conformance.checker import audit, check
from conformance.driver import ModelDriver, conform
from conformance.explore import run
from conformance.networks import DEFAULT, FEATURES, generate, readable
from conformance.program import BLOCKS
from conformance.shrink import report, shortest_prefix, shrink, tidy, valid
from conformance.tests.kit import net, proc

GRAINS = ("atomic", "cores")


@pytest.mark.parametrize("grain", GRAINS)
@pytest.mark.parametrize(
    "block", [0, 1, 2, *(pytest.param(n, marks=pytest.mark.soak) for n in range(3, 8))]
)
def test_the_model_is_never_flagged(grain, block):
    for seed in range(block * 50, block * 50 + 50):
        n = generate(seed, size=5, features=FEATURES)
        history = run(n, seed + 1, grain, check=True)
        found = check(n, history, grain)
        assert found, f"seed {seed}\n{report(n, history, found.why)}"
        assert not found.unknown, f"seed {seed}: {found.why}"


def test_a_history_of_one_scheduler_is_one_of_cores_too():
    for seed in range(60):
        n = generate(seed)
        assert check(n, run(n, seed, "atomic"), "cores"), f"seed {seed}"


def pipe(writes=3, capacity=0, **more):
    chan = {"capacity": capacity, **more} if capacity else {}
    return net(
        [chan], proc(1, ["0w"], ["loop", writes, [["write", 0]]]), proc(2, ["0r"], ["iter", 0, []])
    )


def edited(network, seed=0):
    """Returns a correct history, for a test to change."""
    history = run(network, seed)
    assert check(network, history)
    return history


def returns(history, pid):
    return [r for r in history if r.get("p") == pid and r["e"] == "ret"]


def flagged(network, history, word=""):
    for grain in GRAINS:
        found = check(network, history, grain)
        assert not found and not found.unknown, f"{grain}: not flagged"
        assert word in found.why, found.why
    return True


def test_a_lost_value():
    n = pipe(2)
    h = edited(n)
    gone = next(r for r in h if r.get("p") == 2 and r["e"] == "ret" and r["out"] == ["ok", "1.0"])
    call = max(
        k for k, r in enumerate(h) if r.get("p") == 2 and r["e"] == "call" and k < h.index(gone)
    )
    spoiled = [r for k, r in enumerate(h) if k != call and r is not gone]
    assert flagged(n, spoiled, "no explanation")


def test_a_doubled_value():
    n = pipe(2)
    h = edited(n)
    returns(h, 2)[1]["out"] = ["ok", "1.0"]
    assert flagged(n, h, "delivered twice")


def test_a_value_from_nowhere():
    n = pipe(2)
    h = edited(n)
    returns(h, 2)[0]["out"] = ["ok", "7.0"]
    assert flagged(n, h, "nobody had begun to write")


@pytest.mark.parametrize("capacity", [1, 2, 3])
def test_a_fifo_violation(capacity):
    n = pipe(4, capacity)
    for seed in range(5):
        h = edited(n, seed)
        a, b = returns(h, 2)[0], returns(h, 2)[1]
        a["out"], b["out"] = b["out"], a["out"]
        assert flagged(n, h)


def test_a_line_violation():
    # Two writers wait on one scheduler, 1 before 2. A reader arrives later and gets the value of
    # writer 2, which is wrong.
    n = net(
        1,
        proc(1, ["0w"], ["write", 0]),
        proc(2, ["0w"], ["sleep", 1], ["write", 0]),
        proc(3, ["0r"], ["sleep", 2], ["read", 0], ["read", 0]),
    )
    h = edited(n)
    a, b = returns(h, 3)[1:3]
    a["out"], b["out"] = b["out"], a["out"]
    assert flagged(n, h)


def test_a_read_that_ended_early():
    n = pipe(3, 3)
    h = edited(n)
    k = h.index(returns(h, 2)[-2])
    last_call = max(j for j in range(k) if h[j].get("p") == 2 and h[j]["e"] == "call")
    h[k]["out"] = ["stop"]
    tail = [r for r in h[k + 1 :] if not (r.get("p") == 2 and r["e"] in ("call", "ret"))]
    assert last_call < k and flagged(n, h[: k + 1] + tail, "no explanation")


def test_a_read_after_retire():
    # The writer retired its end and ended, so the value of a later write cannot be its own.
    n = net(
        1,
        proc(1, ["0w"], ["write", 0], ["retire", 0]),
        proc(2, ["0r"], ["read", 0], ["try", [["read", 0]], ["Retired"], []]),
    )
    h = edited(n)
    last = returns(h, 2)[1]
    assert last["out"] == ["Retired"]
    last["out"] = ["Poisoned", {"strength": 1}]
    assert flagged(n, h)
    last["out"] = ["PeerDied"]
    assert flagged(n, h)


def test_a_write_that_returns_before_its_value_was_taken():
    n = net(1, proc(1, ["0w"], ["write", 0]), proc(2, ["0r"], ["sleep", 5], ["read", 0]))
    h = edited(n)
    early = returns(h, 1)[0]
    h.remove(early)
    h.insert(next(k for k, r in enumerate(h) if r.get("p") == 1) + 1, {**early, "t": 0})
    assert flagged(n, h)


@pytest.mark.parametrize("spoil", [{"guard": 0}, {"guard": 7}])
def test_a_wrong_guard_in_the_exception(spoil):
    n = net(
        2,
        proc(1, ["0w"], ["sleep", 5]),
        proc(
            2,
            ["0r", "1r"],
            ["select", "fair", [{"g": "in", "end": 0}, {"g": "in", "end": 1, "ends": True}]],
        ),
        proc(3, ["1w"]),
    )
    h = edited(n)
    assert returns(h, 2)[0]["out"] == ["Retired", {"guard": 1}]
    returns(h, 2)[0]["out"][1].update(spoil)
    assert flagged(n, h)


def test_a_value_that_did_not_come_back():
    n = net(1, proc(1, ["0w"], ["write", 0]), proc(2, ["0r"], ["retire", 0]))
    h = edited(n)
    returns(h, 1)[0]["out"] = ["Retired", {"value": "missing"}]
    assert flagged(n, h)


def test_a_wrong_strength_of_poison():
    n = net(1, proc(1, ["0w"], ["poison", 0, 2]), proc(2, ["0r"], ["read", 0]))
    h = edited(n)
    returns(h, 2)[0]["out"][1]["strength"] = 1
    assert flagged(n, h)


def test_an_early_timer():
    n = net(0, proc(1, [], ["sleep", 5]))
    h = edited(n)
    returns(h, 1)[0]["t"] = 4
    assert flagged(n, h)
    returns(h, 1)[0]["t"] = 6
    assert flagged(n, h)


def test_wrong_results_of_a_group():
    n = pipe(1)
    h = edited(n)
    returns(h, 0)[0]["out"] = ["ok", [2, 1]]
    assert flagged(n, h)


def test_a_wrong_count_of_dropped_values():
    n = pipe(4, 1, overflow="drop_oldest")
    h = edited(n)
    h[-1]["dropped"][0] += 1
    assert flagged(n, h, "dropped")


def test_a_deadlock_that_is_none_and_one_that_was_not_seen():
    n = pipe(1)
    h = edited(n)
    next(r for r in h if r["e"] == "run")["out"] = ["Deadlock", {"blocked": [1]}]
    assert flagged(n, h)
    stuck = net(1, proc(1, ["0r"], ["read", 0]), proc(2, [], ["sleep", 1]))
    h = edited(stuck)
    next(r for r in h if r["e"] == "run")["out"] = ["ok"]
    assert flagged(stuck, h)


@pytest.mark.parametrize(
    "report_of, good",
    [
        ({"blocked": [1, 2, 3], "knot": [1, 2]}, True),
        ({"blocked": [0, 1, 2, 3]}, True),
        ({"blocked": [1, 2]}, False),
        ({"blocked": [1, 2, 3], "knot": [1, 3]}, False),
        ({"blocked": [1, 2, 3], "knot": [1, 2, 3]}, False),
    ],
)
def test_the_knot_of_a_deadlock(report_of, good):
    n = net(
        3,
        proc(1, ["0r", "1w", "2w"], ["read", 0]),
        proc(2, ["1r", "0w"], ["read", 0]),
        proc(3, ["2r"], ["read", 0]),
    )
    h = edited(n)
    next(r for r in h if r["e"] == "run")["out"] = ["Deadlock", report_of]
    assert bool(check(n, h)) is good


def test_starvation_is_seen_on_one_scheduler():
    # Both channels always have a value; a runtime that always takes guard 0 is not fair (5.4).
    n = net(
        [{"capacity": 4}] * 2,
        proc(1, ["0w", "1w"], ["loop", 4, [["write", 0], ["write", 1]]], ["sleep", 9]),
        proc(
            2,
            ["0r", "1r"],
            ["sleep", 1],
            ["loop", 3, [["select", "fair", [{"g": "in", "end": 0}, {"g": "in", "end": 1}]]]],
        ),
    )
    h = edited(n)
    for k, r in enumerate(returns(h, 2)[1:]):
        r["out"] = ["ok", 0, f"1.{2 * k}"]
    h[-1]["dropped"] = [1, 4]
    assert not check(n, h, "atomic") and check(n, h, "cores")


def test_priority_is_exact_on_one_scheduler():
    n = net(
        [{"capacity": 1}] * 2,
        proc(1, ["0w", "1w"], ["write", 0], ["write", 1], ["sleep", 9]),
        proc(
            2,
            ["0r", "1r"],
            ["sleep", 1],
            ["select", "priority", [{"g": "in", "end": 0}, {"g": "in", "end": 1}]],
        ),
    )
    h = edited(n)
    returns(h, 2)[1]["out"] = ["ok", 1, "1.1"]
    assert not check(n, h, "atomic")


def test_a_hung_run_and_a_broken_driver_are_flagged():
    n = pipe(1)
    h = edited(n)
    assert "hung" in check(n, h[:-2]).why
    assert "while its" in audit([h[0], h[0]]).why
    assert "returns from nothing" in audit([{"p": 1, "e": "ret", "out": ["ok"]}]).why
    assert "unknown kind" in audit([{"e": "tea"}]).why


def test_a_real_clock_lets_timers_go_off_at_any_moment():
    n = net(
        1,
        proc(1, ["0r"], ["select", "fair", [{"g": "in", "end": 0}, {"g": "timeout", "t": 9}]]),
        proc(2, ["0w"], ["yield"], ["sleep", 30]),
    )
    h = edited(n)
    early = returns(h, 1)[0]
    h.remove(early)
    h.insert(max(k for k, r in enumerate(h) if r.get("p") == 1 and r["e"] == "call") + 1, early)
    assert check(n, h, "atomic", clock="real")
    assert check(n, [{k: v for k, v in r.items() if k != "t"} for r in h], "cores", clock="real")


def spoilers(history, rng):
    """Returns a copy of the history with one random error, or None if the history offers no place
    for the error."""
    h = copy.deepcopy(history)
    rets = [r for r in h if r["e"] == "ret"]
    kind = rng.choice(["exception", "guard", "dropped", "time", "end"])
    if kind == "exception":
        r = rng.choice(rets)
        r["out"] = [
            rng.choice(
                [n for n in ("Retired", "Poisoned", "Cancelled", "PeerDied") if n != r["out"][0]]
            )
        ]
    elif kind == "guard":
        chosen = [
            r
            for r in rets
            if r["out"][0] == "ok" and len(r["out"]) > 1 and isinstance(r["out"][1], int)
        ]
        if not chosen:
            return None
        # This index belongs to no guard; the next index might belong to a second guard on the same
        # end.
        rng.choice(chosen)["out"][1] += 9
    elif kind == "dropped":
        h[-1]["dropped"][0] += 1
    elif kind == "time":
        rng.choice(rets)["t"] += 1
    else:
        ends = [k for k, r in enumerate(h) if r["e"] == "end"]
        del h[rng.choice(ends)]
    return h


@pytest.mark.parametrize("grain", GRAINS)
def test_random_wrongs_are_flagged(grain):
    caught = total = 0
    for seed in range(90):
        n = generate(seed)
        h = spoilers(run(n, seed, grain), random.Random(seed))
        if h is not None:
            total += 1
            caught += not check(n, h, grain)
    assert total > 60 and caught == total, f"{caught} of {total}"


# --- networks and shrinking


def test_the_same_seed_gives_the_same_network():
    assert generate(11) == generate(11) and generate(11) != generate(12)
    assert "seed 11" in readable(generate(11))


def test_networks_have_every_feature_among_them():
    text = "".join(repr(generate(s)["main"]) + repr(generate(s)["channels"]) for s in range(400))
    for word in (
        "'select'",
        "'out'",
        "'in'",
        "'timeout'",
        "'skip'",
        "'barrier'",
        "'par'",
        "'seq'",
        "'spawn'",
        "'ext'",
        "'poison'",
        "'die'",
        "'retire'",
        "'fail'",
        "'send'",
        "'iter'",
        "'sync'",
        "'resign'",
        "'priority'",
        "'try'",
        "drop_oldest",
        "drop_newest",
        "unbounded",
        "immunity",
        "'pre': False",
    ):
        assert word in text, word
    assert not any(f"'{word}'" in text or word in DEFAULT for word in ("cancel", "limit"))


def test_features_are_obeyed():
    for seed in range(200):
        text = repr(generate(seed, features=frozenset({"buffer"})))
        assert not any(
            w in text
            for w in (
                "'select'",
                "'poison'",
                "'sleep'",
                "'par', [{'id': 2, 'ends': [[9",
                "'fail'",
                "overflow",
            )
        )


def has(kind):
    def inside(body):
        return any(
            s[0] == kind
            or (s[0] in BLOCKS and inside(s[2]))
            or (s[0] == "try" and (inside(s[1]) or inside(s[3])))
            or (s[0] in ("par", "seq") and any(inside(p["body"]) for p in s[1]))
            or (s[0] == "spawn" and inside(s[1]["body"]))
            for s in body
        )

    return lambda n: inside(n["main"]["body"])


@pytest.mark.parametrize("kind", ["select", "poison", "ext"])
def test_shrinking_ends_at_the_smallest(kind):
    flat = DEFAULT - {"nested", "try"}  # shrinking moves nothing out of a group or a handler
    nets = (generate(seed, features=flat) for seed in range(500))
    small = shrink(next(n for n in nets if has(kind)(n) and len(repr(n)) > 700), has(kind))
    (group,) = small["main"]["body"]
    assert (
        len(group[1]) == 1 and len(group[1][0]["body"]) == 1 and group[1][0]["body"][0][0] == kind
    )


def test_shrinking_a_broken_runtime():
    """A runtime loses every poison of strength 2: the shrinker finds the smallest network that
    shows this.
    """

    class LosesStrongPoison(ModelDriver):
        def run(self, n, seed):
            import json

            return run(json.loads(json.dumps(n).replace('"poison", 0, 2', '"poison", 0, 1')), seed)

    seen: list[str] = []
    driver = LosesStrongPoison()
    seeds = [s for s in range(400) if '"poison"' in repr(generate(s)).replace("'", '"')]
    passed = failed = 0
    for s in seeds:
        p, f, _ = conform(driver, range(s, s + 1), say=seen.append)
        passed, failed = passed + p, failed + f
        if failed >= 2:
            break
    assert failed >= 1, "no network showed it"
    assert "strength 2" in seen[0] and len(seen[0].splitlines()) < 45
    assert "seed" in seen[0] and "history:" in seen[0]


def test_shrinking_something_that_does_not_fail():
    with pytest.raises(ValueError, match="nothing to shrink"):
        shrink(generate(1), lambda n: False)


def test_tidy_and_valid():
    n = net(3, proc(1, ["2w"], ["write", 0]), proc(2, ["2r"], ["read", 0]))
    assert len(tidy(n)["channels"]) == 1 and tidy(n)["main"]["body"][0][1][0]["ends"] == [[0, "w"]]
    assert valid(n) and not valid(net(1, proc(1, ["0w"], ["write", 1])))


def test_the_shortest_prefix():
    assert shortest_prefix(list(range(10)), lambda h: 6 in h) == [0, 1, 2, 3, 4, 5, 6]

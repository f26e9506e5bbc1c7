"""Compares random networks whose processes run in a component, alone and beside other kinds, with
the model.

The comparison covers rules 1 to 8 and 10 for <weft/component.hpp> (rule 16.1). STAYS in
native_driver.py lists the operations that a component cannot do, and why. For one seed: python -m
conformance.driver --on native --without mobile --seed N
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from conformance.checker import check
from conformance.native_driver import MAX_ENDS, STAYS, asks_for, results
from conformance.networks import DEFAULT, generate
from conformance.python_driver import ApartDriver
from conformance.python_names import ComponentError, behind
from conformance.retiring import retiring
from conformance.shrink import report
from conformance.tests.kit import agrees, net, proc
from conformance.tests.test_networks import BUDGET, out, select, within

pytestmark = pytest.mark.skipif(
    not any(shutil.which(name) for name in ("c++", "g++", "clang++")), reason="no C++ compiler"
)
FEATURES = DEFAULT - {"mobile"}  # a native channel carries no ends (16.4)
EACH = 12
# How many processes of each test's networks must run in a component; with fewer the test would
# prove nothing.
WERE = {"native": 24, "native+coroutines": 10, "native+coroutines+greenlets+threads": 5}


@pytest.fixture(scope="module", params=WERE)
def native(request: pytest.FixtureRequest) -> Iterator[ApartDriver]:
    on = ApartDriver(request.param, FEATURES)
    yield on
    on.close()


@pytest.mark.parametrize("shape", ["any", "retiring"])
def test_random_networks_of_components(native: ApartDriver, shape: str) -> None:
    agrees(native, EACH, WERE[native.name], budget=BUDGET, shape=shape)


def test_networks_beside_processes_that_are_cancelled_and_watched() -> None:
    """Rules 6.1 to 6.5, 7.11, 7.12. Python processes cancel the component's processes, and watch
    their failures.
    """
    on = ApartDriver("native+coroutines", FEATURES | {"cancel", "ended", "watched", "limit"})
    try:
        agrees(on, EACH, 5, budget=BUDGET)
    finally:
        on.close()


# On the first of these networks, components and the model disagreed. Each of the other networks has
# a single feature of the random networks.
FOUND = {
    "rule 5.7: a timeout of 0 is a skip in its place": net(
        1, proc(1, ["0w"], select("priority", out(0, pre=False), within(0), {"g": "skip"}))
    ),
    "rules 1.6, 3.2: an extended read whose writer waits, and then retires": net(
        1,
        proc(1, ["0r"], ["ext", 0, [["yield"]]], ["iter", 0, []]),
        proc(2, ["0w"], ["write", 0], ["retire", 0]),
    ),
    "rules 4.1, 4.3: poison that is caught, and one that goes on": net(
        2,
        proc(1, ["0r", "1w"], ["read", 0], ["poison", 0, 1]),
        proc(2, ["0w"], ["loop", 3, [["write", 0]]]),
        proc(3, ["1r"], ["try", [["read", 0]], ["Retired", "Poisoned"], [["sleep", 1]]]),
    ),
    "rules 7.2, 7.3: a failure, and what it cancels": net(
        2,
        proc(1, ["0r"], ["read", 0]),
        proc(2, ["1r"], ["sleep", 1], ["fail"]),
        proc(3, ["1w"], ["write", 0]),
    ),
    "rules 8.1, 8.4, 10.1: a barrier at which one is missing": net(
        1,
        proc(1, ["0r"], ["sync", 0]),
        proc(2, ["0w"], select("fair", {"g": "barrier", "b": 0})),
        barriers=[3],
    ),
    "rule 5.8: a value that is made when it is asked for, and one that is not": net(
        2,
        proc(1, ["0w", "1w"], select("fair", out(0, fn="make"), out(1, fn="raise"))),
        proc(2, ["0r"], ["read", 0]),
        proc(3, ["1r"], ["read", 0]),
    ),
    "rules 5.6, 11.1: an end of one's own that has retired": net(
        1, proc(1, ["0w"], ["retire", 0], ["write", 0]), proc(2, ["0r"], ["iter", 0, []])
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_networks_of_components(native: ApartDriver, name: str) -> None:
    for seed in range(3):
        history = native.run(FOUND[name], seed)
        found = check(FOUND[name], history, native.grain, clock=native.clock)
        assert found and not found.unknown, report(FOUND[name], history, found.why)


def test_what_a_component_made_up_is_seen() -> None:
    """Checks that the comparison can fail: the model rejects a history in which a read returns
    another value.
    """
    network = net(1, proc(1, ["0r"], ["read", 0]), proc(2, ["0w"], ["write", 0]))
    on = ApartDriver("native", FEATURES)
    try:
        history = on.run(network, 0)
    finally:
        on.close()
    assert check(network, history, on.grain, clock=on.clock)
    false = json.loads(json.dumps(history).replace('["ok", "2.0"]', '["ok", "2.1"]'))
    assert false != history
    assert not check(network, false, on.grain, clock=on.clock)


def test_what_stays_is_named_and_met() -> None:
    found: Counter[str] = Counter()
    features = DEFAULT | {"cancel", "ended", "watched", "limit"}
    free = 0
    for seed in range(300):
        for made in (generate(seed, 5, features), retiring(seed, 5, features)):
            for s in made["main"]["body"]:
                for p in s[1] if s[0] == "par" else []:
                    asked = asks_for(p)
                    found.update(asked)
                    free += not asked
    assert set(found) <= set(STAYS)
    assert {"another process", "a limit", "death", "too much"} <= set(found), found
    assert free > 200


@pytest.mark.parametrize(
    ("process", "asks"),
    [
        (proc(1, ["0r"], ["loop", 2, [["try", [["read", 0]], [], [["fail"]]]]]), set()),
        (proc(1, ["0r"] * (MAX_ENDS + 1)), {"too much"}),
        (proc(1, [0]), {"an end of its maker"}),
        (proc(1, ["0r"], ["iter", 0, [["die", 0]]]), {"death"}),
        (proc(1, [], ["try", [], [], [["spawn", proc(2, [])]]]), {"another process"}),
        (proc(1, [], ["sync", 2]), {"too much"}),
        (proc(1, [], select("fair", {"g": "ended", "p": 1})), {"another process"}),
        (proc(1, [], ["limit", "timeout", [], 1]), {"a limit"}),
        (proc(1, ["0w", "1w"], ["send", 0, 1]), {"too much"}),
    ],
)  # fmt: skip
def test_what_each_statement_asks_for(process: Any, asks: set[str]) -> None:
    assert asks_for(process) == asks


def test_failures_and_results_have_their_process() -> None:
    class Failed(Exception):
        message = "BadUse of p12"

    assert behind(Failed()) == ("BadUse", 12)
    assert behind(ValueError("BadUse of p12")) is None
    assert behind(ComponentError("Fail", 0, -1, None)) is None
    some = [proc(4, []), proc(7, []), proc(9, [])]
    assert results({4}, some, [None, None, "9"]) == [4, None, "9"]

"""Random networks whose processes run in other OS processes, alone and beside the other kinds,
compared with the model.

The networks test rules 1 to 7 and 10 across OS processes (WIRE.md 15). STAYS in host_driver.py
lists the operations that a process cannot do from another OS process, and why. For one seed: python
-m conformance.driver --on processes --with cancel,ended,watched --seed N
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from conformance.checker import check
from conformance.driver import verdict
from conformance.host_driver import STAYS, asks_for
from conformance.networks import DEFAULT, generate
from conformance.python_driver import ApartDriver
from conformance.retiring import retiring
from conformance.shrink import report
from conformance.tests.kit import agrees, net, proc
from conformance.tests.test_networks import BUDGET, out, select, within

KINDS = (
    "processes",
    pytest.param("processes+threads", marks=pytest.mark.soak),
    "processes+coroutines+greenlets+threads",
)
FEATURES = DEFAULT | {"cancel", "ended", "watched"}
EACH = 12
# How many processes of each test's networks must run in other OS processes; with fewer the test
# would prove nothing.
WENT = {"processes": 12, "processes+threads": 5, "processes+coroutines+greenlets+threads": 2}


@pytest.fixture(scope="module", params=KINDS)
def abroad(request: pytest.FixtureRequest) -> Iterator[ApartDriver]:
    on = ApartDriver(request.param, FEATURES, seconds=60)
    yield on
    on.close()


@pytest.mark.parametrize("shape", ["any", "retiring"])
def test_random_networks_abroad(abroad: ApartDriver, shape: str) -> None:
    agrees(abroad, EACH, WENT[abroad.name], budget=BUDGET, shape=shape)


def test_random_networks_abroad_that_send_ends(abroad: ApartDriver) -> None:
    """Rule 2.4: a process sends an end to another process, which writes to it."""
    before, seed = abroad.away, 0
    for _ in range(EACH // 2):
        while '["send",' not in json.dumps(made := generate(seed, 4, FEATURES)):
            seed += 1
        seed += 1
        found, history = verdict(abroad, made, seed, BUDGET)
        assert found or found.unknown, report(made, history, found.why)
    assert abroad.away - before >= WENT[abroad.name] // 2


# Each of these networks was shrunk from one on which weft.processes and the model disagreed.
FOUND = {
    "rules 6.1, 7.2: a failure of one that was cancelled is a failure": net(
        1,
        proc(1, ["0r", "0w"], ["read", 0]),
        proc(4, ["0w", "0w"], select("priority", out(0, fn="raise"))),
    ),
    "rule 5.8: a value that was not made is no end of the channel": net(
        1,
        proc(1, ["0r", "0w"], ["read", 0]),
        proc(3, ["0w"], ["write", 0]),
        proc(4, ["0w", "0w"], select("priority", out(0, fn="raise"))),
    ),
    "rule 5.6: beside an output that has retired an input is tried": net(
        4,
        proc(3, ["1w", "0w"], ["write", 0]),
        proc(4, ["0r", "2w", "3w", "1r"], select("priority", out(1, pre=False), out(2), within(3))),
        proc(5, ["3r"]),
    ),
    "rules 1.5, 1.6: a writer elsewhere meets a reader while an extended read holds the slot": net(
        [{"capacity": 1}],
        proc(2, ["0r"], ["ext", 0, [["sync", 0]]]),
        proc(3, ["0r"], ["read", 0]),
        proc(4, ["0w"], ["write", 0], ["write", 0]),
        barriers=[2],
    ),
    "rule 4.5: PeerDied arrives as PeerDied": net(
        2,
        proc(
            2,
            ["0r", "0w"],
            ["par", [proc(3, ["1w", 0], ["die", 0]), proc(4, ["1r"], ["read", 0])]],
        ),
    ),
    "rules 2.4, 6.1, 7.2: who is cancelled as it sends an end has not failed": net(
        2,
        proc(2, ["0w", "1w"], ["send", 0, 1]),
        proc(4, ["0r", "1r"], ["fail"]),
    ),
    "rules 2.2, 7.3: what was never started is let go of": net(
        [{}, {"capacity": 1}],
        proc(
            1,
            ["0w"],
            [
                "seq",
                [proc(2, ["1w"], ["cancel", 9], ["write", 0], ["fail"]), proc(3, ["1r", 0])],
            ],
        ),
    ),
    "rules 1.6, 5.7: who looks does not wait for a choice that an extended read holds": net(
        1,
        proc(1, ["0w", "0r"], select("priority", out(0, ends=True))),
        proc(4, ["0r"], ["ext", 0, [select("fair", within(0), {"g": "skip"})]]),
    ),
    "rule 6.5: who is cancelled before it was started may run to its first operation": net(
        2,
        proc(
            1,
            ["0r", "0w"],
            ["seq", [proc(2, ["1w", "0w"]), proc(3, ["1r", "0w"], ["read", 0])]],
        ),
        proc(5, ["0r"], ["cancel", 3]),
    ),
    "rule 4.1: poison of one is there for the next": net(
        [{"capacity": 1, "overflow": "unbounded"}],
        proc(1, ["0r"], ["read", 0]),
        proc(2, ["0w"], ["poison", 0, 2], ["write", 0]),
        proc(3, ["0w"], ["write", 0]),
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_networks_abroad_that_disagreed(abroad: ApartDriver, name: str) -> None:
    for seed in range(3):
        history = abroad.run(FOUND[name], seed)
        found = check(FOUND[name], history, abroad.grain, clock=abroad.clock)
        assert found and not found.unknown, report(FOUND[name], history, found.why)


def test_what_stays_is_named_and_met() -> None:
    """For each reason in STAYS some process of these networks stays in this OS process. Most
    processes without such a reason can run in another one.
    """
    found: Counter[str] = Counter()
    free = 0
    for seed in range(600):
        features = FEATURES | {"limit"}
        for made in (generate(seed, 4, features), retiring(seed, 4, features)):
            for p in _top(made):
                asked = asks_for(p)
                found.update(asked)
                free += not asked
    assert set(found) == set(STAYS), found
    assert free > 1000, free


def _top(made: dict[str, Any]) -> list[dict[str, Any]]:
    return [p for s in made["main"]["body"] if s[0] == "par" for p in s[1]]


def test_a_value_that_is_lost_abroad_is_noticed(abroad: ApartDriver) -> None:
    """Checks that the driver can fail: a history without a process's read has no explanation."""
    given = net(1, proc(1, ["0w"], ["write", 0]), proc(2, ["0r"], ["read", 0]))
    history = abroad.run(given, 0)
    assert check(given, history, abroad.grain, clock=abroad.clock)
    for record in history:
        if record.get("p") == 2 and record["e"] == "ret":
            record["out"] = ["ok", "1.1"]
    assert not check(given, history, abroad.grain, clock=abroad.clock)

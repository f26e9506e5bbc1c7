"""Compares random networks of processes, some of which run on hosts of a network, with the model:
rules 1 to 7 between machines (wire 15, 17).

The networks have no barriers, no ends in values and no reports of deadlocks, because these do not
work across machines. So only networks are used for which the model finds no deadlock.

WEFT_NETWORKS=n sets the number of networks of each kind.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT, Agent

from conformance.driver import verdict
from conformance.explore import run
from conformance.networks import DEFAULT, Net, generate
from conformance.python_driver import ApartDriver
from conformance.shrink import report
from weft import net
from weft._net import server as _net_server

EACH = int(os.environ.get("WEFT_NETWORKS", "4"))
SCHEDULES = 100  # how many schedules the model tries in order to find a deadlock
FEATURES = (DEFAULT | {"cancel", "watched"}) - {"barrier", "mobile"}
# Without trust a caller learns that a call failed, but not which object it raised.
TYPED = FEATURES - {"fail"}
# name: features, number of agents, their options
CASES = {
    "trusted": (FEATURES, 2, ["--trust"]),
    "typed, three machines": (TYPED, 3, []),
    "typed, by the relay": (TYPED, 2, ["--relay", "only"]),
}


@pytest.fixture(
    scope="module", params=[*list(CASES)[:2], pytest.param(list(CASES)[2], marks=pytest.mark.soak)]
)
def machines(
    request: pytest.FixtureRequest, keys: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ApartDriver]:
    """Yields a program that joins the network, with hosts of two OS processes each."""
    features, many, how = CASES[request.param]
    folder = tmp_path_factory.mktemp("networks") / "server"
    net.make_keys(folder, by=keys)
    allowed = [f"--allow=conformance.host_driver:{name}" for name in ("played", "played_awaiting")]
    with _net_server.Server(folder, "127.0.0.1:0") as server, pytest.MonkeyPatch.context() as env:
        env.setenv("WEFT_SERVER", server.url)
        env.setenv("WEFT_NET", str(keys))
        if "--trust" in how:
            env.setenv("WEFT_TRUST", "1")
        agents = [
            Agent(server.url, keys, f"gpu{i}", "--hosts", "2", *allowed, *how, folder=ROOT)
            for i in range(many)
        ]
        driver = ApartDriver("machines+threads", features, seconds=60)
        try:
            yield driver
        finally:
            driver.close()
            for agent in agents:
                agent.process.terminate()
                agent.process.communicate()


def test_random_networks(machines: ApartDriver) -> None:
    seed = compared = 0
    while compared < EACH:
        made = generate(seed, 4, machines.features)
        if not can_stand_still(made):
            found, history = verdict(machines, made, seed)
            assert found or found.unknown, report(made, history, found.why)
            compared += not found.unknown
        seed += 1
    assert machines.away >= EACH


def can_stand_still(made: Net) -> bool:
    return any(
        run(made, schedule, "cores", clock="real")[-2]["out"][0] == "Deadlock"
        for schedule in range(SCHEDULES)
    )

"""Pools of hosts on other machines: which host takes a call, and the fate of the call when the host
dies (WIRE-NETWORKS.md 17.9 to 17.12).
"""

from __future__ import annotations

import os
import signal
from typing import Any

import far_parts as parts
import pytest

from weft import net
from weft import processes as ps
from weft import threads as th
from weft._net import loop as _net_loop
from weft._net import name_rules as _net_named
from weft.errors import BadUse

pytestmark = pytest.mark.usefixtures("never_away")


def test_a_pool_of_hosts(agent, network):
    agents = {name: agent(name, "--hosts", "1") for name in ("gpu1", "gpu2")}
    hosts = network.hosts(2)
    assert (len(hosts), hosts.names) == (2, ["gpu1", "gpu2"])
    numbers = [th.Channel() for _ in range(4)]

    @th.process
    def pid_of(reader: Any) -> int:
        return int(reader.read()[2])

    jobs = [th.Channel() for _ in range(4)]

    @th.process
    def gives(jobs: Any) -> None:
        for i, w in enumerate(jobs):
            w.write(i)

    got = th.run(
        gives([j.writer() for j in jobs]),
        [pid_of(c.reader()) for c in numbers],
        [
            parts.squares.on(hosts)(j.reader(), c.writer())
            for j, c in zip(jobs, numbers, strict=True)
        ],
    )
    used = [pid for pid in got if isinstance(pid, int)]
    for a in agents.values():
        assert used.count(a.report["pids"][0]) == 2
    assert "hosts of" in repr(hosts)


def test_as_many_hosts_as_may_run_it(agent, network, monkeypatch):  # wire 17.9
    """Of three hosts, two may run `pid`, and one may run `add`; a function cannot be called on more
    hosts than may run it."""
    agent("gpu1", "--hosts", "1", "--allow", "far_parts:pid")
    agent("gpu2", "--hosts", "1", "--allow", "far_parts:pid", "--allow", "far_parts:add")
    hosts = network.hosts(2, patience=0.5)
    assert th.run(parts.pid.on(hosts)()) > 0
    says = (
        r"far_parts:add is allowed on 1 of the hosts that are there \(gpu2\), and 2 were asked for"
    )
    with pytest.raises(BadUse, match=says):
        th.run(parts.add.on(hosts)(1, 2))
    assert th.run(parts.add.on(network.hosts(1))(1, 2)) == 3


def test_supervised_over_a_pool(agent, network):
    """A host dies during the work: its jobs are done on another host, and none is lost."""
    agents = [agent(name, "--hosts", "1") for name in ("gpu1", "gpu2")]
    workers = ps.Supervisor(network.hosts(2), backoff=0.01)
    n = 60

    @th.process
    def gives(jobs: Any) -> None:
        for i in range(n):
            jobs.write(i)  # returns once the reader has left the block of its extended read

    @th.process
    def gathers(results: Any) -> dict[int, int]:
        found: dict[int, int] = {}
        while len(found) < n:
            i, square, _ = results.read()
            found[i] = square
            if len(found) == 10:
                agents[0].kill()
        return found

    jobs, results = th.Channel("jobs"), th.Channel("results")
    got = th.run(
        gives(jobs.writer()),
        gathers(results.reader()),
        [parts.squares.on(workers)(jobs.reader(), results.writer()) for _ in range(2)],
    )
    assert got[1] == {i: i * i for i in range(n)}


@pytest.mark.parametrize("gone", [False, True], ids=["it has no ticket", "it has gone"])
def test_a_pool_asks_another_host(agent, network, gone, monkeypatch):  # wire 17.9
    """The first host has no ticket, or its name disappears between the listing and the request.
    Its agent does not write during that time, as if its machine were cut off.
    """
    monkeypatch.setattr(_net_named, "SOON", 0.3)
    stopped, other = (agent(name, "--hosts", "1") for name in ("gpu1", "gpu2"))
    hosts = network.hosts(2, patience=20)
    meeting, loop = network._meeting, network._loop
    os.kill(stopped.process.pid, signal.SIGSTOP)
    try:
        _net_loop.wait(loop, meeting._ticket_for("host=gpu1", "host", 5))
        if gone:
            hosts._look(fresh=True)
            names = _net_loop.wait(loop, meeting._names())
            _net_loop.wait(loop, names.delete("host=gpu1"))
        pids = th.run(*(parts.pid.on(hosts)() for _ in range(4)))
        assert set(pids) == set(other.report["pids"])
    finally:
        os.kill(stopped.process.pid, signal.SIGCONT)


@pytest.mark.parametrize("trust", [False, True])
def test_what_was_in_hand_is_reported(agent, server, keys, trust):
    """Without trust the value is reported too, as a plain value, because no data of a host are
    unpickled."""
    agent("gpu1", "--hosts", "1", *["--trust"][: int(trust)])
    reported = []
    with net.join(server.url, keys=keys, trust=trust) as network:
        workers = ps.Supervisor(
            network.hosts(), restarts=1, backoff=0, report=lambda e, v: reported.append((e.host, v))
        )
        jobs, pids = th.Channel("jobs"), th.Channel("pids")

        @th.process
        def gives(jobs: Any) -> None:
            for job in (["first", {"n": 1}], "second"):
                jobs.write(job)

        @th.process
        def kills(pids: Any) -> list[Any]:
            os.kill(pids.read()[0], signal.SIGKILL)
            return list(pids)

        got = th.run(
            gives(jobs.writer()),
            kills(pids.reader()),
            parts.waits_with.on(workers)(jobs.reader(), pids.writer()),
        )
    assert [job for _, job in got[1]] == ["second"]
    assert reported == [("gpu1", [["first", {"n": 1}]])]


def test_pools_that_are_refused(agent, network):
    with pytest.raises(BadUse, match=r"there are 0 hosts, and 1 were asked for, after 0\.2 sec"):
        network.hosts(patience=0.2)
    for n in (0, -1, 1.5, True):
        with pytest.raises(BadUse, match="hosts: how many must be a whole number from 1 on"):
            network.hosts(n)
    agent("gpu1", "--allow", "far_parts:pid")
    with pytest.raises(BadUse, match=r"far_parts:add is allowed on none of the hosts.*\(gpu1\)"):
        th.run(parts.add.on(network.hosts())(1, 2))

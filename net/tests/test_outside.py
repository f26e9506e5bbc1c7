"""Tests which parts of a network count as outside (rule 10.3, WIRE-NETWORKS.md 17.16): a deadlock
is reported, unless another program may still connect.
"""

from __future__ import annotations

import gc
import threading
from typing import Any

import away_parts
import far_parts as parts
import pytest

from weft import coroutines as co
from weft import net
from weft import threads as th
from weft._distributed_deadlock import rounds as _rounds
from weft._net import agent as _net_agent
from weft.errors import BadUse, Deadlock
from weft.processes import Parallel


@pytest.fixture
def network(server, keys):
    with net.join(server.url, keys=keys, name="here") as joined:
        yield joined


@th.process
def takes(r: Any) -> list[Any]:
    return list(r)


@th.process
def takes_then(r: Any, then: Any) -> Any:
    """Calls `then` first, so that the effects of `then` occur while the other processes wait."""
    then()
    return r.read()


@th.process
def crosses(r: Any, w: Any) -> None:
    w.write(r.read())


def knot() -> list[Any]:
    """Returns two processes each of which waits for the other."""
    a, b = th.Channel("a"), th.Channel("b")
    return [crosses(a.reader(), b.writer()), crosses(b.reader(), a.writer())]


def told(*processes: Any) -> str:
    with pytest.raises(Deadlock) as raised:
        th.run(*processes)
    return str(raised.value)


def test_a_network_that_was_only_joined(network):  # wire 17.16
    report = told(*knot())
    assert "crosses" in report and "read 'a'" in report and "read 'b'" in report
    assert "test_outside.py:" in report
    assert network.names() == []  # the program is still a member of the network


def test_an_end_that_ordinary_code_holds_where_one_was_only_joined(network, keys):  # wire 17.16
    """Only a foreign thread could still use the end. The network's own threads do not count as
    such: not the thread of its loop, nor those that look up addresses, nor the thread that keeps
    the log of a server that this program has started.
    """
    with pytest.raises(BadUse, match=r"the NATS server at .* cannot be used"):
        net.join("nats://no-such-name.invalid:4222", keys=keys)
    c = th.Channel("c")
    held = c.writer()
    assert "read 'c'" in told(takes(c.reader()), takes(c.reader()))
    held.retire()


def test_coroutines_in_a_network_that_was_only_joined(network):  # wire 17.16
    @co.process
    async def waits(r: Any) -> None:
        await r.read()

    c = co.Channel("c")
    held = c.writer()

    @co.process
    async def holds(r: Any, _: Any) -> None:
        await r.read()

    d = co.Channel("d")
    with pytest.raises(Deadlock, match="read 'c'"):
        co.run(waits(c.reader()), holds(d.reader(), held), waits_and_holds(c, d))


def waits_and_holds(c: Any, d: Any) -> Any:
    @co.process
    async def body(r: Any, _: Any) -> None:
        await r.read()

    return body(c.reader(), d.writer())


def test_a_program_that_connects_to_a_name_wakes_a_run(
    network, server, keys, program
):  # wire 17.16
    """All processes wait, which is not a deadlock, because another program may connect to the
    name."""
    p = program("writes_when_told", server.url, keys, "lab/c", 1)
    assert p.next_report() == "here"
    c = th.Channel("c")
    network.offer("lab/c", c, writers=True)
    received = th.run(takes_then(c.reader(), p.go))
    assert received == 0
    assert p.next_report() == "left"


def test_a_name_that_is_withdrawn(network):  # wire 17.16
    """The knot exists before the name is withdrawn, but is reported only once the last name is
    withdrawn."""
    names = ["lab/a", "lab/b"]
    for name in names:
        network.offer(name, th.Channel(name), writers=True)
    withdrawn: list[str] = []

    def withdraw() -> None:
        for name in names:
            network.withdraw(name)
            withdrawn.append(name)

    thread = threading.Thread(target=withdraw)
    c = th.Channel("c")
    report = told(takes_then(c.reader(), thread.start), *knot())
    thread.join()
    assert withdrawn == names
    assert "read 'a'" in report


def test_a_name_that_was_refused_is_nothing_outside(network, server, keys):  # wire 17.16
    with net.join(server.url, keys=keys, name="other") as other:
        other.offer("lab/c", th.Channel(), writers=True)
        with pytest.raises(BadUse, match="is taken"):
            network.offer("lab/c", th.Channel(), writers=True)
        with pytest.raises(BadUse, match="offered by this program already"):
            other.offer("lab/c", th.Channel(), writers=True)
        other.withdraw("lab/c")
        with pytest.raises(BadUse, match="not offered by this program"):
            other.withdraw("lab/c")
        assert "read 'a'" in told(*knot())


def test_a_session_that_is_closed_is_nothing_outside(keys, program):  # wire 17.16
    """The session ends immediately, not only when the garbage collector runs."""
    gc.collect()
    gc.disable()
    try:
        with net.listen(keys=keys) as door:
            p = program("takes_what_never_comes", door.address, keys)
            session = door.next()
            assert p.next_report() == "here"
            session.close()
        assert "read 'a'" in told(*knot())
    finally:
        gc.enable()


def test_a_network_that_is_left_with_its_names(server, keys):  # wire 17.16
    with net.join(server.url, keys=keys) as network:
        network.offer("lab/c", th.Channel(), writers=True)
    assert "read 'a'" in told(*knot())


def test_a_session_until_it_is_over(network, server, keys, program):  # wire 17.16
    """The session continues when the name is withdrawn, and values still arrive through the
    session. Then the session ends while all processes wait, and the deadlock is reported.
    """
    p = program("writes_when_told", server.url, keys, "lab/c", 1000)
    assert p.next_report() == "here"
    c, other = th.Channel("c"), th.Channel("other")
    network.offer("lab/c", c, writers=True)

    @th.process
    def takes_all(r: Any, never: Any) -> None:
        p.go()
        assert r.read() == 0
        network.withdraw("lab/c")
        assert list(r) == list(range(1, 1000))
        never.read()

    report = told(takes_all(c.reader(), other.reader()), *knot())
    assert "read 'other'" in report and "read 'a'" in report
    assert p.next_report() == "left"


def test_a_name_while_hosts_wait_too(network, server, keys, program, monkeypatch):  # wire 17.16
    """The rounds over all OS processes of this program take the name into account too."""
    p = program("writes_when_told", server.url, keys, "lab/c", 1)
    assert p.next_report() == "here"
    c, d, e = th.Channel("c"), th.Channel("d"), th.Channel("e")
    network.offer("lab/c", c, writers=True)

    @th.process
    def there_and_back(r: Any, out: Any, back: Any) -> Any:
        out.write(r.read())
        return back.read()

    answers: list[bool] = []
    real = _rounds._still

    def still(spaces: Any) -> bool:
        verdict: bool = real(spaces)
        if len(spaces) > 1 and all(s.waits for s in spaces[1:]):  # the host waits
            answers.append(verdict)
            if len(answers) == 3:
                p.go()
        return verdict

    monkeypatch.setattr(_rounds, "_still", still)
    got = Parallel(
        away_parts.passes_on(d.reader(), e.writer()),
        there_and_back(c.reader(), d.writer(), e.reader()),
    )
    assert got[1] == 0
    assert answers[:3] == [False] * 3
    assert p.next_report() == "left"


def test_a_door_until_it_is_closed(keys):  # wire 17.16
    door = net.listen(keys=keys)
    closes = threading.Thread(target=door.close)
    c = th.Channel("c")
    assert "read 'a'" in told(takes_then(c.reader(), closes.start), *knot())
    closes.join()


def test_an_agent_until_it_is_closed(server, keys):  # wire 17.16
    network = net.join(server.url, keys=keys)
    agent = _net_agent.Agent(network, "gpu1", ["far_parts:pid"], 1)
    closes = threading.Thread(target=agent.close)
    c = th.Channel("c")
    assert "read 'a'" in told(takes_then(c.reader(), closes.start), *knot())
    closes.join()


def test_a_process_that_waits_for_a_host(network, agent):  # wire 17.16
    """A process asks the network for the host, and all others wait for that process: this is not a
    deadlock."""
    c = th.Channel("c")

    @th.process
    def asks(w: Any) -> None:
        agent("gpu1", "--hosts", "1")
        w.write(th.run(parts.pid.on("gpu1")()))

    assert th.run(takes(c.reader()), asks(c.writer()))[0][0] > 0
    with pytest.raises(BadUse, match=r"within 0\.3 seconds"):
        th.run(*knot(), parts.pid.on(network.host("nobody", patience=0.3))())
    assert "read 'a'" in told(*knot())

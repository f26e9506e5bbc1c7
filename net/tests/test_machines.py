"""Programs on machines of their own, over networks that lose, delay, disorder and are cut
(machines.py); and on loopback through a proxy (proxy.py). Where machines cannot be made, only the
tests on loopback are run, and pytest reports the reason.

WEFT_MESSAGES=n: how many messages go over the bad network. WEFT_RESTARTS=n: how often the server is
restarted.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import machines
import pytest
from conftest import Agent
from machines import Machines
from proxy import Loopback

from weft import net
from weft import threads as th
from weft._net import server as _net_server

WHY_NOT = machines.why_not()
MESSAGES = int(os.environ.get("WEFT_MESSAGES", "1000"))
RESTARTS = int(os.environ.get("WEFT_RESTARTS", "2"))

Lan = Machines | Loopback


CAN = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
# On machines, a side that is cut off waits for the system's own time limits, which takes an idle
# minute.
BOTH = [pytest.param(Machines, marks=[CAN, pytest.mark.soak]), Loopback]
OF_BOTH = ["machines", "proxy"]


@pytest.fixture(params=BOTH, ids=OF_BOTH)
def lan(request: pytest.FixtureRequest) -> Iterator[Lan]:
    """Yields three machines; the first machine has the server."""
    seed = int(os.environ.get("WEFT_SEED", random.randrange(1 << 30)))
    print("seed", seed)
    with request.param(3, seed) as made:
        yield made


@pytest.fixture
def meeting(
    lan: Lan, keys: Path, tmp_path: Path, program: Callable[..., Any]
) -> Iterator[Callable[[int], str]]:
    """Yields a function that returns the URL by which a machine reaches the server."""
    folder = net.make_keys(tmp_path / "server", by=keys)
    address = f"{lan.address(1)}:{lan.port}"
    server = program("is_server", folder, address, before=lan.inside(1))
    url = server.next_report()
    yield lambda machine: lan.reached(url, machine)
    server.go()  # if `server` were killed, the NATS server would keep running
    assert server.ended() == 0


# --- networks that lose ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "lan", [pytest.param(Machines, marks=CAN), Loopback], ids=OF_BOTH, indirect=True
)
@pytest.mark.parametrize(
    ("capacity", "n", "most"),
    [
        pytest.param(0, 60, 4000, marks=pytest.mark.soak),
        (64, MESSAGES, 2000),
        (0, 3, 600_000),
    ],
    ids=["rendezvous", "buffer", "large"],
)
def test_over_a_bad_line(lan, meeting, keys, program, capacity, n, most):  # wire 17.7
    """Some of the packets are lost; each packet takes 20 to 25 ms, so that some overtake others.
    All values arrive unchanged and in order.
    """
    home = program("sums", meeting(2), keys, f"{lan.address(2)}:0", capacity, before=lan.inside(2))
    assert home.next_report() == "offered"
    before = lan.configure(delay=0.02, jitter=0.005, loss=lan.loss)
    p = program("sends", meeting(3), keys, f"{lan.address(3)}:0", 7, n, most, before=lan.inside(3))
    sent, received = p.next_report(), home.next_report()
    counts = lan.configure()
    print(counts)
    assert received == sent and received[0] == n
    assert counts["lost"] > before["lost"] == 0  # the network has lost some packets


# --- a machine that is cut off --------------------------------------------------------------------


def test_a_machine_that_is_cut_off_and_comes_back(lan, meeting, keys, program):
    """wire 17.7, 8.1, 8.3: neither side hangs. Whether an open write was received is unknown; an
    open read lost nothing. When the network is back, ends that were held through the session stay
    dead, and a new session with the same program begins.
    """
    home = program("is_cut", meeting(2), keys, f"{lan.address(2)}:0", before=lan.inside(2))
    assert home.next_report() == "offered"
    p = program("cuts_off", meeting(3), keys, f"{lan.address(3)}:0", before=lan.inside(3))
    assert home.next_report() == "a job"
    assert p.next_report() == 1
    assert home.next_report() == "has it"
    lan.configure(cut=[2])
    p.go()
    assert p.next_report() == {"write": ["PeerDied", True], "read": ["PeerDied", False]}
    assert home.next_report() == [
        "PeerDied",
        False,
    ]  # the outcome of the read, whose writer was on the other machine
    assert home.next_report()[0] == "PeerDied"
    assert lan.configure(cut=[])["cut"] > 0
    p.go()
    assert p.next_report() == [["PeerDied", False], ["PeerDied", False]]  # nothing was sent
    assert p.next_report() == "wrote"
    assert home.next_report() == "back"


def test_a_host_that_is_cut_off(lan, meeting, keys, program):  # wire 17.12
    """The job that the host holds is done again on the other host, so no job is lost. The report of
    the host's death contains no signal, because it is unknown how the host ended, or whether it
    ended at all.
    """
    agents = {
        i: Agent(
            meeting(i),
            keys,
            f"gpu{i}",
            *("--hosts", "1", "--address", f"{lan.address(i)}:0"),
            *("--allow", "far_parts:squares"),
            before=lan.inside(i),
        )
        for i in (1, 2)
    }
    try:
        p = program(
            "squares_on_two", meeting(3), keys, f"{lan.address(3)}:0", 60, before=lan.inside(3)
        )
        holder = p.next_report()
        at = next(i for i, agent in agents.items() if is_of(holder, agent.process.pid))
        lan.configure(cut=[at])
        p.go()
        found, twice, logged = p.next_report()
        assert found == [[i, i * i] for i in range(60)]
        assert twice == [9]
        (death,) = logged
        assert f"on host 'gpu{at}' is lost" in death
        assert p.ended() == 0
    finally:
        for one in agents.values():
            one.process.kill()
            one.ended()


def is_of(pid: int, ancestor: int) -> bool:
    """Returns whether the OS process `pid` is `ancestor`, or a descendant of `ancestor`."""
    while pid not in (0, ancestor):
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return pid == ancestor


# --- a server that is restarted -------------------------------------------------------------------


@pytest.mark.soak
def test_a_server_that_is_restarted_under_load(keys, program, tmp_path, own_address):  # wire 17.8
    """The server is killed (SIGKILL) repeatedly, while names are offered and withdrawn. Meanwhile
    sessions continue, and each time the next program that connects gets a session.
    """
    folder = net.make_keys(tmp_path / "server", by=keys)
    server = _net_server.Server(folder, own_address)
    address = server.url.removeprefix("tls://")
    try:
        loads = [program("offers_and_withdraws", server.url, keys, f"load/{i}") for i in range(2)]
        assert [p.next_report() for p in loads] == ["here", "here"]
        with net.join(server.url, keys=keys, name="home") as network:
            c, numbers = th.Channel("c"), th.Channel("numbers")
            r, counts = c.reader(), numbers.reader()
            keep = c.writer()
            network.offer("c", c, writers=True)
            network.offer("numbers", numbers, writers=True)
            program("counts_by_name", server.url, keys, "numbers")
            assert counts.read() == 0
            at = 1
            for i in range(RESTARTS):
                server.stop(signal.SIGKILL)
                for _ in range(100):  # these values need no server
                    assert counts.read() == at
                    at += 1
                server = _net_server.Server(folder, address)
                p = program("names_writer", server.url, keys, "c", 1)
                assert r.read() == 0
                assert p.next_report() == "written", i
            keep.retire()
            counts.retire()
        for p in loads:
            p.go()
        assert all(p.next_report() >= 1 for p in loads)
        assert [p.ended() for p in loads] == [0, 0]
    finally:
        server.stop()

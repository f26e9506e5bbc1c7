"""Programs, agents, their OS processes and the server are killed at each step of the protocol
(`weft._net.kill_points`; WIRE-NETWORKS.md 17.22). With WEFT_KILLS=all they are killed at every
step, otherwise at every tenth.

Whenever a program is killed at a step, the program that waits for it receives an error of Weft and
continues, and the next program that connects gets a session.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import far_parts as parts
import pytest

from weft import net
from weft import processes as ps
from weft import threads as th
from weft._net import kill_points as _net_steps
from weft._net import names as _net_names
from weft._net import remote_hosts as _net_hosts
from weft._net import server as _net_server
from weft.errors import BadUse, ChannelEnd

HERE = Path(__file__).resolve().parent
EVERY = slice(None) if os.environ.get("WEFT_KILLS") == "all" else slice(1, None, 10)
TOLD = (BadUse, ConnectionError, ChannelEnd)  # the errors that a program may receive while it waits


def steps(*roles: str) -> list[str]:
    return [f"{role}.{step}" for role in roles for step in _net_steps.STEPS[role][EVERY]]


def killing(step: str, file: Path, pid: str = "") -> list[str]:
    """Returns the words to put before a command, so that the command is killed at that step."""
    return ["env", f"WEFT_NET_KILL={step} {file} {pid}".rstrip(), "WEFT_TEST_RENEW=0.2"]


@pytest.fixture(autouse=True)
def _quick_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes a name free one second after its home was killed, and not fifteen."""
    monkeypatch.setattr(_net_names, "LIVES", 1.0)
    monkeypatch.setattr(_net_names, "RENEW", 0.2)


@pytest.fixture
def network(server: Any, keys: Path) -> Iterator[net.Network]:
    """A member that makes the bucket before any other program does."""
    with net.join(server.url, keys=keys, name="survivor") as joined:
        joined.names()
        yield joined


class Attempt(threading.Thread):
    """Writes to a channel by name until a write fails with `error`. A write that has failed only
    because a busy program did not answer in time is repeated until the kill.
    """

    def __init__(self, network: net.Network, name: str, killed: Path) -> None:
        super().__init__()
        self.network, self.called, self.killed = network, name, killed
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        while self.error is None:
            try:
                w = self.network.writer(self.called, patience=0.5)
                while True:
                    w.write(1)
            except TOLD as error:
                if self.killed.exists():
                    self.error = error


def offered_anew(network: net.Network, name: str, channel: Any) -> None:
    """Offers the name again as soon as the server is back and the name is free."""
    while True:
        try:
            network.offer(name, channel, writers=True)
            return
        except BadUse as error:
            assert "taken" in str(error) or "is the server up?" in str(error)


def meets(network: net.Network, server: Any, keys: Path, program: Any, name: str) -> None:
    """Checks that another program finds a name of this program, and that the value of that program
    arrives."""
    c = th.Channel("next")
    r = c.reader()
    offered_anew(network, name, c)
    p = program("names_writer", server.url, keys, name, 3)
    assert [r.read() for _ in range(3)] == [0, 1, 2]
    assert p.next_report() == "written"
    network.withdraw(name)


# --- a program ------------------------------------------------------------------------------------


@pytest.mark.usefixtures("never_away")
@pytest.mark.parametrize("step", steps("home"))
def test_a_home(step, network, server, keys, program, tmp_path):  # wire 17.22
    killed = tmp_path / "killed"
    p = program("is_home", server.url, keys, "c", before=killing(step, killed))
    if step not in ("home.offer", "home.offered"):
        assert p.next_report() == "offered"
    attempt = Attempt(network, "c", killed)
    if step in ("home.leave", "home.left"):
        p.go()
    assert p.ended() == -signal.SIGKILL and killed.exists()
    attempt.join()
    assert isinstance(attempt.error, TOLD), attempt.error
    meets(network, server, keys, program, "c")


@pytest.mark.usefixtures("never_away")
@pytest.mark.parametrize("step", steps("comer"))
def test_a_program_that_connects(step, network, server, keys, program, tmp_path):  # wire 17.22
    """The channel continues to work for the home and for other programs that connect."""
    killed = tmp_path / "killed"
    c = th.Channel("c")
    r, keep = c.reader(), c.writer()
    network.offer("c", c, writers=True)
    p = program("names_writer", server.url, keys, "c", 3, before=killing(step, killed))
    assert p.ended() == -signal.SIGKILL and killed.exists()
    p = program("names_writer", server.url, keys, "c", 3)
    assert [r.read() for _ in range(3)] == [0, 1, 2]
    assert p.next_report() == "written"
    keep.retire()


# --- the server -----------------------------------------------------------------------------------


@pytest.mark.parametrize("step", steps("home", "comer"))
def test_the_server(step, network, server, keys, program, tmp_path):  # wire 17.8, 17.22
    """The server is started again. The program that had reached that step has succeeded, or
    receives an error; then the network works as before.
    """
    killed = tmp_path / "killed"
    address = server.url.removeprefix("tls://")
    c = th.Channel("d")
    r, keep = c.reader(), c.writer()
    network.offer("d", c, writers=True)
    before = killing(step, killed, str(server.pid))
    if step.startswith("home."):
        p = program("is_home", server.url, keys, "c", before=before)
        if step not in ("home.offer", "home.offered"):
            assert p.next_report() == "offered"
        attempt = Attempt(network, "c", killed)
        if step in ("home.leave", "home.left"):
            p.go()
    else:
        p = program("names_writer", server.url, keys, "d", 0, before=before)
    assert server.wait() == -signal.SIGKILL and killed.exists()
    with _net_server.Server(tmp_path / "server", address):
        p.process.communicate("\n")
        assert p.process.returncode in (0, 1)  # 1: the program received an error
        if step.startswith("home."):
            attempt.join()
            assert isinstance(attempt.error, TOLD), attempt.error
        meets(network, server, keys, program, "next")
        again = program("names_writer", server.url, keys, "d", 1)
        assert r.read() == 0
        assert again.next_report() == "written"
        keep.retire()


# --- hosts ----------------------------------------------------------------------------------------


def test_a_host_dies_before_it_has_the_call(server, keys, agent, monkeypatch):  # wire 17.12
    """The session has ended, and was released, when the call's ends are about to be sent."""
    agent("gpu1", "--hosts", "1")
    runs, killed = _net_hosts.FarHosts._run, []

    def dies(self, asked, host, session, *more):
        if not killed:
            killed.append(session._answer_fields["pid"])
            os.kill(killed[0], signal.SIGKILL)
            session.wait()
            session.close()
        return runs(self, asked, host, session, *more)

    monkeypatch.setattr(_net_hosts.FarHosts, "_run", dies)
    with net.join(server.url, keys=keys, name="caller") as network:
        workers = ps.Supervisor(network.hosts(1), backoff=0.01)
        assert th.run(parts.add.on(workers)(1, 1)) == 2
    assert killed


@pytest.mark.usefixtures("never_away")
@pytest.mark.parametrize("step", steps("agent", "call"))
def test_a_host(step, server, keys, agent, tmp_path):  # wire 17.12, 17.22
    """The calls are supervised, over the killed host and another host: each call has its result."""
    killed = tmp_path / "killed"
    one = agent("gpu1", "--hosts", "1", before=killing(step, killed))
    agent("gpu2", "--hosts", "1")
    with net.join(server.url, keys=keys, name="caller") as network:
        workers = ps.Supervisor(network.hosts(2), backoff=0.01)
        got = th.run(*(parts.add.on(workers)(i, i) for i in range(6)))
    assert got == [2 * i for i in range(6)]
    assert killed.exists()
    if step.startswith("agent."):
        assert one.process.wait() == -signal.SIGKILL


def test_the_steps_have_all_been_named():
    """Each step in the code is in the list, and each step in the list is in the code."""
    import re

    import weft

    code = "".join(p.read_text() for p in (Path(weft.__file__).parent / "_net").glob("*.py"))
    found = re.findall(r'_net_steps\.at\("([a-z.]+)"\)', code)
    assert sorted(found) == sorted(
        f"{role}.{step}" for role, steps in _net_steps.STEPS.items() for step in steps
    )

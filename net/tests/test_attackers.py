"""A certificate grants the names that its owner may hold (WIRE-NETWORKS.md 17.3, 17.4, 17.9).
Members that take other names (attackers.py) gain nothing. test_cpp_attackers.py does the same with
C++ programs.
"""

from __future__ import annotations

import json
import logging
import socket
from pathlib import Path
from typing import Any

import far_parts as parts
import pytest
from attackers import (
    GRANTED,
    ODD,
    TAKES,
    FalseAgent,
    Thief,
    keys_by_the_command,
    old_keys_of_the_authority,
    overhears,
    says_again,
    until,
    weft,
    with_names,
)
from nats.js import errors as js_errors

from weft import net
from weft import threads as th
from weft._commands import net as _commands_net
from weft._net import agent as _net_agent
from weft._net import keys as _net_keys
from weft._net import name_rules as _net_named
from weft._net import names as _net_names
from weft._net import server as _net_server
from weft.errors import BadUse, PeerDied
from weft.processes import Executor, run

pytestmark = pytest.mark.usefixtures("apart")


@pytest.fixture(scope="module")
def url(keys: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A server for all tests that do not depend on the times at which the bucket changes."""
    folder = tmp_path_factory.mktemp("server") / "keys"
    net.make_keys(folder, by=keys)
    with _net_server.Server(folder, "127.0.0.1:0") as started:
        yield started.url


@pytest.fixture
def lab(url: str, keys_of: Any) -> Any:
    """An honest member that may offer lab/*, and a client."""
    with (
        net.join(url, keys=keys_of("lab", "lab/*"), name="lab") as home,
        net.join(url, keys=keys_of("client"), name="client") as client,
    ):
        yield home, client
    _kept.clear()


_kept: list[Any] = []  # keeps ends, so that no channel ends when a client ends


def offered(home: net.Network, name: str) -> Any:
    c = th.Channel(name)
    reader = c.reader()
    _kept.extend((reader, c.writer()))
    home.offer(name, c, writers=True)
    return reader


# --- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", TAKES)
def test_a_name_that_was_taken(url, lab, keys_of, how):  # wire 17.4
    home, client = lab
    offered(home, "lab/results")
    take, message = TAKES[how]
    with Thief(url, keys_of("thief")) as thief:
        why = thief.refused(client, "lab/results", take)
        assert message in why and thief.got == [] and not thief.network._sessions
    if message == "may not offer":
        assert "the certificate of 'thief' is for thief/*, host=thief." in why
        assert "weft net keys FOLDER --name thief --offers 'thief/*'" in why


@pytest.mark.parametrize("how", ["delete and take", "overwrite"])
def test_a_name_that_was_taken_by_the_relay(url, lab, keys_of, how):  # wire 17.4, 17.17
    home, client = lab
    offered(home, "lab/results")
    with Thief(url, keys_of("thief"), relay="only") as thief:
        why = thief.refused(client, "lab/results", TAKES[how][0])
        assert "thief, by the relay, may not offer 'lab/results'" in why
        assert thief.got == [] and not thief.network._sessions


def test_tickets_that_are_stolen(url, lab, keys_of, program):  # wire 17.4
    """A member that takes tickets and shows none delays the client. A member that shows a ticket
    gets a session, as any member may, and can show the ticket only once.
    """
    home, _ = lab
    reader = offered(home, "lab/results")
    with Thief(url, keys_of("thief")) as thief:
        stolen = [thief.ticket("lab/results") for _ in range(3)]
        # The home accepts the thief, but a session joins two programs, and home and thief are one
        # program.
        with pytest.raises(PeerDied):
            thief.shows(stolen[0], "lab/results").take("end")
        with pytest.raises(BadUse, match="the ticket for 'lab/results' is not valid"):
            thief.shows(stolen[0], "lab/results")
        program("names_writer", url, keys_of("client"), "lab/results", 3)
        assert [reader.read() for _ in range(3)] == [0, 1, 2]


def test_an_entry_that_is_written_again(url, lab, keys_of, program):  # wire 17.4
    """The thief rewrites an entry with a ticket that has been used, or that is for another name.
    The home refuses the client, which has sent nothing to any other program.
    """
    home, client = lab
    reader = offered(home, "lab/one")
    offered(home, "lab/two")
    with Thief(url, keys_of("thief")) as thief:
        old = thief.entry("lab/one")
        p = program("names_writer", url, keys_of("client"), "lab/one", 1)
        assert (reader.read(), p.next_report()) == (0, "written")
        assert "ticket for 'lab/one' is not valid" in thief.refused(
            client, "lab/one", thief.puts(old)
        )
        other = {**thief.entry("lab/two"), "ticket": old["ticket"]}
        assert "ticket for 'lab/two' is not valid" in thief.refused(
            client, "lab/two", thief.puts(other)
        )
        assert thief.got == []


def test_bytes_that_are_said_again(url, lab, keys_of, program):  # wire 17.1, 17.4
    """A proxy keeps all bytes that a client has sent to the home. When these bytes are sent again,
    the home refuses them.
    """
    home, _ = lab
    reader = offered(home, "lab/results")
    received: list[str] = []
    kept_by = home._meeting.kept
    home._meeting.kept = lambda session: (received.append(session.host), kept_by(session))
    with Thief(url, keys_of("thief")) as thief, overhears(home.address) as (address, kept):
        while not kept:  # the home had rewritten its entry before the client connected
            received.clear()
            thief.put("lab/results", {**thief.entry("lab/results"), "address": address})
            p = program("names_writer", url, keys_of("client"), "lab/results", 3)
            assert [reader.read() for _ in range(3)] == [0, 1, 2] and p.next_report() == "written"
            assert p.ended() == 0
        assert len(kept) > 1000
        says_again(home.address, kept)
        assert thief.got == [] and received == ["writer"]


def test_nobody_offers_what_his_keys_are_not_for(url, keys, keys_of, tmp_path):  # wire 17.3
    """The error names a command, and keys that the command makes may hold the name."""
    with net.join(url, keys=keys_of("m2"), name="m2") as network:
        with pytest.raises(
            BadUse,
            match=r"may not offer 'lab/results': the certificate of 'm2' is for m2/\*, host=m2\.",
        ):
            network.offer("lab/results", th.Channel(), writers=True)
        assert network.names() == []
        network.offer("m2/results", th.Channel(), writers=True)
        with pytest.raises(BadUse) as refused:
            network.offer("lab/results", th.Channel(), writers=True)
    made = keys_by_the_command(str(refused.value), keys, tmp_path / "m2")
    with net.join(url, keys=made) as network:
        for name in ("lab/results", "m2/results"):
            network.offer(name, th.Channel(), writers=True)


def test_two_programs_of_one_member(url, lab, keys_of, program):  # wire 17.3
    """The second program may not offer the name; but it can overwrite the first program's entry."""
    home, _ = lab
    offered(home, "lab/results")
    with Thief(url, keys_of("lab", "lab/*")) as other:
        with pytest.raises(BadUse, match="the name 'lab/results' is taken by lab at"):
            other.offer("lab/results")
        TAKES["overwrite"][0](other, "lab/results")
        p = program("names_writer", url, keys_of("client"), "lab/results", 3)
        assert [other.reader.read() for _ in range(3)] == [0, 1, 2] and p.next_report() == "written"
        assert [request["host"] for request in other.got] == ["writer"]


def test_a_home_whose_name_was_taken_says_so(url, keys_of, monkeypatch, caplog):  # wire 17.4
    """An entry that is rubbish or has been deleted belongs to no other home, so the home writes its
    name again.
    """
    monkeypatch.setattr(_net_names, "RENEW", 0.05)
    with net.join(url, keys=keys_of("lab", "lab/*"), name="lab") as home:
        offered(home, "lab/mine")
        with Thief(url, keys_of("thief")) as thief:
            for damage in (thief.delete, lambda name: thief.put(name, {"rub": "bish"})):
                damage("lab/mine")
                until(lambda: "home" in thief.entry("lab/mine"), js_errors.NotFoundError)
            assert not caplog.records
            caplog.set_level(logging.WARNING, logger="weft")
            TAKES["overwrite"][0](thief, "lab/mine")
            until(lambda: "lab/mine" not in home._meeting._offers)
            until(lambda: caplog.records)
    assert caplog.messages[0].startswith(
        "'lab/mine', which this program has offered, is taken by thief at 127.0.0.1:"
    )


# --- hosts ----------------------------------------------------------------------------------------


ALLOWS = ["far_parts:pid", "far_parts:plus"]


@pytest.mark.parametrize("trust", [False, True])
def test_a_false_host(gpu1, keys_of, trust):  # wire 17.9
    """A client refuses a false host, which would receive the arguments, and whose result would be
    unpickled with `trust`."""
    with (
        Thief(gpu1.url, keys_of("thief"), trust=trust) as thief,
        net.join(gpu1.url, keys=keys_of("client"), trust=trust) as caller,
    ):
        thief.offer("host=gpu9", FalseAgent(ALLOWS, 8, trust))
        with pytest.raises(BadUse, match=r"may not offer 'host=gpu9': the certificate of 'thief'"):
            run(parts.pid.on(caller.host("gpu9"))())
        with (
            Executor(on=caller.host("gpu9")) as pool,
            pytest.raises(BadUse, match="may not offer 'host=gpu9'"),
        ):
            pool.submit(parts.plus, 1, 1).result()
        assert thief.got == []


def test_a_pool_passes_over_a_false_host(gpu1, keys_of):  # wire 17.9
    """A pool skips a false host even if that host claims more OS processes than the other hosts."""
    with (
        Thief(gpu1.url, keys_of("thief")) as thief,
        net.join(gpu1.url, keys=keys_of("client")) as caller,
    ):
        thief.offer("host=aaa", FalseAgent(ALLOWS, 1000, False))
        hosts = caller.hosts(2)
        assert hosts.names == ["aaa", "gpu1"]
        with Executor(on=hosts, max_workers=4) as pool:
            assert list(pool.map(parts.plus, range(8), range(8))) == [2 * n for n in range(8)]
        assert thief.got == []


def test_a_host_that_was_taken_after_it_was_met(gpu1, keys_of):  # wire 17.9
    """A client that holds a pass of the host checks the certificate as well."""
    with (
        Thief(gpu1.url, keys_of("thief")) as thief,
        net.join(gpu1.url, keys=keys_of("client")) as caller,
    ):
        host = caller.host("gpu1")
        run(parts.pid.on(host)())
        entry, known = caller._meeting._passes["gpu1"]
        false = {"address": thief.network.address, "fingerprint": thief.meeting._fingerprint}
        caller._meeting._passes["gpu1"] = {**entry, **false}, known
        with pytest.raises(BadUse, match="may not offer 'host=gpu1'"):
            run(parts.pid.on(host)())
        fate = caller._call(caller._meeting.fate("gpu1", "0"))
        assert fate is None and thief.got == []


def test_an_agent_whose_keys_are_not_for_its_name(url, keys_of):  # wire 17.9
    """The agent is refused before any of its OS processes begins. test_up.py tests the command."""
    with (
        net.join(url, keys=keys_of("m2")) as network,
        pytest.raises(BadUse, match=r"may not offer 'host=gpu1': the certificate of 'm2' is for"),
    ):
        _net_agent.Agent(network, "gpu1", ["far_parts:pid"], 1)


# --- certificates ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("grant", "name", "so"), GRANTED)
def test_what_a_grant_grants(grant, name, so):  # wire 17.3
    assert _net_named.grants(grant, name) is so


@pytest.mark.parametrize("which", ODD)
def test_a_certificate_that_grants_nothing(url, lab, keys, tmp_path, keys_of, which):  # wire 17.3
    """Certificates from the time before grants existed grant nothing: the program that holds such a
    certificate refuses it, and so do programs that connect to that program. The subject of a
    certificate grants nothing.
    """
    folder = with_names(keys, tmp_path / "odd", ODD[which], "lab/*")
    for joins in (
        lambda: net.join(url, keys=folder),
        lambda: net.listen(keys=folder),
        lambda: net.connect("127.0.0.1:9", keys=folder),
    ):
        with pytest.raises(
            BadUse,
            match=r"do not say which names they are for.*`weft net keys FOLDER --name lab/\*`",
        ):
            joins()
    home, client = lab
    offered(home, "lab/results")
    with Thief(url, keys_of("thief")) as thief, thief.answers_with(folder) as there:
        false = {**thief.entry("lab/results"), **there, "ticket": "0" * 32}
        why = thief.refused(client, "lab/results", thief.puts(false))
        assert "the certificate of 'lab/*' is for no name, as those that an older Weft made" in why
        assert thief.got == []


def test_old_keys_of_the_authority(keys, tmp_path):  # wire 17.3
    folder = old_keys_of_the_authority(keys, tmp_path / "old")
    with pytest.raises(
        BadUse, match=r"remove certificate.pem and key.pem there, and `weft net up` makes new ones"
    ):
        net.listen(keys=folder)
    with pytest.raises(BadUse, match="do not say which names they are for"):
        _commands_net._made(folder)  # what `weft net up` does first
    for file in ("certificate.pem", "key.pem"):
        (folder / file).unlink()
    assert _net_keys.Keys(_commands_net._made(folder)).member.grants == ("*",)


def test_which_names_keys_are_for(keys, tmp_path, monkeypatch):  # wire 17.3
    def made(**how: Any) -> tuple[str, tuple[str, ...]]:
        folder = net.make_keys(tmp_path / str(len(list(tmp_path.iterdir()))), by=keys, **how)
        return tuple(_net_keys.Keys(folder).member)  # type: ignore[return-value]

    assert made(name="gpu1") == ("gpu1", ("gpu1/*", "host=gpu1"))
    assert made(name="any text", offers=["lab/*", "host=a.b"]) == (
        "any text",
        ("lab/*", "host=a.b"),
    )
    monkeypatch.setattr(socket, "gethostname", lambda: "node-1.lab.org")
    assert made() == ("node-1.lab.org", ("node-1-lab-org/*", "host=node-1-lab-org"))
    assert _net_keys.Keys(keys).member.grants == ("*",)
    for bad in (
        "",
        "lab/",
        "la*",
        "*/x",
        "lab/**",
        "a b",
        "ä",
        "host=",
        "weft:*",
        "a/../b",
        "x" * 61,
        7,
        None,
    ):
        with pytest.raises(BadUse, match=r"keys are for names as 'lab/results', 'lab/\*'"):
            made(offers=[bad])
    for none in ("lab/*", []):
        with pytest.raises(BadUse, match="offers is a list of names"):
            made(offers=none)
    for name in ("gpu 1", "a.b", "ä", "x" * 61):
        with pytest.raises(
            BadUse, match=rf"keys of '{name}' would be for the names .* give another name"
        ):
            made(name=name)
    for name in ("", "a\nb", 7):
        with pytest.raises(BadUse, match="the name in a certificate is a text"):
            made(name=name)


def test_what_the_command_says_of_keys(keys, tmp_path):
    more = "--name", "lab2", "--offers", "lab/*", "--offers", "host=lab2"
    output = weft("keys", tmp_path / "a", "--by", keys, *more)
    grants = "the certificate of 'lab2' is for lab/*, host=lab2"
    assert output == f"{tmp_path / 'a'}\nweft: {grants}\n"
    output = json.loads(weft("keys", tmp_path / "b", "--by", keys, "--name", "gpu1", "--json"))
    assert (output["name"], output["offers"]) == ("gpu1", ["gpu1/*", "host=gpu1"])

"""C++ programs that meet others through the NATS server (WIRE-NETWORKS.md 17.17 to 17.21). The
other program is in Python, or in C++ too. ways.cpp tests the packet lines in isolation. Each test
is run with every build of the programs.
"""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import several_come, stand_in

from weft import net
from weft import threads as th
from weft._net import names as _net_names
from weft._net import relay as _net_relay
from weft._net import server as _net_server
from weft.errors import BadUse, PeerDied, Retired

# --- there and back -------------------------------------------------------------------------------


@pytest.fixture
def network(server: Any, keys: Path) -> Iterator[net.Network]:
    """Yields the network of a Python program without an address, which only the relay reaches."""
    with net.join(server.url, keys=keys, name="python", relay="only") as joined:
        yield joined


def test_cpp_writes_to_python(server, keys, network, cpp):  # wire 17.17
    """The C++ program uses the relay without an option, because the entry has no address."""
    c = th.Channel("numbers")
    r = c.reader()
    network.offer("lab/numbers", c, writers=True)
    p = cpp("names_writer", server.url, keys, "lab/numbers", 300)
    assert [r.read() for _ in range(300)] == list(range(300))
    with pytest.raises(Retired):
        r.read()
    assert [s.relayed for s in network._sessions] in ([True], [])
    assert (p.next_report(), p.ended()) == ("written", 0)


@pytest.mark.parametrize("relay", ["automatic", "only"])
def test_python_writes_to_cpp(server, keys, network, cpp, relay):  # wire 17.17
    """Values arrive at a rendezvous and through a buffer."""
    for capacity in (0, 16):
        p = cpp("reads_all", server.url, keys, f"c{capacity}", capacity, relay=relay)
        assert p.next_report() == "offered"
        w = network.writer(f"c{capacity}")
        for i in range(300):
            w.write(i)
        w.retire()
        assert p.next_report() == "the first"
        assert (p.next_report(), p.ended()) == ([300, "Retired"], 0)


def test_large_values_there_and_back(server, keys, network, cpp):  # wire 17.19, 17.20
    """Values that are larger than a window of packets arrive too."""
    out, back = th.Channel("values"), th.Channel("back")
    w, r = out.writer(), back.reader()
    network.offer("e/values", out, readers=True)
    network.offer("e/back", back, writers=True)
    p = cpp("echoes", server.url, keys, "e", relay="only")
    for value in (0, "text ✓", b"\0\xff" * 300_000, [{"k": [None, 1.5]}]):
        w.write(value)
        assert r.read() == value
    w.retire()
    assert (p.next_report(), p.ended()) == ("done", 0)


@pytest.mark.parametrize("ways", [("only", "automatic"), ("automatic", "only"), ("only", "only")])
def test_cpp_and_cpp(server, keys, cpp, ways):
    home = cpp("reads_all", server.url, keys, "c", 0, relay=ways[0])
    assert home.next_report() == "offered"
    p = cpp("names_writer", server.url, keys, "c", 300, relay=ways[1])
    assert (p.next_report(), p.ended()) == ("written", 0)
    assert home.next_report() == "the first"
    assert (home.next_report(), home.ended()) == ([300, "Retired"], 0)


def test_a_choice_over_two_names(server, keys, network, cpp):  # wire 5
    left, right = th.Channel("left"), th.Channel("right")
    ends = left.writer(), right.writer()
    network.offer("two/left", left, readers=True)
    network.offer("two/right", right, readers=True)
    p = cpp("chooses", server.url, keys, "two", 20)
    for i in range(20):
        ends[i % 2].write(i)
    assert p.next_report() == [[i % 2, i] for i in range(20)]
    assert p.ended() == 0  # otherwise the network would wait for a killed program


def test_several_come_at_once(server, keys, network, cpp):  # wire 17.18
    p = cpp("is_home", server.url, keys, "c", relay="only")
    assert p.next_report() == "offered"
    several_come(network, "c")
    p.go()
    assert p.ended() == 0


def test_an_observer_sees_the_sessions(server, keys, network, cpp):  # wire 17.17
    p = cpp("is_home", server.url, keys, "c", relay="only")
    assert p.next_report() == "offered"
    (named,) = network.names()
    assert (named.name, named.address, named.relayed) == ("c", "", 0)
    network.writer("c")
    # The entry is written when the ticket is shown, and every 5 s.
    while network.names()[0].relayed != 1:
        pass
    p.go()
    assert p.ended() == 0


# --- which way ------------------------------------------------------------------------------------


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a program that listens and sends nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listens:
        yield f"127.0.0.1:{listens.getsockname()[1]}"


@pytest.mark.parametrize("nowhere", ["refusing", "silent"])
def test_an_address_that_does_not_answer(
    server, keys, program, cpp, request, nowhere
):  # wire 17.17
    """A program that reaches no address uses the relay, although no option requests it."""
    address = request.getfixturevalue(nowhere)
    home = program("is_home_elsewhere", server.url, keys, "lab", address, "auto")
    assert home.next_report() == "offered"
    assert cpp("tries", server.url, keys, "lab", "writer", 30).next_report() == ["ok", ""]
    home.go()
    home.next_report()


def test_an_address_that_python_does_not_reach(server, keys, cpp, monkeypatch):  # wire 17.17
    """The home in C++ listens, but is reached through the relay."""
    p = cpp("writes_for_ever", server.url, keys, "c")
    assert p.next_report() == "offered"

    async def unreachable(tls: Any, address: str, patience: float = 1) -> Any:
        raise ConnectionRefusedError("cut")

    monkeypatch.setattr(_net_names._net_link, "direct", unreachable)
    with net.join(server.url, keys=keys, name="python") as network:
        r = network.reader("c")
        assert [s.relayed for s in network._sessions] == [True]
        assert [r.read() for _ in range(100)] == list(range(100))
        r.retire()
        assert p.next_report()[1] == "Retired"


def test_one_that_answers_is_not_gone_around(server, keys, cpp):  # wire 17.17
    with net.join(server.url, keys=keys, name="python") as network:
        c = th.Channel("c")
        r = c.reader()
        network.offer("c", c, writers=True)
        cpp("names_writer", server.url, keys, "c", 10**9)
        assert r.read() == 0
        assert [s.relayed for s in network._sessions] == [False]  # the session still writes


@pytest.mark.parametrize(
    ("here", "there", "why"),
    [
        ("never", "auto", "at {}"),
        ("automatic", "never", "at {}"),
        ("only", "never", "by the relay (which it does not use)"),
        ("never", "only", "by the relay (which this program does not use)"),
    ],
)
def test_a_side_that_does_without(
    server, keys, program, cpp, refusing, here, there, why
):  # wire 17.17
    home = program(
        "is_home_elsewhere",
        server.url,
        keys,
        "lab",
        "" if there == "only" else refusing,
        there,
    )
    assert home.next_report() == "offered"
    how, answer = cpp("tries", server.url, keys, "lab", "reader", 10, relay=here).next_report()
    assert how == "Unreachable"
    assert f"the home of 'lab', does not answer {why.format(refusing)}" in answer
    home.go()


def test_a_home_that_is_killed_is_nowhere(server, keys, program, cpp, refusing):
    p = program("is_home_elsewhere", server.url, keys, "lab", refusing, "auto")
    assert p.next_report() == "offered"
    p.kill()
    p.ended()
    how, why = cpp("tries", server.url, keys, "lab", "reader", 10).next_report()
    assert how == "Unreachable"
    assert f"at {refusing} (" in why and ", nor by the relay (nobody listens there" in why


# --- refused --------------------------------------------------------------------------------------


def test_another_host_cannot_stand_in(server, keys, other_keys, network, cpp):  # wire 17.21
    """The impostor listens where the home should, but the certificate of the impostor has another
    fingerprint."""
    with net.join(server.url, keys=other_keys, name="impostor", relay="only") as impostor:
        impostor.offer("c", th.Channel("c"), writers=True)
        stand_in(impostor, "c", network)
        how, why = cpp("tries", server.url, keys, "c", "writer", 10).next_report()
    assert (
        how == "BadUse" and "impostor, by the relay, is not the program that was announced" in why
    )


def test_keys_of_another_authority(server, keys, strange_keys, network, cpp):  # wire 17.21
    """The server might accept programs with keys of another authority. A home in C++ does not, and
    a C++ program accepts no such home. Sessions of other programs continue.
    """
    home = cpp("is_home", server.url, keys, "c", relay="only")
    assert home.next_report() == "offered"
    own = network._meeting._client_tls
    strange = _net_names._net_keys.context(Path(strange_keys), server=False)
    network._meeting._client_tls = strange
    with pytest.raises(BadUse, match=r"by the relay, shows a certificate that our authority"):
        network.writer("c")
    network._meeting._client_tls = own
    network.writer("c").retire()
    network._meeting._relay._tls = _net_names._net_keys.context(Path(strange_keys), server=True)
    network.offer("d", th.Channel("d"), readers=True)
    how, why = cpp("tries", server.url, keys, "d", "reader", 10).next_report()
    assert how == "BadUse"
    assert "python, by the relay, shows a certificate that our authority has not signed" in why
    home.go()
    assert home.ended() == 0


@pytest.mark.parametrize(
    "asks", [b"", b"{", b"[]", b'{"session": 1, "from": 2}', b"[" * 900, b'{"session": "x"}']
)
def test_rubbish_at_the_meeting_place(server, keys, network, cpp, asks):  # wire 17.18
    """Rubbish is refused, and the next program has a session."""
    home = cpp("is_home", server.url, keys, "c", relay="only")
    assert home.next_report() == "offered"

    async def ask() -> Any:
        meeting = network._meeting
        entry = json.loads((await (await meeting._names()).get("c")).value)
        place = f"{_net_relay.RELAY}.{entry['fingerprint']}.{entry['home']}"
        answer = json.loads((await meeting._nats.request(f"{place}.meet", asks, timeout=280)).data)
        # This message belongs to no session.
        await meeting._nats.publish(f"{place}.{'0' * 32}", asks)
        return answer

    assert network._call(ask()) == {
        "refused": "the request does not say its session and where it comes from"
    }
    network.reader("c").retire()
    home.go()
    assert home.ended() == 0


def test_rubbish_into_a_session(server, keys, network, cpp):  # wire 17.19, 17.21
    """A program that writes to a session's subject changes nothing in the session's data."""
    p = cpp("writes_for_ever", server.url, keys, "c", relay="only")
    assert p.next_report() == "offered"
    r = network.reader("c")
    assert r.read() == 0
    (session,) = network._meeting._relay._ways

    async def spoil(size: int) -> None:
        meeting = network._meeting
        entry = json.loads((await (await meeting._names()).get("c")).value)
        place = f"{_net_relay.RELAY}.{entry['fingerprint']}.{entry['home']}"
        for _ in range(20):
            await meeting._nats.publish(f"{place}.{session}", b"\1\0spoilt" * size)

    for size in (1, 1000):
        network._call(spoil(size))
        assert [r.read() for _ in range(50)]
    n = r.read()
    assert [r.read() for _ in range(50)] == list(range(n + 1, n + 51))
    r.retire()
    assert p.next_report()[1] == "Retired"
    assert p.ended() == 0


# --- lost -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("writes", ["python", "cpp"])
def test_the_server_is_restarted_under_load(
    server, keys, network, cpp, tmp_path, writes
):  # wire 17.19
    """Nothing is lost or doubled, whichever side writes."""
    restarts, running, goes_on = 3, [server], threading.Event()
    address = server.url.removeprefix("tls://")
    failed: list[BaseException] = []

    def restart() -> None:
        try:
            for _ in range(restarts):
                running.pop().stop(signal.SIGKILL)
                running.append(_net_server.Server(tmp_path / "server", address))
        except BaseException as error:
            failed.append(error)
        finally:
            goes_on.set()

    thread = threading.Thread(target=restart)
    if writes == "python":
        p = cpp("reads_all", server.url, keys, "c", 4, relay="only")
        assert p.next_report() == "offered"
        w = network.writer("c")
        n = 0
        thread.start()
        while not goes_on.is_set() or n % 100:
            w.write(n)
            n += 1
        w.retire()
        assert p.next_report() == "the first"
        assert (p.next_report(), p.ended()) == ([n, "Retired"], 0)
    else:
        p = cpp("writes_for_ever", server.url, keys, "c", relay="only")
        assert p.next_report() == "offered"
        r = network.reader("c")
        n = 0
        thread.start()
        while not goes_on.is_set() or n % 100:
            assert r.read() == n
            n += 1
        r.retire()
        wrote, how = p.next_report()
        assert (how, wrote - n in (0, 1)) == ("Retired", True)
    thread.join()
    assert not failed
    running[0].stop()


def test_a_program_that_leaves_says_so(server, keys, network, cpp):  # wire 17.19
    """The program on the other side does not wait until the lease expires."""
    p = cpp("writes_for_ever", server.url, keys, "c", relay="only")
    assert p.next_report() == "offered"
    r = network.reader("c")
    assert r.read() == 0
    session = next(iter(network._sessions))
    session.close()
    assert p.next_report()[1] == "PeerDied"
    assert p.ended() == 0
    # The session's last message, or its last acknowledgement, has not arrived.
    while network._meeting._relay._ways:
        network._call(asyncio.sleep(0))
    with pytest.raises((PeerDied, BadUse)):
        while True:
            r.read()

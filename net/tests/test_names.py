"""Channels by name, with a NATS server where programs meet (WIRE-NETWORKS.md 17.3, 17.4, 17.8)."""

from __future__ import annotations

import asyncio
import json
import queue
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from weft import coroutines as co
from weft import net
from weft import threads as th
from weft._net import link as _net_link
from weft._net import loop as _net_loop
from weft._net import names as _net_names
from weft._net import offer as _net_offer
from weft._net import server as _net_server
from weft._net import takeover as _net_takeover
from weft.errors import BadUse, PeerDied, Retired


def joined(server: _net_server.Server, keys: Path, **more: Any) -> net.Network:
    return net.join(server.url, keys=keys, **more)


def on_loop(network: net.Network, what: Any) -> Any:
    return _net_loop.call(network._loop, what)


# Sessions are direct, or go through the relay (17.17).
both_ways = pytest.mark.parametrize("relay", ["auto", "only"])


@both_ways
def test_writers_by_name(server, keys, program, relay):  # wire 17.3
    with joined(server, keys, name="home", relay=relay) as network:
        assert (network.address == "") == (relay == "only")
        c = th.Channel("results")
        r = c.reader()
        network.offer("lab/results", c, writers=True)
        assert network.names() == [("lab/results", "home", network.address, False, True, 0)]
        p = program("names_writer", server.url, keys, "lab/results", 100)
        assert [r.read() for _ in range(100)] == list(range(100))
        with pytest.raises(Retired):
            r.read()
        assert (p.next_report(), p.ended()) == ("written", 0)


@both_ways
def test_readers_by_name(server, keys, program, relay):
    with joined(server, keys, relay=relay) as network:
        c = th.Channel("work")
        w = c.writer()
        network.offer("lab/work", c, readers=True)
        two = [program("names_reader", server.url, keys, "lab/work") for _ in range(2)]
        assert [p.next_report() for p in two] == ["has it"] * 2
        assert [s.relayed for s in network._sessions] == [relay == "only"] * 2
        for i in range(10):
            w.write(i)
        w.retire()
        got = [p.next_report() for p in two]
        assert sorted(got[0][0] + got[1][0]) == list(range(10))
        assert [how for _, how in got] == ["Retired"] * 2


def test_whoever_comes_first_waits(server, keys, program):
    """A program that requests a name waits until another program offers the name."""
    p = program("names_writer", server.url, keys, "later", 3)
    with joined(server, keys) as network:
        c = th.Channel("later")
        r = c.reader()
        network.offer("later", c, writers=True)
        assert [r.read() for _ in range(3)] == [0, 1, 2]
    assert p.next_report() == "written"


def test_in_coroutines(server, keys, program):
    @co.process
    async def home() -> list[int]:
        network = await co.io(net.join)(server.url, keys=keys)
        c = co.Channel("results")
        r = c.reader()
        await co.io(network.offer)("results", c, writers=True)
        program("names_writer", server.url, keys, "results", 5)
        got = [value async for value in r]
        await co.io(network.close)()
        return got

    assert co.run(home()) == [0, 1, 2, 3, 4]


def test_all_come_at_once(server, keys, program):  # wire 17.4
    """Each writer that connects has a ticket of its own."""
    with joined(server, keys) as network:
        c = th.Channel("results")
        keep, r = c.writer(), c.reader()
        network.offer("results", c, writers=True)
        p = program("many_writers", server.url, keys, "results", 12)
        assert sorted(r.read() for _ in range(12)) == list(range(12))
        assert p.next_report() == "written"
        keep.retire()


# --- refused --------------------------------------------------------------------------------------


def test_a_name_that_is_taken(server, keys, program):  # wire 17.3
    p = program("is_home", server.url, keys, "lab/results")
    assert p.next_report() == "offered"
    with joined(server, keys) as network:
        far = network.writer("lab/results")
        with pytest.raises(BadUse, match="was made by another program, which alone can offer it"):
            network.offer("lab/mine", far.channel, writers=True)
        c = th.Channel("c")
        with pytest.raises(
            BadUse, match=r"'lab/results' is taken by home at 127\.0\.0\.1:\d+: take another name"
        ):
            network.offer("lab/results", c, writers=True)
        p.go()
        assert p.next_report() == "left"
        network.offer("lab/results", c, writers=True)
        with pytest.raises(BadUse, match="offered by this program already"):
            network.offer("lab/results", c, writers=True)
        network.withdraw("lab/results")
        assert network.names() == []
        network.offer("lab/results", c, readers=True)
        with pytest.raises(BadUse, match="is a channel of this program"):
            network.reader("lab/results")
        with (
            joined(server, keys) as again,
            pytest.raises(BadUse, match=r"is a channel of this program: use reader\(\)"),
        ):
            again.reader("lab/results")


def test_two_who_want_a_name_at_once(server, keys):  # wire 17.3
    """By compare-and-set one of the two gets the name, and the other is refused."""
    networks = [joined(server, keys, name=f"n{i}") for i in range(2)]
    try:
        channels = [th.Channel(), th.Channel()]

        async def both() -> list[Any]:
            offers = (
                n._meeting.offer("x", c, True, False)
                for n, c in zip(networks, channels, strict=True)
            )
            return await asyncio.gather(*offers, return_exceptions=True)

        for _ in range(5):
            came_to = on_loop(networks[0], both())
            assert [type(one) for one in came_to].count(BadUse) == 1
            winner = networks[came_to.index(None)]
            assert [n.host for n in winner.names()] == [winner.name]
            winner.withdraw("x")
    finally:
        for n in networks:
            n.close()


def _reached(network: net.Network, entry: dict[str, Any], **different: Any) -> Any:
    request = {"host": "x", "trust": False, "name": "lab", "side": "writer", **different}
    request.setdefault("ticket", entry["ticket"])
    tls = network._meeting._client_tls
    return on_loop(network, _net_link.reach(tls, entry["address"], request, entry["fingerprint"]))


def test_a_ticket_is_good_once(server, keys, program):  # wire 17.4
    p = program("is_home", server.url, keys, "lab")
    assert p.next_report() == "offered"
    with joined(server, keys) as network:
        entry = on_loop(network, network._meeting._ticket_for("lab", "writer", 10))
        first = _reached(network, entry)
        with pytest.raises(BadUse, match="the ticket for 'lab' is not valid: each is valid once"):
            _reached(network, entry)
        for never in ("0" * 32, "", None, 7, ["a"]):
            with pytest.raises(BadUse, match="the ticket for 'lab' is not valid"):
                _reached(network, entry, ticket=never)
        first._link.close()
        network.writer("lab").retire()  # the home has written a new ticket
    p.go()
    assert p.next_report() == "left"


def test_a_program_that_takes_tickets_and_shows_none_delays_no_other(
    server, keys, monkeypatch
):  # wire 17.4
    """The home writes the next ticket even if no renewal is ever requested, for example if a
    program was refused because of its own or the home's certificate.
    """
    monkeypatch.setattr(_net_names, "RENEW", 1e6)
    with joined(server, keys) as network, joined(server, keys) as other:
        # With this setting the tickets are taken as if by another program.
        monkeypatch.setattr(_net_names, "_own_homes", set())
        network.offer("lab", th.Channel("c"), writers=True)
        entries = [
            on_loop(other, other._meeting._ticket_for("lab", "writer", 60)) for _ in range(9)
        ]
        assert len({entry["ticket"] for entry in entries}) == 9


def test_several_at_once_get_a_ticket_each_and_the_home_writes_one_for_each(
    server, keys, monkeypatch
):  # wire 17.4
    """Of the programs that try the same ticket all but one are too late, and the home writes no new
    ticket for the late programs; otherwise more and more programs would be late.
    """
    monkeypatch.setattr(_net_names, "RENEW", 1e6)
    wrote, write = [], _net_names.Meeting._write

    async def counted(meeting: Any, offer: Any) -> None:
        wrote.append(offer)
        await write(meeting, offer)

    monkeypatch.setattr(_net_names.Meeting, "_write", counted)

    async def tickets(meeting: Any) -> list[str]:
        comers = (meeting._ticket_for("lab", "writer", 60) for _ in range(12))
        return [entry["ticket"] for entry in await asyncio.gather(*comers)]

    with joined(server, keys) as network, joined(server, keys) as other:
        monkeypatch.setattr(_net_names, "_own_homes", set())  # as if another program had taken it
        network.offer("lab", th.Channel("c"), writers=True)
        taken = [t for _ in range(3) for t in on_loop(other, tickets(other._meeting))]
        assert len(set(taken)) == len(taken) == 36
        assert len(wrote) <= 1 + len(taken)


def test_a_server_that_does_not_tell_who_takes_a_ticket(server, keys, program, monkeypatch):
    """If the server does not report that a ticket was taken, the next ticket is written once the
    first is shown (wire 17.4).
    """

    async def ignores(*_: Any) -> None:
        pass

    monkeypatch.setattr(_net_names, "RENEW", 1e6)
    monkeypatch.setattr(_net_names.Meeting, "_wrote", ignores)
    with joined(server, keys) as network:
        c = th.Channel("results")
        keep, r = c.writer(), c.reader()
        network.offer("results", c, writers=True)
        p = program("many_writers", server.url, keys, "results", 3)
        assert sorted(r.read() for _ in range(3)) == [0, 1, 2]
        assert p.next_report() == "written"
        keep.retire()


def test_a_ticket_runs_out(monkeypatch):  # wire 17.4
    offer = _net_offer.Offer("x", None, True, True)
    one, two = offer.new_ticket(100.0), offer.new_ticket(101.0)
    assert not offer.takes(one, 101.0 + _net_offer.MEETING)
    assert offer.takes(two, 10_000.0)  # this ticket is still in the entry
    assert not offer.takes(two, 10_000.0)
    for i in range(1000):
        offer.new_ticket(200.0 + i)
    assert len(offer.tickets) <= _net_offer.MEETING + 2


def test_tickets_that_nobody_shows_are_not_kept_for_ever():  # wire 17.4
    offer = _net_offer.Offer("x", None, True, True)
    made = [offer.new_ticket(100.0) for _ in range(2 * _net_offer.MAX_OUT)]
    assert len(offer.tickets) == _net_offer.MAX_OUT + 1
    assert not offer.takes(made[0], 100.0)
    assert offer.takes(made[-2], 100.0) and offer.takes(made[-1], 100.0)


def test_a_side_that_is_not_given(server, keys, apart):
    with joined(server, keys) as network:
        c = th.Channel("c")
        network.offer("c", c, writers=True)
        with joined(server, keys) as other:
            with pytest.raises(BadUse, match="'c' gives writer ends only"):
                other.reader("c")
            network.withdraw("c")
            with pytest.raises(BadUse, match=r"nobody has offered 'c' within 0\.2 seconds"):
                other.reader("c", patience=0.2)


def test_a_channel_that_has_ended(server, keys, apart):
    with joined(server, keys) as network, joined(server, keys) as other:
        c = th.Channel("c")
        c.reader().retire()
        network.offer("c", c, writers=True)
        with pytest.raises(BadUse, match="the channel 'c' has ended"):
            other.writer("c")


def test_another_host_cannot_stand_in(server, keys, other_keys, apart):  # wire 17.4
    """The impostor may write the entry, since it has keys of the network; but the impostor's
    certificate is not the one in the entry.
    """
    with joined(server, keys) as network, joined(server, other_keys) as impostor:
        c = th.Channel("c")
        network.offer("c", c, writers=True)

        async def put_its_own_address() -> None:
            names = await impostor._meeting._names()
            entry = json.loads((await names.get("c")).value)
            await names.put("c", json.dumps(entry | {"address": impostor.address}).encode())

        on_loop(impostor, put_its_own_address())
        with (
            joined(server, other_keys) as third,
            pytest.raises(BadUse, match="not the program that was announced"),
        ):
            third.writer("c")


ENTRIES = [b"", b"x", b"[]", b"{}", b'{"home": 1}', json.dumps({"address": "a", "fingerprint": "b", "home": "c", "host": "d",
           "readers": 1, "writers": True, "ticket": None}).encode()]  # fmt: skip


@pytest.mark.parametrize("entry", ENTRIES[1:])
def test_rubbish_in_the_bucket(server, keys, entry):
    with joined(server, keys) as network:

        async def put() -> None:
            await (await network._meeting._names()).put("c", entry)

        on_loop(network, put())
        with pytest.raises(BadUse, match="under 'c' in the bucket weft_names is not an entry"):
            network.writer("c")
        assert network.names() == []
        with pytest.raises(BadUse, match="the name 'c' is taken: try again, or take another"):
            network.offer("c", th.Channel(), writers=True)


def test_keys_of_another_network(server, strange_keys):  # wire 17.1
    with pytest.raises(
        BadUse, match=r"the NATS server at tls:.*TLS by the authority of these keys"
    ):
        net.join(server.url, keys=strange_keys)


def test_no_server(keys, refusing):
    with pytest.raises(BadUse, match=r"the NATS server at tls:.*nothing listens at .*is it up"):
        net.join(f"nats://{refusing}", keys=keys)
    with pytest.raises(BadUse, match=r"no server is noted in .*weft net up"):
        net.join(keys=keys)
    for url in ("here:4222", "http://h:1", "nats://", ""):
        with pytest.raises(BadUse, match=r"a server must be nats://HOST:PORT|no server is noted"):
            net.join(url, keys=keys)


BAD = ["", "a b", "/a", "a/", "a//b", "a.", ".a", "a*", ">", "ä", "x" * 61, 7, None]


@pytest.mark.parametrize("name", BAD)
def test_no_name(server, keys, name):
    with joined(server, keys) as network:
        c = th.Channel()
        calls = [network.reader, network.writer, network.withdraw]
        for call in (*calls, lambda n: network.offer(n, c, readers=True)):
            with pytest.raises(BadUse, match="a name must be 1 to 60 letters"):
                call(name)


def test_bad_use(server, keys):
    with joined(server, keys) as network:
        c = th.Channel()
        with pytest.raises(BadUse, match=r"expected a channel, got .*: give the channel itself"):
            network.offer("c", c.reader(), readers=True)
        with pytest.raises(BadUse, match="readers=True, writers=True, or both"):
            network.offer("c", c)
        with pytest.raises(BadUse, match="not offered by this program"):
            network.withdraw("c")
        for patience in (0, -1, "1", True, float("nan")):
            with pytest.raises(BadUse, match="patience must be a number of seconds"):
                network.reader("c", patience=patience)
    network.close()
    with pytest.raises(BadUse, match="join again"):
        network.names()


# --- lost -----------------------------------------------------------------------------------------


def test_the_home_is_killed(server, keys, program):  # wire 17.7
    p = program("is_home", server.url, keys, "lab")
    assert p.next_report() == "offered"
    with joined(server, keys) as network:

        async def there(name: str) -> dict[str, Any]:
            names = await network._meeting._names()
            entry: dict[str, Any] = json.loads((await names.get(name)).value)
            return entry

        r, w = network.reader("lab"), network.writer("lab")
        while not on_loop(network, there("lab"))["ticket"]:
            pass  # the home writes the next ticket
        p.kill()
        for operation in (r.read, lambda: w.write(1)):
            with pytest.raises(PeerDied):
                operation()
        p.ended()
        with pytest.raises(ConnectionError, match=r"home of 'lab', does not answer"):
            network.writer("lab")


def test_the_name_of_a_killed_home_is_free_again(server, keys, program, monkeypatch):  # wire 17.3
    # This program makes the bucket, so its setting determines the lifetime of the bucket's entries.
    monkeypatch.setattr(_net_names, "LIVES", 1.0)
    with joined(server, keys) as network:
        p = program("is_home", server.url, keys, "lab")
        assert p.next_report() == "offered"
        p.kill()
        p.ended()
        while network.names():
            pass
        network.offer("lab", th.Channel(), readers=True)


@pytest.mark.parametrize("relay", ["auto", "only"])
def test_the_name_of_a_killed_home_is_taken_over(server, keys, other_keys, program, relay):
    """Wire 17.3. A program with the same keys takes the name immediately, but not while the home
    runs. Another member must wait.
    """
    p = program("is_home", server.url, keys, "lab", relay)
    assert p.next_report() == "offered"
    with (
        net.join(server.url, keys=keys, relay=relay) as same,
        net.join(server.url, keys=other_keys, relay=relay) as other,
    ):
        for network in (same, other):
            network._meeting._relay._since = -1e9  # simulates that the network was joined long ago
            with pytest.raises(BadUse, match="'lab' is taken by home"):
                network.offer("lab", th.Channel(), readers=True)
        p.kill()
        p.ended()
        with pytest.raises(BadUse, match="'lab' is taken by home"):
            other.offer("lab", th.Channel(), readers=True)
        same.offer("lab", th.Channel(), readers=True)
        with pytest.raises(BadUse, match=f"'lab' is taken by {same.name}"):
            other.offer("lab", th.Channel(), readers=True)
        assert [one.host for one in other.names()] == [same.name]


@pytest.mark.parametrize(
    ("change", "gone"),
    [
        ({}, True),
        ({"fingerprint": "another"}, False),
        ({"relay": False}, False),  # the address may belong to another machine
        ({"address": ""}, True),
        ({"address": "", "relay": False}, False),
        ({"address": "nonsense"}, False),
        ({"home": "nonsense"}, False),
    ],
)
def test_what_counts_as_gone(server, keys, refusing, change, gone):  # wire 17.3
    with joined(server, keys) as network:
        meeting = network._meeting
        entry = {"fingerprint": meeting._fingerprint, "address": refusing, "home": "0" * 16}
        entry |= {"relay": True, **change}
        meeting._relay._since = -1e9
        found = _net_takeover.is_gone(entry, meeting._fingerprint, meeting._relay)
        assert on_loop(network, found) is gone
        found = _net_takeover.is_gone({}, meeting._fingerprint, meeting._relay)
        assert on_loop(network, found) is False


def test_the_server_is_killed_under_load(server, keys, program, tmp_path):  # wire 17.8
    """Programs with sessions continue; a new program receives an error; and when the server runs
    again, programs meet as before.
    """
    with joined(server, keys) as network:
        c = th.Channel("numbers")
        r, keep = c.reader(), c.writer()
        network.offer("numbers", c, writers=True)
        p = program("counts_by_name", server.url, keys, "numbers")
        assert [r.read() for _ in range(100)] == list(range(100))
        address = server.url.removeprefix("tls://")
        server.stop(signal.SIGKILL)
        assert [r.read() for _ in range(1000)] == list(range(100, 1100))
        with pytest.raises(BadUse, match="does not answer"):
            network.names()
        assert [r.read() for _ in range(100)] == list(range(1100, 1200))
        with _net_server.Server(tmp_path / "server", address) as back:
            again = program("names_writer", back.url, keys, "numbers", 1)
            got = []
            while 0 not in got:  # 0 is the first value of the second program
                got.append(r.read())
            assert again.next_report() == "written"
            assert [n for n in got if n] == list(range(1200, 1200 + len(got) - 1))
        r.retire()
        assert p.next_report()[1] == "Retired"
        keep.retire()


def test_a_server_that_comes_back_empty(server, keys, program, tmp_path, monkeypatch):  # wire 17.8
    """The bucket is lost with the server's disk: each program writes its names again."""
    monkeypatch.setattr(_net_names, "RENEW", 0.1)
    with joined(server, keys) as network:
        c = th.Channel("c")
        r = c.reader()
        network.offer("c", c, writers=True)
        address = server.url.removeprefix("tls://")
        server.stop(signal.SIGKILL)
        shutil.rmtree(tmp_path / "server" / "jetstream")
        with _net_server.Server(tmp_path / "server", address) as back:
            p = program("names_writer", back.url, keys, "c", 3)
            assert [r.read() for _ in range(3)] == [0, 1, 2]
            assert p.next_report() == "written"


def test_a_name_that_another_took_meanwhile(server, keys, monkeypatch):  # wire 17.8
    monkeypatch.setattr(_net_names, "RENEW", 0.05)
    with joined(server, keys) as network, joined(server, keys, name="new") as other:
        network.offer("c", th.Channel(), writers=True)

        async def take() -> None:
            names = await other._meeting._names()
            await names.delete("c")

        on_loop(other, take())
        while True:  # the first program may write the name again first
            try:
                other.offer("c", th.Channel(), writers=True)
                break
            except BadUse:
                on_loop(other, take())
        while "c" in network._meeting._offers:
            assert [n.host for n in other.names()] == ["new"]
        with pytest.raises(BadUse, match="not offered by this program"):
            network.withdraw("c")


def test_a_name_is_let_go_though_it_is_written_again_meanwhile(server, keys, monkeypatch):
    """wire 17.3: the name is deleted although a renewal writes it again during the deletion."""
    with joined(server, keys) as network:
        network.offer("lab/again", th.Channel("c"), writers=True)
        look, looks = network._meeting._entry_of, []

        async def there(names: Any, name: str) -> Any:
            found = await look(names, name)
            looks.append(found)
            if len(looks) == 1:
                await names.put(name, (await names.get(name)).value)
            return found

        monkeypatch.setattr(network._meeting, "_entry_of", there)
        network.withdraw("lab/again")
        assert len(looks) == 2
        assert network.names() == []


def test_a_renewal_that_waited_writes_no_name_that_was_let_go(server, keys, monkeypatch):
    """wire 17.3: a renewal that waited while the name was withdrawn does not write the name."""
    with joined(server, keys) as network:
        network.offer("lab/again", th.Channel("c"), writers=True)
        meeting = network._meeting
        offer, look, renewals = meeting._offers["lab/again"], meeting._entry_of, []

        async def there(names: Any, name: str) -> Any:
            if not renewals:
                renewals.append(asyncio.ensure_future(meeting._renew(offer)))
                await asyncio.sleep(0)  # the renewal waits until the name has been withdrawn
            return await look(names, name)

        monkeypatch.setattr(meeting, "_entry_of", there)
        network.withdraw("lab/again")

        async def renewed() -> None:
            await renewals[0]

        on_loop(network, renewed())
        assert network.names() == []


def test_a_session_that_ends_is_heard_out_before_it_is_let_go(server, keys):
    """wire 17.13: all bytes of a session that has ended are read, although its link reads on a
    thread of its own."""
    done: queue.Queue[str] = queue.Queue()

    class EndedSession:
        def __init__(self) -> None:
            self._carried = asyncio.get_running_loop().create_future()

        def wait(self) -> str:
            done.put("heard out")
            return "it was over"

        def close(self) -> None:
            done.put("closed")

    with joined(server, keys) as network:

        async def keeps_ended_session() -> None:
            session = EndedSession()
            network._keep(session)  # type: ignore[arg-type]
            assert network._sessions == {session}
            session._carried.set_result(None)

        on_loop(network, keeps_ended_session())
        assert [done.get(), done.get()] == ["heard out", "closed"]
        assert network._sessions == set()

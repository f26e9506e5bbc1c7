"""Tests sessions through the NATS server, for programs that do not reach each other
(WIRE-NETWORKS.md 17.17 to 17.21). test_ways.py tests the packet lines below these sessions.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import far_parts as parts
import pytest
from conftest import stand_in

from weft import net
from weft import threads as th
from weft._net import names as _net_names
from weft._net import relay as _net_relay
from weft._net import server as _net_server
from weft.errors import BadUse, PeerDied, ProcessDied, Retired


def joined(server: Any, keys: Any, relay: str = "only", **more: Any) -> net.Network:
    return net.join(server.url, keys=keys, relay=relay, **more)


# --- direct and relayed sessions behave alike (test_names.py has more tests of names) -------------


def test_plain_and_large_values_there_and_back(server, keys, program):  # wire 17.19
    """Values of some megabytes arrive too: more than a window, in messages that the server
    accepts.
    """
    values: list[Any] = [None, -(2**70), 1.5, "text ✓", [1, {"k": b""}], bytes(range(256)) * 12_000]
    with joined(server, keys) as network:
        out, back = th.Channel("values"), th.Channel("back")
        w, r = out.writer(), back.reader()
        network.offer("e/values", out, readers=True)
        network.offer("e/back", back, writers=True)
        p = program("echoes_by_name", server.url, keys, "e")
        for value in values:
            w.write(value)
            assert r.read() == value
        w.retire()
        with pytest.raises(Retired):
            r.read()
        assert p.next_report() == "done"


def test_a_choice_over_far_and_near_ends(server, keys, program):
    p = program("squares_by_name", server.url, keys, "s")
    with joined(server, keys, "auto") as network:
        squares, numbers = network.reader("s/squares"), network.writer("s/numbers")
        near = th.Channel("near")
        r, w = near.reader(), near.writer()
        for n in range(20):
            assert th.select(th.Output(numbers, n), r)[0] == 0
            assert th.select(r, squares) == (1, n * n)
        assert th.select(squares, th.after(0.01))[0] == 1
        w.retire()
        numbers.retire()
        with pytest.raises(Retired):
            squares.read()
    p.go()


def test_poison(server, keys, program):
    with joined(server, keys) as network:
        c = th.Channel("c")
        w = c.writer()
        network.offer("c", c, readers=True)
        p = program("reads_by_name", server.url, keys, "c")
        w.write(1)
        assert p.next_report() == 1
        w.poison()
        assert p.next_report() == "Poisoned"


def test_a_host(server, keys, agent):
    """Calls, their exceptions, and the death of the host's OS process arrive through the relay."""
    agent("gpu1", "--relay", "only")
    with joined(server, keys, "auto") as network:
        host = network.host("gpu1")
        numbers, doubled = th.Channel("numbers"), th.Channel("doubled")

        @th.process
        def gives(out: Any, back: Any) -> list[int]:
            got = []
            for n in range(20):
                out.write(n)
                got.append(back.read())
            out.retire()
            return got

        got = th.run(
            gives(numbers.writer(), doubled.reader()),
            parts.doubles.on(host)(numbers.reader(), doubled.writer()),
        )
        assert got == [[2 * n for n in range(20)], "done"]
        with pytest.raises(parts.Odd):
            th.run(parts.fails.on(host)("odd"))
        pids = th.Channel("pids")
        keep = pids.reader()

        @th.process
        def listens(pids: Any) -> None:
            pids.read()

        with pytest.raises(ProcessDied, match="gpu1") as died:
            th.run(parts.dies.on(host)(pids.writer()), listens(pids.reader()))
        assert died.value.signal == signal.SIGKILL
        keep.retire()


# --- which way ------------------------------------------------------------------------------------


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a program that listens and sends nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listens:
        yield f"127.0.0.1:{listens.getsockname()[1]}"


@pytest.fixture(params=["silent", "refusing"])
def nowhere(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


def test_an_address_that_does_not_answer(server, keys, program, nowhere, monkeypatch):  # wire 17.17
    """A program that gets no answer at an address uses the relay, although no option requests it.
    The next time it uses the relay immediately."""
    monkeypatch.setattr(_net_names, "REACH", 0.3)
    p = program("is_home_elsewhere", server.url, keys, "lab", nowhere, "auto")
    assert p.next_report() == "offered"
    with joined(server, keys, "auto") as network:
        r = network.reader("lab")
        tried: list[str] = []
        direct = _net_names._net_link.direct

        async def noted(tls: Any, address: str, patience: float = 1) -> Any:
            tried.append(address)
            return await direct(tls, address, patience)

        monkeypatch.setattr(_net_names._net_link, "direct", noted)
        w = network.writer("lab")
        assert tried == []
        writes = threading.Thread(target=w.write, args=(7,))
        writes.start()
        assert r.read() == 7
        writes.join()
        p.go()
        assert p.next_report() == [True, True]


def test_one_that_answers_is_not_gone_around(server, keys, program):  # wire 17.17
    with joined(server, keys, "auto") as network:
        c = th.Channel("c")
        r = c.reader()
        network.offer("c", c, writers=True)
        p = program("counts_by_name", server.url, keys, "c")
        assert r.read() == 0
        assert [s.relayed for s in network._sessions] == [False]  # the session still writes
        r.retire()
        assert p.next_report()[1] == "Retired"


@pytest.mark.parametrize(
    ("here", "there"), [("never", "auto"), ("auto", "never"), ("only", "never")]
)
def test_a_side_that_does_without(server, keys, program, refusing, here, there):  # wire 17.17
    p = program("is_home_elsewhere", server.url, keys, "lab", refusing, there)
    assert p.next_report() == "offered"
    at = "by the relay \\(which it does not use\\)" if here == "only" else f"at {refusing}"
    with (
        joined(server, keys, here) as network,
        pytest.raises(ConnectionError, match=f"home of 'lab', does not answer {at}"),
    ):
        network.reader("lab")
    p.go()


def test_a_home_that_is_killed_is_nowhere(server, keys, program, refusing, monkeypatch):
    # With this setting it seems as if the server had not been away.
    monkeypatch.setattr(_net_relay, "BACK", 0.0)
    p = program("is_home_elsewhere", server.url, keys, "lab", refusing, "auto")
    assert p.next_report() == "offered"
    p.kill()
    p.ended()
    with (
        joined(server, keys, "auto") as network,
        pytest.raises(ConnectionError, match=rf"at {refusing} .*, nor by the relay \(nobody"),
    ):
        network.writer("lab")


def test_another_host_cannot_stand_in(server, keys, other_keys, apart):  # wire 17.21
    """The impostor listens where the home should, but the certificate of the impostor has another
    fingerprint."""
    with joined(server, other_keys) as impostor, joined(server, keys) as network:
        impostor.offer("c", th.Channel("c"), writers=True)
        stand_in(impostor, "c", network)
        with pytest.raises(BadUse, match="by the relay, is not the program that was announced"):
            network.writer("c")


def test_keys_of_another_authority(server, keys, strange_keys, monkeypatch, apart):  # wire 17.21
    """The server might accept a program with keys of another authority; other programs do not."""
    with joined(server, keys) as network, joined(server, keys) as other:
        network.offer("c", th.Channel("c"), writers=True)
        monkeypatch.setattr(
            other._meeting,
            "_client_tls",
            _net_names._net_keys.context(Path(strange_keys), server=False),
        )
        with pytest.raises(BadUse, match=r"by the relay, shows a certificate that our authority"):
            other.writer("c")


@pytest.mark.parametrize("relay", ["", "always", None, True])
def test_no_such_relay(server, keys, relay):
    with pytest.raises(BadUse, match="relay must be 'auto', 'only' or 'never'"):
        joined(server, keys, relay)


# --- reports -------------------------------------------------------------------------------------


def ls(server: Any, keys: Any, *more: str) -> str:
    command = [sys.executable, "-m", "weft.cli", "net", "ls", "--server", server.url]
    command += ["--keys", str(keys), *more]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def test_ls_says_who_goes_by_the_relay(server, keys, program, monkeypatch):  # wire 17.17
    monkeypatch.setattr(_net_names, "RENEW", 0.05)
    with joined(server, keys, name="home") as network:
        c = th.Channel("c")
        w = c.writer()
        network.offer("c", c, readers=True)
        assert ls(server, keys) == "c  readers from home by the relay\n"
        p = program("reads_by_name", server.url, keys, "c")
        w.write(1)
        assert p.next_report() == 1
        assert [repr(s).endswith(" by the relay>") for s in network._sessions] == [True]
        while "(1 session)" not in ls(server, keys):
            pass
        (found,) = json.loads(ls(server, keys, "--json"))
        assert (found["name"], found["address"], found["relayed"]) == ("c", "", 1)
        w.retire()
        while network.names()[0].relayed:
            pass


# --- lost -----------------------------------------------------------------------------------------

SEED = 11
RESTARTS = int(os.environ.get("WEFT_RESTARTS", "3"))


def checked(r: Any, i: int) -> None:
    number, data, checksum = r.read()
    assert (number, zlib.crc32(data)) == (i, checksum)


def test_the_server_is_restarted_under_load(server, keys, program, tmp_path):  # wire 17.19
    """No value is lost, doubled or corrupted."""
    with joined(server, keys) as network:
        c = th.Channel("numbers")
        r = c.reader()
        network.offer("numbers", c, writers=True)
        p = program("writes_with_checksums", server.url, keys, "numbers", SEED, 20_000)
        checked(r, 0)
        address = server.url.removeprefix("tls://")
        running = [server]

        def restart() -> None:
            for _ in range(RESTARTS):
                running.pop().stop(signal.SIGKILL)
                running.append(_net_server.Server(tmp_path / "server", address))
                restarted.release()

        restarted = threading.Semaphore(0)
        restarts = threading.Thread(target=restart)
        restarts.start()
        i = 1
        try:
            for _ in range(RESTARTS):
                while not restarted.acquire(blocking=False):
                    checked(r, i)
                    i += 1
                for _ in range(20):
                    checked(r, i)
                    i += 1
            r.retire()
            number, how = p.next_report()
            assert (how, number - i in (0, 1)) == ("Retired", True)
        finally:
            restarts.join()
            running[0].stop()


def with_a_lease(
    server: Any, keys: Any, program: Any, monkeypatch: pytest.MonkeyPatch
) -> tuple[net.Network, Any, Any]:
    """Returns a network, a reader in it and the program that writes to the reader, once ten values
    have arrived. The lease is short, or long if the values do not arrive with the short one,
    because a busy machine may be silent for longer.
    """
    for lease in (3000, 60_000):
        monkeypatch.setattr(_net_relay, "LEASE", lease)
        network = joined(server, keys)
        c = th.Channel("numbers")
        r = c.reader()
        network.offer("numbers", c, writers=True)
        p = program("writes_with_checksums", server.url, keys, "numbers", SEED, lease)
        try:
            for i in range(10):
                checked(r, i)
            return network, r, p
        except PeerDied:
            network.close()
            p.kill()
    pytest.fail("no value comes")


def test_a_peer_that_is_killed_is_dead_after_the_lease(
    server, keys, program, monkeypatch
):  # wire 17.19
    network, r, p = with_a_lease(server, keys, program, monkeypatch)
    with network:
        p.kill()
        with pytest.raises(PeerDied):
            while True:
                r.read()


def test_one_that_is_stopped_is_dead_after_the_lease(
    server, keys, program, monkeypatch
):  # wire 17.19
    """When the stopped program continues, it learns that the session has ended."""
    network, r, p = with_a_lease(server, keys, program, monkeypatch)
    with network:
        p.process.send_signal(signal.SIGSTOP)
        with pytest.raises(PeerDied):
            while True:
                r.read()
        p.process.send_signal(signal.SIGCONT)
        assert p.next_report()[1] == "PeerDied"


def test_ctrl_c(server, keys, program):
    """An interrupted program announces its end: its peer need not wait until the lease expires."""
    with joined(server, keys) as network:
        c = th.Channel("c")
        w = c.writer()
        network.offer("c", c, readers=True)
        p = program("reads_by_name", server.url, keys, "c")
        w.write(1)
        assert p.next_report() == 1
        p.process.send_signal(signal.SIGINT)
        assert (p.next_report(), p.ended()) == ("KeyboardInterrupt", 0)
        with pytest.raises((Retired, PeerDied)):
            w.write(2)


def test_the_home_leaves(server, keys, program):
    network = joined(server, keys)
    c = th.Channel("c")
    w = c.writer()
    network.offer("c", c, readers=True)
    p = program("reads_by_name", server.url, keys, "c")
    w.write(1)
    assert p.next_report() == 1
    network.close()
    assert (p.next_report(), p.ended()) == ("PeerDied", 0)
    w.retire()

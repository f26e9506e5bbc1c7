"""C++ programs (`weft/net.hpp`) on one network with Python and C++ programs (WIRE-NETWORKS.md 17),
those of programs.py and programs.cpp. Each test is run with three builds: one as users build it,
one with ASan and UBSan, and one with TSan.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import signal
import socket
import subprocess
import threading
from pathlib import Path
from typing import Any

import cbor2
import numpy as np
import pytest
from conftest import SANITIZED, built, several_come

from weft import net
from weft import threads as th
from weft._distributed_deadlock import programs as _programs
from weft._distributed_deadlock import rounds as _rounds
from weft._net import names as _net_names
from weft._net import server as _net_server
from weft._net import values as _net_values
from weft.errors import BadUse, Deadlock, PeerDied, Retired


@pytest.fixture
def network(server: Any, keys: Path) -> Any:
    with net.join(server.url, keys=keys, name="python", relay="never") as joined:
        yield joined


def read_all(r: Any) -> list[Any]:
    got = []
    with pytest.raises(Retired):
        while True:
            got.append(r.read())
    return got


# --- there and back -------------------------------------------------------------------------------


def test_cpp_writes_to_python(server, keys, network, cpp):  # wire 17.3, 17.6
    c = th.Channel("numbers")
    r = c.reader()
    network.offer("lab/numbers", c, writers=True)
    p = cpp("names_writer", server.url, keys, "lab/numbers", 100)
    assert read_all(r) == list(range(100))
    assert (p.next_report(), p.ended()) == ("written", 0)


def test_cpp_reads_from_python(server, keys, network, cpp):
    """A C++ program reads values of all kinds that C++ knows."""
    values = [1, -(2**63), 2**64 - 1, 1.5, True, None, "text ✓", [1, [2]], {"k": ["v"]}]
    c = th.Channel("values")
    w = c.writer()
    network.offer("values", c, readers=True)
    p = cpp("names_reader", server.url, keys, "values")
    assert p.next_report() == "has it"
    for value in values:
        w.write(value)
    w.retire()
    assert p.next_report() == [values, "Retired"]


def test_python_writes_to_a_home_in_cpp(server, keys, network, cpp):  # wire 17.4
    """Values arrive at a rendezvous and through a buffer, from programs one after another and from
    several at the same time.
    """
    for capacity in (0, 16):
        p = cpp("reads_all", server.url, keys, f"c{capacity}", capacity)
        assert p.next_report() == "offered"
        w = network.writer(f"c{capacity}")
        for i in range(300):
            w.write(i)
        w.retire()
        assert p.next_report() == "the first"
        assert (p.next_report(), p.ended()) == ([300, "Retired"], 0)


def test_python_reads_from_a_home_in_cpp(server, keys, network, cpp):
    p = cpp("writes_for_ever", server.url, keys, "c")
    assert p.next_report() == "offered"
    r = network.reader("c")
    assert [r.read() for _ in range(100)] == list(range(100))
    r.retire()
    n, how = p.next_report()
    assert (n >= 100, how, p.ended()) == (True, "Retired", 0)


def test_several_come_at_once(server, keys, network, cpp):  # wire 17.4
    """Each client takes a ticket of its own from a home in C++."""
    p = cpp("is_home", server.url, keys, "c")
    assert p.next_report() == "offered"
    several_come(network, "c")
    p.go()
    assert p.ended() == 0


def test_values_go_through_cpp_as_they_were(server, keys, network, cpp):  # wire 9.1, 17.13, 17.15
    """Values of some megabytes arrive too. A value that C++ does not accept is reported when it is
    read, and the session continues.
    """
    out, back = th.Channel("values"), th.Channel("back")
    w, r = out.writer(), back.reader()
    network.offer("e/values", out, readers=True)
    network.offer("e/back", back, writers=True)
    p = cpp("echoes", server.url, keys, "e")
    for value in (0, "", b"", b"\0\xff" * 1_500_000, [float("inf"), -0.0], {"ä": {"": [None]}}):
        w.write(value)
        assert r.read() == value
    w.write((1, ["a", ()], {"k": (bytearray(b"b"), b"c")}))
    assert r.read() == [1, ["a", []], {"k": [b"b", b"c"]}]
    for value in ({1, 2}, [datetime.timedelta(1)]):
        w.write(value)
        assert " came, where this program takes: value" in r.read()["refused"]
    for value in (2**64, {1: 2}):
        w.write(value)
        assert "beyond 64 bits, or a map whose keys are not texts came" in r.read()["refused"]
    w.write("still there")
    assert r.read() == "still there"
    w.retire()
    assert (p.next_report(), p.ended()) == ("done", 0)


def test_what_is_no_integer_of_that_size(server, keys, network, cpp):  # wire 17.15
    c = th.Channel("c")
    w = c.writer()
    network.offer("c", c, readers=True)
    p = cpp("reads_integers", server.url, keys, "c")
    for value in (-128, 127):
        w.write(value)
        assert p.next_report() == value
    for value, kind in [
        (128, "the integer 128"),
        (-129, "the integer -129"),
        (2**63, f"the integer {2**63}"),
        (1.0, "a number with a fraction"),
        ("1", "a text"),
        (True, "a boolean"),
        (None, "null"),
        ([1, 2], "a list of 2"),
    ]:
        w.write(value)
        assert p.next_report() == f"{kind} came, where this program takes: integer of 8 bits"
    w.write(5)
    assert p.next_report() == 5
    w.retire()
    assert p.next_report() == "done"


DTYPES = ["b1", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8", "c8", "c16"]


def test_arrays_of_numpy_go_through_cpp(server, keys, network, cpp):  # wire 17.15
    """Arrays of each dtype that C++ knows arrive, with any shape and any byte order. An array with
    another dtype is reported when it is read.
    """
    channels = {d: (th.Channel(d), th.Channel(f"{d} back")) for d in DTYPES}
    ends = {d: (out.writer(), back.reader()) for d, (out, back) in channels.items()}
    for d, (out, back) in channels.items():
        network.offer(f"a/{d}/values", out, readers=True)
        network.offer(f"a/{d}/back", back, writers=True)
    p = cpp("echoes_arrays", server.url, keys, "a")
    for d in DTYPES:
        w, r = ends[d]
        ones = np.arange(24).astype(d)
        big = ones.dtype.newbyteorder(">")
        for array in (
            ones,
            ones.reshape(2, 3, 4),
            ones.reshape(4, 6).T,  # the elements of this array are not in the order of memory
            ones.astype(big).reshape(3, 8),
            ones[:0].reshape(0, 5),
            ones[3:4].reshape(()),
        ):
            w.write(array)
            received = r.read()
            assert (received.dtype, received.shape) == (np.dtype(d), array.shape)
            assert np.array_equal(received, array) and received.flags.writeable
        other = "f8" if d != "f8" else "i8"
        w.write(np.zeros((2, 2), other))
        of = ("<" if np.dtype(d).itemsize > 1 else "|") + d
        assert p.next_report() == (
            f"an array of numpy, of <{other} and shape [2,2] came, where this program takes: "
            f"array of numpy, of {of}"
        )
        w.write([1, 2])
        assert p.next_report().startswith(
            "a list of 2 came, where this program takes: array of numpy"
        )
        w.retire()
        with pytest.raises(Retired):
            r.read()
    assert (p.next_report(), p.ended()) == ("done", 0)


def test_arrays_that_are_none(server, keys, network, cpp):  # wire 17.15
    """An array is refused when it is read if its bytes do not fit its shape, or if the byte of a
    boolean is neither 0 nor 1.
    """
    values, back = th.Channel("values"), th.Channel("back")
    w, r = values.writer(), back.reader()
    network.offer("a/b1/values", values, readers=True)
    network.offer("a/b1/back", back, writers=True)
    p = cpp("echoes_arrays", server.url, keys, "a")

    class Unpicklable:
        """An object whose pickle is its packed form."""

    for content in (
        ["numpy", "|b1", [2], b"\0"],
        ["numpy", "|b1", [2], b"\0\2"],
        ["numpy", "|b1", [2**62, 2**62], b""],
        ["numpy", "|b1", [-1], b""],
        ["numpy", "|b1", ["x"], b""],
        ["numpy", "|b1", None, b"\0"],
        ["numpy", "=b1", [1], b"\0"],
        ["numpy", "", [0], b""],
        ["numpy", 5, [0], b""],
        ["numpy", "|b1", [0]],
        ["other", "|b1", [0], b""],
        [],
    ):
        with pytest.MonkeyPatch.context() as m:
            m.setattr(_net_values, "_shaped", lambda _, c=content: cbor2.CBORTag(27, c))
            w.write(Unpicklable())
        assert "came, where this program takes: array of numpy, of |b1" in p.next_report()
    w.write(np.array([True, False]))
    assert r.read().tolist() == [True, False]


def test_numbers_of_numpy(server, keys, network, cpp):  # wire 17.15
    """C++ accepts an array for a list of numbers, and a numpy scalar for a number; Python accepts
    the arrays and numbers that C++ makes.
    """
    parts = ("list", "one", "made")
    channels = {part: th.Channel(part) for part in parts}
    many, one, made = (
        channels[part].reader() if part == "made" else channels[part].writer() for part in parts
    )
    for part, c in channels.items():
        network.offer(f"n/{part}", c, readers=part != "made", writers=part == "made")
    p = cpp("numbers", server.url, keys, "n")
    for value in (np.array([1.5, 2.5]), [1.5, 2], [np.float64(0.25)], np.array([])):
        many.write(value)
        assert p.next_report() == list(value)
    for value in (np.zeros((1, 2)), np.zeros(2, "f4"), np.float64(1)):
        many.write(value)
        assert "came, where this program takes: list, of number" in p.next_report()
    many.retire()
    for value in (np.float64(1.5), 2, np.array([1.5, 2.5]).mean()):
        one.write(value)
        assert p.next_report() == value
    for value in (np.int64(1), np.zeros(1), np.zeros(())):
        one.write(value)
        assert "an array of numpy, of <" in p.next_report()
    one.retire()
    received = [made.read() for _ in range(4)]
    assert [(c.dtype.str, c.shape) for c in received] == [
        ("<f4", s) for s in ((2, 3), (1,), (0,), ())
    ]
    assert [c.tolist() for c in received] == [[[1, 2, 3], [4, 5, 6]], [0.5], [], 7]
    assert p.next_report() == "an array of 2 values does not have the shape [2,3]"
    assert p.ended() == 0


def test_cpp_and_cpp(server, keys, cpp):
    home = cpp("reads_all", server.url, keys, "c", 0)
    assert home.next_report() == "offered"
    p = cpp("names_writer", server.url, keys, "c", 500)
    assert (p.next_report(), p.ended()) == ("written", 0)
    assert home.next_report() == "the first"
    assert (home.next_report(), home.ended()) == ([500, "Retired"], 0)


def test_cpp_and_cpp_with_a_type_of_their_own(server, keys, cpp):  # wire 7.2, 9.1
    home = cpp("own_type", server.url, keys, "rows", "home")
    assert home.next_report() == "offered"
    p = cpp("own_type", server.url, keys, "rows", "writes")
    assert (p.next_report(), p.ended()) == ("written", 0)
    assert (home.next_report(), home.ended()) == (50_000, 0)


def test_a_choice_over_two_names(server, keys, network, cpp):  # wire 5
    left, right = th.Channel("left"), th.Channel("right")
    ends = left.writer(), right.writer()
    network.offer("two/left", left, readers=True)
    network.offer("two/right", right, readers=True)
    p = cpp("chooses", server.url, keys, "two", 20)
    for i in range(20):
        ends[i % 2].write(i)
    assert p.next_report() == [[i % 2, i] for i in range(20)]


def test_the_example(server, keys, build):
    """The example runs as its page describes: one program keeps values, several measure."""
    lab, env = str(built(build, "lab")), {**SANITIZED, "WEFT_NET": str(keys)}
    with subprocess.Popen(
        [lab, "keeps", server.url], stdout=subprocess.PIPE, text=True, env=env
    ) as keeper:
        assert keeper.stdout is not None
        assert keeper.stdout.readline() == "here\n"
        subprocess.run([lab, "measures", "50", server.url], check=True, env=env)
        assert keeper.stdout.read() == "50 temperatures, 22.00 on average\n"
    wrong = subprocess.run([lab, "measures", "0"], stderr=subprocess.PIPE, text=True, check=False)
    assert wrong.returncode == 2 and "at least 1" in wrong.stderr


# --- deadlocks ------------------------------------------------------------------------------------


@th.process
def crosses(r: Any, w: Any) -> None:
    w.write(r.read())


def beside(network: Any, cpp: Any, name: str, *args: object) -> Any:
    """Starts a program that waits for a value at `there` and writes the value to `back`. Returns
    the program and the test's two ends.
    """
    outward, back = th.Channel("there"), th.Channel("back")
    ends = back.reader(), outward.writer()
    network.offer("d/there", outward, readers=True)
    network.offer("d/back", back, writers=True)
    p = cpp(name, *args, "d")
    assert p.next_report() == "has them"
    return p, *ends


def test_a_deadlock_with_cpp_is_told_in_both(server, keys, network, cpp):  # wire 10.8, 17.23
    """Once no further program can join, the deadlock is reported without a time limit, in one
    report, with processes and lines of both programs.
    """
    p, r, w = beside(network, cpp, "passes_on", server.url, keys)
    network.withdraw("d/there")
    network.withdraw("d/back")
    with pytest.raises(Deadlock) as raised:
        th.run(crosses(r, w))
    report = raised.value.report
    assert "2 processes are blocked" in report and "they are in 2 programs" in report
    assert "main/crosses: read 'back' at test_cpp.py:" in report
    assert "main/passes: read 'there' at programs.cpp:" in report
    assert f"({p.process.pid})" in report
    assert p.next_report() == ["Deadlock", report]
    assert p.ended() == 0


def test_a_name_that_is_withdrawn_while_all_wait(server, keys, network, cpp):  # wire 17.16, 17.23
    p, r, w = beside(network, cpp, "passes_on", server.url, keys)
    network.withdraw("d/there")

    def withdraw() -> None:
        network.withdraw("d/back")

    thread = threading.Thread(target=withdraw)

    @th.process
    def begins(r: Any, w: Any) -> None:
        thread.start()
        w.write(r.read())

    with pytest.raises(Deadlock, match="they are in 2 programs"):
        th.run(begins(r, w))
    thread.join()
    assert p.next_report()[0] == "Deadlock"


def test_a_deadlock_between_two_in_cpp(server, keys, cpp):  # wire 10.6, 17.23
    home = cpp("passes_on_at_home", server.url, keys, "d")
    assert home.next_report() == "offered"
    p = cpp("passes_on", server.url, keys, "d")
    assert p.next_report() == "has them"
    home.go()
    how, report = home.next_report()
    assert how == "Deadlock" and "they are in 2 programs" in report
    assert p.next_report() == ["Deadlock", report]


def test_a_program_that_takes_no_part(server, keys, network, cpp, monkeypatch):  # wire 17.23
    """No deadlock is reported beside a program that takes no part in rounds, because such a program
    may do anything. In this test the program is killed after some rounds.
    """
    p, r, w = beside(network, cpp, "passes_on_alone", server.url, keys)
    network.withdraw("d/there")
    network.withdraw("d/back")
    found: list[bool] = []
    ask = _rounds._ask_programs

    def asks(ring: Any) -> Any:
        got = ask(ring)
        found.append(_programs.still(*got))
        if len(found) == 3:
            p.kill()
        return got

    monkeypatch.setattr(_rounds, "_ask_programs", asks)
    with pytest.raises(PeerDied):
        th.run(crosses(r, w))
    assert found[:3] == [False] * 3


# --- refused --------------------------------------------------------------------------------------


def tried(cpp: Any, server: Any, keys: Any, *args: object) -> list[str]:
    answer: list[str] = cpp("tries", server.url, keys, *args).next_report()
    return answer


def test_names_that_are_not_there(server, keys, network, cpp):
    how, why = tried(cpp, server, keys, "nobody", "reader", 0.5)
    assert (how, why) == (
        "BadUse",
        "nobody has offered 'nobody' within 0.5 seconds: `weft net ls` shows the names",
    )
    for name in ("", "/x", "x//y", "a b", "host=x", "x" * 61):
        how, why = tried(cpp, server, keys, name, "reader", 0.5)
        assert (how, why.endswith(f"not '{name}'")) == ("BadUse", True)


def test_the_other_side_or_another_type(server, keys, network, cpp):  # wire 17.2, 17.6
    network.offer("c", th.Channel("c"), readers=True)
    how, why = tried(cpp, server, keys, "c", "writer", 10)
    assert (how, why) == ("BadUse", f"{network.address} refuses: 'c' gives reader ends only")
    network.offer("d", th.Channel("d"), writers=True)
    how, why = tried(cpp, server, keys, "d", "raw", 10)
    assert how == "BadUse" and "is of type typed2, and i8 was asked for" in why
    home = cpp("own_type", server.url, keys, "rows", "home")
    assert home.next_report() == "offered"
    with pytest.raises((BadUse, PeerDied), match="of type v:f8, and this link carries typed"):
        network.writer("rows")
    with pytest.raises(BadUse, match="'rows' gives writer ends only"):
        network.reader("rows")


def test_a_name_that_is_taken(server, keys, network, cpp):  # wire 17.3
    """Python is refused a name that C++ holds, and vice versa. The name is free once it is
    withdrawn.
    """
    network.offer("c", th.Channel("c"), readers=True)
    p = cpp("offers", server.url, keys, "c")
    how, why = p.next_report()
    assert how == "BadUse" and why.startswith(
        f"the name 'c' is taken by python at {network.address}: "
    )
    network.withdraw("c")
    p = cpp("offers", server.url, keys, "c")
    assert p.next_report() == ["ok", ""]
    with pytest.raises(BadUse, match=r"the name 'c' is taken by c\+\+ at 127"):
        network.offer("c", th.Channel("c"), readers=True)
    (named,) = network.names()
    assert (named.name, named.host, named.readers, named.writers) == ("c", "c++", True, False)
    p.go()
    assert p.next_report() == ["withdrawn", ""]
    network.offer("c", th.Channel("c"), readers=True)
    p.go()
    assert p.ended() == 0


def test_openssl_is_there_until_a_program_has_ended(server, keys, cpp):
    """After main() a thread of nats.c may still close a connection. That thread would crash if
    OpenSSL were already unloaded."""
    p = cpp("ends_with_openssl", server.url, keys)
    assert (p.next_report(), p.ended()) == (True, 0)


def test_cpp_comes_to_its_own_channel(server, keys, cpp):  # wire 17.2
    p = cpp("comes_to_itself", server.url, keys, "lab/c")
    assert (
        p.next_report()
        == "'lab/c' is a channel of this program: use the ends of the channel itself"
    )
    assert p.ended() == 0


def test_no_server(keys, tmp_path, cpp, refusing):
    p = cpp("tries", f"nats://{refusing}", keys, "c", "reader", 1)
    how, why = p.next_report()
    assert how == "error" and f"the NATS server at tls://{refusing} cannot be used" in why
    for url in ("127.0.0.1:4222", "http://x", "nats://"):
        how, why = cpp("tries", url, keys, "c", "reader", 1).next_report()
        assert (how, why) == ("error", f"a server must be nats://HOST:PORT, not '{url}'")
    how, why = cpp("tries", "nats://127.0.0.1:1", tmp_path / "none", "c", "reader", 1).next_report()
    assert how == "error" and why.startswith(f"no keys in {tmp_path / 'none'} (")


def test_keys_of_another_authority(server, keys, strange_keys, network, cpp, program):  # wire 17.1
    how, why = cpp("tries", server.url, strange_keys, "c", "reader", 1).next_report()
    assert how == "error" and "the NATS server at" in why
    # The server accepts the program now; the home itself refuses it, whether the home or the client
    # is in C++.
    home = cpp("is_home", server.url, keys, "c")
    assert home.next_report() == "offered"
    strange = _net_names._net_keys.context(Path(strange_keys), server=False)
    network._meeting._client_tls = strange
    with pytest.raises(BadUse, match="shows a certificate that our authority has not signed"):
        network.reader("c")
    network._meeting._client_tls = _net_names._net_keys.context(Path(keys), server=False)
    network.reader("c").retire()  # the other channels still work
    home.go()


def test_a_certificate_that_has_expired(server, keys, keys_for_a_day, network, cpp):  # wire 17.1
    network.offer("c", th.Channel("c"), readers=True)
    folder = keys_for_a_day(-4000)
    network._meeting._server_tls.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    how, why = cpp("tries", server.url, keys, "c", "reader", 1).next_report()
    assert how == "BadUse" and "not good now (certificate has expired): look at the clocks" in why


def test_a_program_that_is_refused_leaves_no_descriptor(server, keys, network, cpp):  # wire 17.1
    """No descriptor is left by a client without a certificate, nor by a client that sends
    nothing."""
    home = cpp("is_home", server.url, keys, "c")
    assert home.next_report() == "offered"
    (named,) = network.names()
    host, port = named.address.split(":")
    fds = Path(f"/proc/{home.process.pid}/fd")
    before = len(list(fds.iterdir()))
    for _ in range(20):
        with socket.create_connection((host, int(port))) as raw:
            raw.sendall(b"no TLS at all, whoever that may be")
            with contextlib.suppress(OSError):  # the home may reset the connection
                while raw.recv(100):
                    pass
    while len(list(fds.iterdir())) > before:  # the home's threads end on their own
        pass
    home.go()
    assert home.ended() == 0


def test_another_host_cannot_stand_in(server, keys, other_keys, cpp):  # wire 17.4
    with net.join(server.url, keys=other_keys, relay="never") as impostor:
        impostor.offer("c", th.Channel("c"), readers=True)

        async def put_another_fingerprint() -> None:
            names = await impostor._meeting._names()
            entry = json.loads((await names.get("c")).value)
            entry["fingerprint"] = "0" * 64
            await names.put("c", json.dumps(entry).encode())

        impostor._call(put_another_fingerprint())
        how, why = tried(cpp, server, keys, "c", "reader", 5)
    assert (
        how == "BadUse"
        and "is not the program that was announced: its certificate has another" in why
    )


def test_a_program_that_takes_tickets_and_shows_none_delays_no_other(
    server, keys, network, cpp
):  # wire 17.4
    """The home writes the next ticket immediately. A renewal would also write a ticket. But a
    renewal also writes the home's other name, so the test can distinguish the two.
    """
    home = cpp("is_home", server.url, keys, "c", "witness")
    assert home.next_report() == "offered"
    meeting = network._meeting

    async def taken() -> tuple[set[str], set[int]]:
        names = await meeting._names()
        tickets, renewals = set(), set()
        for _ in range(16):
            tickets.add((await meeting._ticket_for("c", "reader", 60.0))["ticket"])
            renewals.add((await names.get("witness")).revision)
        return tickets, renewals

    tickets, renewals = network._call(taken())
    assert len(tickets) == 16
    assert len(renewals) < 12
    home.go()
    assert home.ended() == 0


def test_a_ticket_is_good_once(server, keys, network, cpp):  # wire 17.4
    """A home in C++ refuses a ticket that is shown a second time, or that the home never issued."""
    home = cpp("is_home", server.url, keys, "c")
    assert home.next_report() == "offered"
    link, meeting = _net_names._net_link, network._meeting

    async def come(ticket: str, address: str) -> Any:
        request = {"host": "x", "trust": True, "name": "c", "side": "reader", "ticket": ticket}
        return await link.reach(meeting._client_tls, address, request)

    entry = network._call(meeting._ticket_for("c", "reader", 5.0))
    session = network._call(come(entry["ticket"], entry["address"]))
    assert (session.host, session.trusted) == ("c++", False)
    for ticket in (entry["ticket"], "0" * 32):
        with pytest.raises(BadUse, match="the ticket for 'c' is not valid: each is valid once"):
            network._call(come(ticket, entry["address"]))
    session.close()
    home.go()
    assert home.ended() == 0


@pytest.mark.parametrize(
    "first_bytes", [b"", b"GET / HTTP/1.1\r\n\r\n", b"WEFTNET1\xff\xff\xff\xff"]
)
def test_rubbish_first(server, keys, network, cpp, first_bytes):  # wire 17.2
    """Rubbish ends its own connection, and no other."""
    home = cpp("is_home", server.url, keys, "c")
    assert home.next_report() == "offered"
    (named,) = network.names()
    host, port = named.address.split(":")
    tls = _net_names._net_keys.context(Path(keys), server=False)
    with socket.create_connection((host, int(port))) as raw, tls.wrap_socket(raw) as s:
        s.sendall(first_bytes)
        s.shutdown(socket.SHUT_WR)
        with contextlib.suppress(OSError):  # the home may reset the connection
            assert s.recv(100) == b""
    network.reader("c").retire()
    home.go()
    assert home.ended() == 0


# --- lost -----------------------------------------------------------------------------------------


def test_a_peer_in_cpp_that_is_killed(server, keys, network, cpp):  # wire 2.5, 17.7
    p = cpp("writes_for_ever", server.url, keys, "c")
    assert p.next_report() == "offered"
    r = network.reader("c")
    assert r.read() == 0
    p.kill()
    with pytest.raises(PeerDied):
        while True:
            r.read()


@pytest.mark.parametrize("other", ["python", "cpp"])
def test_a_home_in_cpp_whose_writer_is_killed(server, keys, cpp, program, other):  # wire 2.5
    """If the last writer of a home in C++ is killed, the home's channel has died."""
    home = cpp("reads_all", server.url, keys, "c", 0)
    assert home.next_report() == "offered"
    start = cpp if other == "cpp" else program
    p = start("names_writer", server.url, keys, "c", 10**9)
    assert home.next_report() == "the first"
    p.kill()
    n, how = home.next_report()
    assert (n >= 1, how, home.ended()) == (True, "PeerDied", 0)


def test_the_server_is_away(server, keys, network, cpp, tmp_path):  # wire 17.8
    """Sessions continue while the server is down. Programs that join later meet once the server
    runs again, even under the name that a home in C++ has renewed.
    """
    p = cpp("writes_for_ever", server.url, keys, "c")
    assert p.next_report() == "offered"
    r = network.reader("c")
    assert r.read() == 0
    server.stop(signal.SIGKILL)
    assert [r.read() for _ in range(200)] == list(range(1, 201))
    with pytest.raises(BadUse, match=r"the server at .* does not answer"):
        network.reader("c", patience=0.2)
    with _net_server.Server(tmp_path / "server", server.url.removeprefix("tls://")):
        again = network.reader("c", patience=60)
        assert again.read() == 201
        again.retire()
        assert r.read() == 202
        r.retire()
        assert p.next_report()[1] == "Retired"

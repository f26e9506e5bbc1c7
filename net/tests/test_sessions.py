"""Sessions at an address (WIRE-NETWORKS.md 17.1, 17.2, 17.5, 17.6, 17.7): they need no server."""

from __future__ import annotations

import json
import os
import random
import socket
import ssl
import struct
from pathlib import Path
from typing import Any

import pytest
from points import Point

from weft import coroutines as co
from weft import net
from weft import processes as ps
from weft import threads as th
from weft._net import first_messages as _first
from weft._net import keys as _net_keys
from weft._net import link as _net_link
from weft.errors import BadUse, Deadlock, PeerDied, Retired

PLAIN: list[Any] = [
    None,
    True,
    0,
    -(2**70),
    1.5,
    "text ✓",
    b"bytes",
    [1, [2, {"a": None}]],
    {"k": [b"", ""], "n": -1},
    b"x" * (3 << 20),  # such a value is sent in pieces, since no descriptor passes (wire 17.5)
]


def echoed(session: net.Session, values: list[Any]) -> list[Any]:
    out, back = th.Channel("values"), th.Channel("back")
    w, r = out.writer(), back.reader()
    session.give("values", out.reader())
    session.give("back", back.writer())
    got = []
    for value in values:
        w.write(value)
        got.append(r.read())
    w.retire()
    with pytest.raises(Retired):
        r.read()
    return got


def test_plain_values_there_and_back(keys, program):  # wire 17.5, 17.6
    with net.listen(keys=keys, name="home") as door:
        p = program("echoes", door.address, keys)
        with door.next() as session:
            assert echoed(session, PLAIN) == PLAIN
            assert (session.host, session.trusted) == ("echo", False)
            assert (p.next_report(), p.next_report(), p.ended()) == (["home", False], "done", 0)


def test_sessions_have_no_threads_of_their_own(keys, program):  # wire 12.2
    """The loop carries all sessions. (Only a link with a socket of its own has a thread.)"""
    with net.listen(keys=keys) as door:
        sessions, threads = [], []
        for _ in range(3):
            p = program("takes_what_never_comes", door.address, keys)
            sessions.append(door.next())
            assert p.next_report() == "here"
            threads.append(set(Path("/proc/self/task").iterdir()))
        assert threads[2] <= threads[1] <= threads[0]  # a thread of a test before this one may end
        for session in sessions:
            session.close()


def test_in_coroutines_on_both_sides(keys, program):
    @co.process
    async def sends(out: Any) -> None:
        for i in range(50):
            await out.write(i)
        await out.write("last")
        out.retire()

    @co.process
    async def takes(back: Any) -> list[Any]:
        return [value async for value in back]

    @co.process
    async def network(door: net.Door) -> list[Any]:
        session = await co.io(door.next)()
        out, back = co.Channel("values"), co.Channel("back")
        session.give("values", out.reader())
        session.give("back", back.writer())
        return (await co.Parallel(sends(out.writer()), takes(back.reader())))[1]

    with net.listen(keys=keys) as door:
        program("echoes_in_coroutines", door.address, keys)
        assert co.run(network(door)) == [*range(50), "last"]


def test_the_home_is_who_gives(keys, program):
    with net.listen(keys=keys) as door:
        p = program("gives", door.address, keys)
        with door.next() as session:
            squares, numbers = session.take("squares"), session.take("numbers")
            for n in range(5):
                numbers.write(n)
                assert squares.read() == n * n
            numbers.retire()
            with pytest.raises(Retired):
                squares.read()
        assert "closed the session" in p.next_report()


def test_a_choice_over_far_and_near_ends(keys, program):
    """The plain values of a choice arrive, both at the home and at the peer to which the end was
    sent."""
    with net.listen(keys=keys) as door:
        program("gives", door.address, keys)
        with door.next() as session:
            squares, numbers = session.take("squares"), session.take("numbers")
            near = th.Channel("near")
            r, w = near.reader(), near.writer()
            assert th.select(th.Output(numbers, 7), r)[0] == 0
            assert th.select(r, squares) == (1, 49)
            assert th.select(squares, th.after(0.01))[0] == 1
            w.retire()


def test_no_pickle_unless_both_sides_trust(keys, program):  # wire 17.6
    for here in (False, True):
        for there in ("", "yes"):
            with net.listen(keys=keys, trust=here) as door:
                p = program("writes_an_object", door.address, keys, there)
                with door.next() as session:
                    assert session.trusted == (here and there == "yes")
                    c = th.Channel("points")
                    r = c.reader()
                    session.give("points", c.writer())
                    if session.trusted:
                        point = r.read()
                        assert type(point) is Point and (point.x, point.y) == (1, 2)
                        assert p.next_report() == "written"
                    else:
                        assert "a Point cannot go to a program on another" in p.next_report()
                        with pytest.raises(Retired):
                            r.read()


def test_pickles_of_a_liar_are_not_taken(keys, program):  # wire 17.6
    with net.listen(keys=keys) as door:
        p = program("gives_pickles", door.address, keys)
        session = door.next()
        assert p.next_report() == "given"
        with pytest.raises(BadUse, match="of type pickle, and this link carries typed"):
            session.take("pickles")
        session.close()


def test_what_cannot_be_written_here(keys, program):
    with net.listen(keys=keys) as door:
        program("echoes", door.address, keys)
        with door.next() as session:
            c = th.Channel("values")
            w = c.writer()
            session.give("values", c.reader())
            with pytest.raises(
                BadUse, match=r"channel 'values': a Point cannot go.*None, bool, int"
            ):
                w.write(Point(1, 2))
            deep: Any = []
            for _ in range(70):
                deep = [deep]
            with pytest.raises(BadUse, match="at most 64 deep"):
                w.write(deep)
            other = th.Channel("other")
            session.give("a", other.reader())
            with pytest.raises(BadUse, match="cannot go"):
                w.write(other.writer())


def test_ends_of_both_kinds_of_values_are_kept_apart(keys, program):
    c = th.Channel("c")
    keep = c.reader(), c.writer()
    with ps.Hosts(1) as hosts, net.listen(keys=keys) as door:
        program("takes_what_never_comes", door.address, keys)
        with door.next() as session:
            assert th.run(ps.process(_write).on(hosts)(c.writer()), _reads(c.reader()))[1] == 1
            with pytest.raises(BadUse, match="packed differently: make another"):
                session.give("c", c.writer())
    th.retire(*keep)


def _write(w: Any) -> None:
    w.write(1)


@th.process
def _reads(r: Any) -> Any:
    return r.read()


# --- deaths ---------------------------------------------------------------------------------------


def test_a_writer_that_is_killed(keys, program):  # wire 17.7
    with net.listen(keys=keys) as door:
        p = program("counts", door.address, keys)
        with door.next() as session:
            c = th.Channel("numbers")
            r = c.reader()
            session.give("numbers", c.writer())
            assert [r.read() for _ in range(100)] == list(range(100))
            p.kill()
            with pytest.raises(PeerDied):
                while True:
                    r.read()
            assert "closed" in session.wait()


def test_a_reader_that_is_killed(keys, program):  # wire 17.7
    with net.listen(keys=keys) as door:
        p = program("reads_until_the_end", door.address, keys)
        with door.next() as session:
            c = th.Channel("values")
            w = c.writer()
            session.give("values", c.reader())
            assert p.next_report() == "here"
            for i in range(100):
                w.write(i)
            p.kill()
            with pytest.raises(PeerDied):
                while True:
                    w.write(0)


def test_the_home_that_leaves(keys, program):
    with net.listen(keys=keys) as door:
        p = program("reads_until_the_end", door.address, keys)
        with door.next() as session:
            c = th.Channel("values")
            w = c.writer()
            session.give("values", c.reader())
            assert p.next_report() == "here"
            w.write(1)
        # This program still had an open writer end.
        assert p.next_report() == "PeerDied"
        assert p.ended() == 0
        w.die() if hasattr(w, "die") else w.retire()


def test_the_session_ends_before_what_is_waited_for(keys, program):
    with net.listen(keys=keys) as door:
        p = program("takes_what_never_comes", door.address, keys)
        session = door.next()
        assert p.next_report() == "here"
        session.close()
        session.close()
        assert "ended before it had given 'nothing'" in p.next_report()
        with pytest.raises(BadUse, match="closed"):
            session.wait()


def test_nothing_is_left_that_could_come(keys):  # rule 10.3
    """While the door is open a program might connect; once it is closed, a run in which no process
    can continue is a deadlock again.
    """
    with net.listen(keys=keys):
        pass
    c = th.Channel("c")
    w = c.writer()
    with pytest.raises(Deadlock):
        th.run(_reads(c.reader()), _reads_too(c.reader()))
    w.retire()


@th.process
def _reads_too(r: Any) -> Any:
    return r.read()


# --- refused --------------------------------------------------------------------------------------


def test_a_certificate_of_another_authority(keys, strange_keys):  # wire 17.1
    with net.listen(keys=keys) as door, pytest.raises(BadUse, match="our authority has not signed"):
        net.connect(door.address, keys=strange_keys)


@pytest.mark.parametrize(
    ("days", "says"), [(-4000, "certificate has expired"), (10, "certificate is not yet valid")]
)
def test_keys_that_are_out_of_time(keys, keys_for_a_day, days, says):  # wire 17.1
    folder = keys_for_a_day(days)
    for joins in (lambda: net.listen(keys=folder), lambda: net.connect("127.0.0.1:9", keys=folder)):
        with pytest.raises(
            BadUse, match=rf"in {folder} is not good now \({says}\): look at this machine's clock"
        ):
            joins()


@pytest.mark.parametrize(
    ("days", "says"), [(-4000, "certificate has expired"), (10, "certificate is not yet valid")]
)
def test_a_certificate_that_is_out_of_time(
    keys, keys_for_a_day, days, says, expired_meanwhile
):  # wire 17.1
    """The certificate is like that of a machine whose clock begins at 1970; the certificate of the
    authority is valid.
    """
    with (
        net.listen(keys=keys_for_a_day(days)) as door,
        pytest.raises(BadUse, match=rf"not good now \({says}\): look at the clocks"),
    ):
        net.connect(door.address, keys=keys)


def test_we_are_of_another_authority(keys, strange_keys, tmp_path, monkeypatch):  # wire 17.1
    """The peer accepts this program's certificate; this program does not accept the peer's
    certificate.
    """
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    for name in ("certificate.pem", "key.pem"):
        (mixed / name).write_bytes((strange_keys / name).read_bytes())
    (mixed / "authority.pem").write_bytes((keys / "authority.pem").read_bytes())
    with pytest.raises(BadUse, match=r"in .*mixed is not one of the authority there"):
        net.connect("127.0.0.1:9", keys=mixed)
    monkeypatch.setattr(
        _net_keys, "_shown", lambda *_: (b"", {"subjectAltName": (("URI", "weft:*"),)})
    )
    with (
        net.listen(keys=keys) as door,
        pytest.raises(BadUse, match=r"refuses our certificate.*weft net keys"),
    ):
        net.connect(door.address, keys=mixed)


def _tls(keys: Path, **different: Any) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = False
    made.load_verify_locations(keys / "authority.pem")
    if different.get("certificate", True):
        made.load_cert_chain(keys / "certificate.pem", keys / "key.pem")
    if different.get("old"):
        made.maximum_version = ssl.TLSVersion.TLSv1_2
    return made


def _raw(door: net.Door) -> socket.socket:
    return socket.create_connection(_net_link.parted(door.address))


def test_no_certificate(keys):  # wire 17.1
    with net.listen(keys=keys) as door, _raw(door) as raw:
        refused = False
        try:
            with _tls(keys, certificate=False).wrap_socket(raw) as tls:
                tls.sendall(_first.packed({"host": "x", "name": "y"}))
                refused = not tls.recv(1)  # in TLS 1.3 the refusal arrives only at this point
        except OSError:
            refused = True
        assert refused


def test_no_older_tls(keys):  # wire 17.1
    with net.listen(keys=keys) as door, _raw(door) as raw, pytest.raises((ssl.SSLError, OSError)):
        _tls(keys, old=True).wrap_socket(raw)


def test_a_fingerprint_of_somebody_else(keys, other_keys):
    wanted = _net_keys.Keys(other_keys).fingerprint
    with (
        net.listen(keys=keys) as door,
        pytest.raises(BadUse, match="not the program that was announced"),
    ):
        net.connect(door.address, keys=other_keys, fingerprint=wanted)


FIRST = [
    b"GET / HTTP/1.1\r\n\r\n",
    b"WEFTNET2" + struct.pack("<I", 2) + b"{}",
    b"WEFTNET1" + struct.pack("<I", 1 << 30),
    b"WEFTNET1" + struct.pack("<I", 2) + b"{}",
    b"WEFTNET1" + struct.pack("<I", 2) + b"[]",
    b"WEFTNET1" + struct.pack("<I", 4) + b"\xff\xff\xff\xff",
    b"WEFTNET1" + struct.pack("<I", 12) + b'{"host": 17}',
    b"WEFTNET1" + struct.pack("<I", 100) + b"{",
]


def _size(first: bytes) -> int:
    length = struct.unpack("<I", first[8:12])[0]
    return 12 + length if length <= 4096 else 0


def _answer_to(door: net.Door, keys: Path, first: bytes) -> Any:
    """Returns the answer of the door to the bytes `first`; None if there was no answer."""
    with _raw(door) as raw, _tls(keys).wrap_socket(raw) as tls:
        tls.sendall(first)
        if len(first) < 12 or (first[:8] == b"WEFTNET1" and _size(first) > len(first)):
            with socket.socket(fileno=os.dup(tls.fileno())) as below:
                below.shutdown(socket.SHUT_WR)  # no more bytes will be sent
        try:
            received = b""
            while part := tls.recv(4096):
                received += part
        except OSError:
            return None
    return json.loads(received[12:]) if received else None


@pytest.mark.parametrize("first", FIRST)
def test_rubbish_first(keys, program, first):  # wire 17.2
    """Rubbish is refused, and the next program that connects gets a session."""
    with net.listen(keys=keys) as door:
        answer = _answer_to(door, keys, first)
        assert (
            answer is None
            or "first message" in answer["refused"]
            or "not a Weft" in answer["refused"]
        )
        program("echoes", door.address, keys)
        with door.next() as session:
            assert echoed(session, [1]) == [1]


def test_a_silent_program_holds_up_no_other(keys, program):  # wire 17.2
    with (
        net.listen(keys=keys) as door,
        _raw(door) as dumb,
        _raw(door) as raw,
        _tls(keys).wrap_socket(raw) as silent,
    ):
        program("echoes", door.address, keys)
        with door.next() as session:
            assert echoed(session, ["meanwhile"]) == ["meanwhile"]
        assert silent.fileno() >= 0 and dumb.fileno() >= 0


def test_random_bytes_first(keys):  # wire 17.2
    seed = int(os.environ.get("WEFT_SEED", random.randrange(1 << 30)))
    print("seed", seed)
    random.seed(seed)
    good = _first.packed({"host": "x", "name": "y", "ticket": "z"})
    with net.listen(keys=keys) as door:
        for _ in range(20):
            spoilt = bytearray(good)
            for _ in range(random.randrange(1, 6)):
                spoilt[random.randrange(len(spoilt))] = random.randrange(256)
            answer = _answer_to(door, keys, bytes(spoilt[: random.randrange(1, len(spoilt) + 1)]))
            assert answer is None or "refused" in answer or answer["trust"] is False
    # Even the programs whose first message was accepted have no session, because the door has
    # closed the sessions that were never used.


def test_a_name_at_a_door_for_sessions(keys):
    with net.listen(keys=keys) as door:
        answer = _answer_to(door, keys, _first.packed({"host": "x", "name": "lab"}))
        assert "no channel 'lab' is offered here" in answer["refused"]


# --- bad use --------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["", "here", ":1", "h:", "h:x", "h:65536", "h:-1", 7, None])
def test_no_address(keys, address):
    for call in (net.listen, net.connect):
        with pytest.raises(BadUse, match="an address must be 'HOST:PORT'"):
            call(address, keys=keys)


def test_no_keys(tmp_path, monkeypatch):
    monkeypatch.setenv("WEFT_NET", str(tmp_path))
    for call in (net.listen, lambda: net.connect("127.0.0.1:1")):
        with pytest.raises(BadUse, match=r"no keys in .*weft net up"):
            call()


def test_nobody_there(keys, refusing):
    with pytest.raises(ConnectionRefusedError):
        net.connect(refusing, keys=keys)


def test_the_port_is_taken(keys):
    with net.listen(keys=keys) as door, pytest.raises(OSError, match="address already in use"):
        net.listen(door.address, keys=keys)


def test_a_program_that_comes_to_its_own_door(keys):  # wire 17.2
    with (
        net.listen(keys=keys) as door,
        pytest.raises(
            BadUse, match="refuses: this is the program itself, and a session joins two programs"
        ),
    ):
        net.connect(door.address, keys=keys)


def test_a_door_that_is_closed(keys):
    door = net.listen(keys=keys)
    door.close()
    door.close()
    for _ in range(2):
        with pytest.raises(BadUse, match="closed"):
            door.next()


@pytest.mark.parametrize("name", ["", "x" * 61, "a\nb", 7])
def test_no_name_of_a_program(keys, name):
    with pytest.raises(BadUse, match="1 to 60 characters"):
        net.listen(keys=keys, name=name)


def test_no_name_of_an_end(keys, program):
    with net.listen(keys=keys) as door:
        program("takes_what_never_comes", door.address, keys)
        with door.next() as session:
            for name in ("", "a b", "x" * 61):
                with pytest.raises(BadUse, match="1 to 60 bytes and no space"):
                    session.give(name, th.Channel().reader())


def test_in_the_child_of_a_fork(keys):
    """The door belongs to the parent: using the door in the child is bad use, and closing it there
    does nothing.
    """
    door = net.listen(keys=keys)
    pid = os.fork()
    if not pid:
        status = 1
        try:
            door.close()
            with net.listen(keys=keys) as own:
                status = 0 if own.address != door.address else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert _answer_to(door, keys, _first.packed({"host": "x", "name": "y"}))["refused"]
    door.close()

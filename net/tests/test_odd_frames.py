"""Tests that a member that sends odd data anywhere receives a readable error or is disconnected,
and that no other program is affected (wire 14.2, 17.2, 17.3, 17.9, 17.18). Tested are first
messages to homes and agents, entries in the bucket, requests by the relay, answers of agents, calls
and their results, and files of keys.
"""

from __future__ import annotations

import json
import logging
from typing import Any

import far_parts as parts
import pytest
from attackers import FalseAgent
from click.testing import CliRunner
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from odd import TEXTS, drawn, packed, says, with_odd_fields

from weft import net
from weft import threads as th
from weft._commands import main as _commands_main
from weft._net import calls as _net_calls
from weft._net import entries as _net_entries
from weft._net import foreign_json as _foreign_json
from weft._net import host_executor as _net_executor
from weft._net import keys as _net_keys
from weft._net import link as _net_link
from weft._net import names as _net_names
from weft._net import remote_hosts as _net_hosts
from weft.errors import BadUse, ProcessDied, WeftError
from weft.processes import Executor, run


@pytest.fixture(autouse=True)
def no_traceback(caplog: Any) -> Any:
    """Checks that no exception was raised on the loop unnoticed."""
    caplog.set_level(logging.ERROR, logger="asyncio")
    yield
    assert [r.getMessage() for r in caplog.records if r.name == "asyncio"] == []


# --- first messages -------------------------------------------------------------------------------


def test_to_a_home(server, keys, network):  # wire 17.2, 17.4
    network.offer("c", th.Channel("c"), writers=True)
    tls = _net_keys.context(keys, server=False)
    good = {"host": "h", "trust": False, "name": "c", "side": "writer", "ticket": "0" * 32}
    for text in [*TEXTS, *drawn(15, with_odd_fields(good))]:
        answer = says(tls, network.address, packed(text))
        assert answer is not None and isinstance(answer["refused"], str), text
        assert answer["refused"].isprintable(), text
    for raw in (b"", b"GET / HTTP/1.0\r\n\r\n", b"WEFTNET1\xff\xff\xff\xff", b"WEFTNET1\1\0\0\0"):
        says(tls, network.address, raw + b"\0" * 20)
    network.withdraw("c")


def test_to_a_door(keys):  # wire 17.2
    """A door has no names, and accepts a session with any program that gives its own name."""
    tls = _net_keys.context(keys, server=False)
    with net.listen(keys=keys) as door:
        good = {"host": "h", "trust": False, "name": None}
        for text in [*TEXTS, *drawn(6, with_odd_fields(good))]:
            answer = says(tls, door.address, packed(text))
            assert answer is not None and answer["host"].isprintable(), text


def test_to_an_agent(gpu1, keys, caller):  # wire 17.9, 17.12
    """A client with a pass also sends odd messages. The agent's OS processes continue, and the
    agent prints nothing (conftest.py).
    """
    pid = run(parts.pid.on(caller.host("gpu1"))())
    entry, shown = caller._meeting._passes["gpu1"]
    tls = _net_keys.context(keys, server=False)
    asked = _net_calls.asked_of(parts.pid)
    good = {"host": "h", "trust": False, "name": "host=gpu1", "pass": shown, **asked.request()}
    odd = [*with_odd_fields(good, "host", "trust", "python", "weft")]
    odd += with_odd_fields({**good, "fate": "0"}, *good)
    odd += with_odd_fields({**good, "where": "0"}, *good)
    # The messages above contain the agent's digest. Each message with a different digest starts new
    # OS processes.
    other = {**good, "digest": asked.digest + "x"}
    for text in [*TEXTS, json.dumps(other).encode(), *drawn(25, odd)]:
        answer = says(tls, entry["address"], packed(text))
        assert answer is not None, text
        refused = answer.get("refused")
        assert (
            isinstance(refused, str)
            if refused is not None
            else {"fate", "where", "pid"} & set(answer)
        )
    both = {run(parts.pid.on(caller.host("gpu1"))()) for _ in range(4)} | {pid}
    assert both <= set(gpu1.report["pids"])


def test_what_is_taken_as_json():  # wire 17.2
    good = {"a": [1, -2.5, {"b": None}], "c": "ä\U0001f600"}
    assert _foreign_json.parsed(json.dumps(good).encode()) == good
    assert _foreign_json.parsed(b"[" * 16 + b"]" * 16) is not None
    for odd, why in (
        (b"[" * 17 + b"]" * 17, "deeper than 16"),
        (b'{"a":' * 17 + b"1" + b"}" * 17, "deeper than 16"),
        (b'"' + b"x" * 4095 + b'"', "more than 4096"),
        (b'"\\udfff"', "surrogates"),
        (b"[NaN]", "NaN is not a number"),
        (b"1e999", "JSON compliant"),
        (b"9" * 4000, "JSON compliant"),
    ):
        with pytest.raises(ValueError, match=why):
            _foreign_json.parsed(odd)
    assert _foreign_json.parsed(b'"[[[[[[[[[[[[[[[[[[\\"[["') == '[[[[[[[[[[[[[[[[[["[['
    assert _foreign_json.shown("a\x1b[2J\nb\u202e", 99) == "a?[2J b?"


# --- entries --------------------------------------------------------------------------------------


ADDRESSES = ["", ":", "x", "x:", "[::1", "127.0.0.1:99999", "127.0.0.1:-1", "127.0.0.1:" + "9" * 5000,
             "a\0b:1", "ä" * 100 + ":1", "." * 300 + ":1", "x\n\x1b[2J:1"]  # fmt: skip
HOSTS = [0, -1, True, 1e300, 10**25, 10_001, "8", None, []]


def test_entries_of_channels(network, never_away):  # wire 17.3
    good = {"address": "127.0.0.1:1", "fingerprint": "0" * 64, "home": "0" * 16, "host": "h"}
    good |= {"readers": True, "relay": False, "relayed": 0, "ticket": "0" * 32, "writers": True}
    all_ = [*TEXTS, *drawn(12, with_odd_fields(good)), b" " * 100_000]
    all_ += [json.dumps({**good, "address": a}).encode() for a in ADDRESSES]
    all_ += [json.dumps({**good, "relay": True, "home": h}).encode() for h in ("", "x", "0" * 16)]
    for i, entry in enumerate(all_):
        name = f"odd/{i}"
        put(network, name, entry)
        with pytest.raises((BadUse, ConnectionError)) as refused:
            network.writer(name, patience=0.01)
        assert all(c.isprintable() for c in str(refused.value)), entry
        with pytest.raises(BadUse, match="is taken"):
            network.offer(name, th.Channel(), writers=True)
    listed = network.names()
    assert all(n.host.isprintable() and n.address.isprintable() for n in listed)
    assert len(listed) >= len(ADDRESSES)


def test_entries_of_hosts(server, keys, network):  # wire 17.9
    good = {"address": "127.0.0.1:1", "fingerprint": "0" * 64, "home": "0" * 16, "host": "h"}
    good |= {"readers": False, "relay": False, "ticket": "0" * 32, "writers": False}
    host = {**good, "allow": ["far_parts:pid"], "hosts": 1, "trust": False}
    all_ = [*TEXTS, *drawn(10, with_odd_fields(host, *good)), b" " * 100_000]
    all_ += [json.dumps({**host, "hosts": n}).encode() for n in HOSTS]
    all_ += [json.dumps({**host, "allow": a}).encode() for a in ("far_parts:pid", [[1]], ["\x1b"])]
    for i, entry in enumerate(all_):
        put(network, f"host=odd{i}", entry)
    put(network, "odd>name", json.dumps(host).encode(), checked=False)
    found = network._call(network._meeting.hosts())
    assert all(0 < h.hosts <= _net_entries.MAX_HOSTS and isinstance(h.allow, list) for h in found)
    assert all(run.isprintable() for h in found for run in h.allow) and len(found) < len(all_)
    pool = network.hosts(patience=0.1)
    assert 0 < pool._processes() <= len(found) * _net_entries.MAX_HOSTS
    with pytest.raises((BadUse, ConnectionError)):
        run(parts.pid.on(pool)())
    listing = ["ls", "--server", server.url, "--keys", str(keys)]
    listed = CliRunner().invoke(_commands_main.net_group, listing)
    assert listed.exit_code == 0 and len(listed.output.splitlines()) >= len(found)
    assert all(line.isprintable() for line in listed.output.splitlines())


def put(network: net.Network, name: str, entry: bytes, checked: bool = True) -> None:
    async def write() -> None:
        js = network._meeting._nats.jetstream()
        await js.publish(f"$KV.{_net_names.BUCKET}.{name if checked else 'odd_name.$x'}", entry)

    network._call(write())


def test_an_agent_that_would_run_too_much(network):  # wire 17.3
    from weft._net import agent as _net_agent

    allow = [f"module{i}:{'f' * 100}" for i in range(1000)]
    with pytest.raises(BadUse, match="has more than 60000 bytes: allow fewer functions"):
        _net_agent.Agent(network, "much", allow, 1)


# --- the relay ------------------------------------------------------------------------------------


def test_a_program_that_asks_by_the_relay(network):  # wire 17.18
    place = network._meeting._relay._place
    good = {"session": "0" * 32, "from": f"{'0' * 64}.{'0' * 16}"}
    client = network._meeting._nats

    async def ask(text: bytes) -> Any:
        return json.loads((await client.request(f"weft.relay.{place}.meet", text, timeout=60)).data)

    for text in [*TEXTS, *drawn(20, with_odd_fields(good)), b"x" * 10_000]:
        answer = network._call(ask(text))
        assert answer == {
            "refused": "the request does not say its session and where it comes from"
        }, text

    async def says_rubbish() -> None:
        for session in ("x", "0" * 32, "meet", "ä"):
            for text in TEXTS:
                await client.publish(f"weft.relay.{place}.{session}", text)
        await client.flush()

    network._call(says_rubbish())
    assert network._call(ask(b"{}"))["refused"]


ANSWERS = [
    *TEXTS,
    b'{"refused": null}',
    b'{"refused": "\\u001b[2J"}',
    b'{"refused": {"a": []}}',
    b'{"a": 1}',
]


def test_what_is_answered_by_the_relay(network):  # wire 17.18
    """A program answers a request for a session oddly. Each answer is reported as a refusal."""
    client = network._meeting._nats
    place = f"{'1' * 64}.{'1' * 16}"
    answers = iter(ANSWERS)

    async def open_each() -> None:
        async def answer(message: Any) -> None:
            await message.respond(next(answers))

        await client.subscribe(f"weft.relay.{place}.meet", cb=answer)
        for text in ANSWERS:
            if text == b"{}":  # {} agrees to the session
                next(answers)
                continue
            with pytest.raises(ConnectionRefusedError) as refused:
                await network._meeting._relay.open(place, network._meeting._client_tls)
            assert str(refused.value).isprintable(), text

    network._call(open_each())


# --- answers of agents, and calls -----------------------------------------------------------------


ODD = [
    None,
    0,
    -1,
    1e300,
    10**25,
    "",
    "x" * 500,
    "a\x1b",
    [],
    {},
    [[1]],
    {"a": [1]},
    True,
    "\ud800",
]


def test_what_an_agent_answers(server, keys_of, network, apart):  # wire 17.9, 17.12
    """A member that may be a host answers oddly, and only the call is lost."""
    fields: dict[str, Any] = {}

    class Odd(FalseAgent):
        async def welcome(self, request: Any) -> Any:
            if "fate" in request:
                more = {"fate": fields["fate"]}
                return _net_link.Welcome("o", False, lambda _: None, lambda: None, more, hangs_up)
            more = {k: fields[k] for k in ("pid", "call", "pass")}
            return _net_link.Welcome("o", False, lambda _: None, lambda: None, more, None)

    async def hangs_up(streams: Any) -> None:
        await _net_link.close_writer(streams[1])

    with net.join(server.url, keys=keys_of("odd"), name="odd") as other:
        agent = Odd(["far_parts:pid"], 1, False)
        other._call(other._meeting.offer("host=odd", None, False, False, agent))
        for i, odd in enumerate(ODD):
            fate = {"pid": odd, "returncode": odd, "stack": odd, "memory": odd, "stderr": odd}
            fields.update({"pid": odd, "call": odd, "pass": odd, "fate": fate if i % 2 else odd})
            # The session is with this program itself, which ends the session, so the call fails.
            with pytest.raises((ProcessDied, BadUse)) as died:
                run(parts.pid.on(network.host("odd"))())
            assert isinstance(died.value, WeftError)
            network._meeting._passes.clear()


ORDERS = [None, 5, "x", [], [1], [[], {}], [[], {}, 5], [5, {}, []], [[], 5, []], [[], {}, [[]]],
          [[], {}, [[5, "a"]]], [[], {}, [[[], 5, 5]]], [[], {}, [[["a", "b", 0], "x"]]], {"a": 1}]  # fmt: skip


def test_what_a_caller_orders(caller, gpu1, monkeypatch):  # wire 17.10
    """The call fails, and its OS process takes the next call."""
    host = caller.host("gpu1")
    for odd in ORDERS:
        with monkeypatch.context() as patch:
            patch.setattr(_net_calls, "packed", lambda *_, odd=odd: odd)
            with pytest.raises(BadUse, match="the arguments of a call are malformed"):
                run(parts.pid.on(host)())
    assert run(parts.pid.on(host)()) in gpu1.report["pids"]


LISTS = [
    None,
    5,
    "x",
    {"a": 1},
    [5],
    [[]],
    [[1]],
    [[[], {}, 1]],
    [[5, 5]],
    [[[1, 2], {"c": 1}]],
    ["ab"],
]


def test_what_an_executor_orders(caller, gpu1, monkeypatch):  # wire 17.14
    host = caller.host("gpu1")
    for odd in LISTS:
        with monkeypatch.context() as patch:

            def writes(line: Any, _: Any, odd: Any = odd) -> None:
                line.told.write(odd)

            patch.setattr(_net_executor._Line, "_write", writes)
            with Executor(on=host, max_workers=1) as pool:
                error = pool.submit(parts.plus, 1, 1).exception()
            assert isinstance(error, (TypeError, ValueError, RuntimeError, BadUse)), odd
    with Executor(on=host, max_workers=1) as pool:
        assert pool.submit(parts.plus, 1, 1).result() == 2


@pytest.mark.parametrize(
    "received", [None, 5, "ab", [], [1], [1, 2], [1, "x"], [1, None, None], {"a": 1, "b": 2}]
)
def test_a_result_that_is_none(received):  # wire 17.10
    asked = _net_calls.asked_of(parts.pid)
    with pytest.raises(
        BadUse, match="host gpu1 sent something that is not a result of far_parts:pid"
    ):
        _net_hosts._result_of(received, "gpu1", asked)
    assert _net_hosts._result_of([1, None], "gpu1", asked) == [1, None]


# --- files of keys --------------------------------------------------------------------------------


def test_files_of_keys(keys, tmp_path):
    files = ["authority.pem", "certificate.pem", "key.pem"]
    pem = (keys / "certificate.pem").read_bytes()
    rubbish = [
        b"",
        b"\xff" * 100,
        b"\0" * 5000,
        pem[:-40],
        pem.replace(b"A", b"B"),
        b"-----BEGIN CERTIFICATE-----\n" * 50,
    ]
    for file in files:
        for i, content in enumerate(rubbish):
            folder = tmp_path / f"{file}{i}"
            folder.mkdir()
            for each in files:
                (folder / each).write_bytes((keys / each).read_bytes())
            (folder / file).write_bytes(content)
            with pytest.raises(BadUse, match=rf"no keys in {folder}|the certificate in {folder}"):
                net.listen(keys=folder)
    for content in (*rubbish[1:3], b"x" * 100_000):
        (tmp_path / "server").write_bytes(content)
        try:
            assert len(_net_keys.server_of(tmp_path)) <= 300
        except BadUse as error:
            assert "no server is noted" in str(error)


def test_an_authority_that_cannot_sign(keys, tmp_path):
    key = serialization.load_pem_private_key((keys / "authority-key.pem").read_bytes(), None)
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    none = serialization.NoEncryption()
    locked = key.private_bytes(pem, pkcs8, serialization.BestAvailableEncryption(b"x"))
    other = rsa.generate_private_key(65537, 2048).private_bytes(pem, pkcs8, none)
    (tmp_path / "authority.pem").write_bytes((keys / "authority.pem").read_bytes())
    for content in (b"", b"\xff" * 100, locked, other):
        (tmp_path / "authority-key.pem").write_bytes(content)
        with pytest.raises(BadUse, match="has no authority to sign with"):
            net.make_keys(tmp_path / "made", by=tmp_path)
    assert not (tmp_path / "made").exists()

"""Hosts on other machines: agents (`weft host`) and callers (WIRE-NETWORKS.md 17.9 to 17.12)."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import far_parts as parts
import pytest
from conftest import gone
from points import Point

from weft import coroutines as co
from weft import net
from weft import processes as ps
from weft import threads as th
from weft._hosts import sources as _sources
from weft._net import agent as _net_agent
from weft._net import calls as _net_calls
from weft._net import link as _net_link
from weft._net import loop as _net_loop
from weft._watching import trace as _trace
from weft.errors import BadUse, Cancelled, NoResult, PeerDied, Poisoned, ProcessDied, Retired
from weft.observe import measuring, tracing

HERE = Path(__file__).resolve().parent
pytestmark = pytest.mark.usefixtures("never_away")


# --- results -------------------------------------------------------------------------------------


def test_results_come_back(gpu1, caller):  # wire 17.9, 17.10
    host = caller.host("gpu1")
    assert th.run(parts.add.on(host)(1, 2, more=4)) == 7
    assert th.run(parts.add(b"a", b"b", more=b"c").on(host)) == b"abc"
    assert th.run(parts.add.on("gpu1")([1, (2,)], [{"k": None}], more=[])) == [1, (2,), {"k": None}]
    pids = th.run(*(parts.pid.on(host)() for _ in range(4)))
    assert set(pids) <= set(gpu1.report["pids"]) and os.getpid() not in pids
    assert repr(host) == f"<host 'gpu1' of {caller!r}>"


def test_ends_go_over(gpu1, caller):  # wire 17.10
    """A call receives ends, including ends in lists and dicts. The caller is the home of all these
    ends."""

    @th.process
    def drives(out: Any, back: Any) -> list[int]:
        got = []
        for i in range(20):
            out.write(i)
            got.append(back.read())
        return got

    for there in (parts.doubles, parts.doubles_awaited):
        values, back = th.Channel("values"), th.Channel("back")
        got = th.run(
            drives(values.writer(), back.reader()),
            there.on("gpu1")(values.reader(), back.writer()),
        )
        assert got == [[2 * i for i in range(20)], "done"]

    @th.process
    def writes(out: Any) -> None:
        for i in range(5):
            out.write(i)

    channels = [th.Channel() for _ in range(3)]
    ends = {"readers": [c.reader() for c in channels]}
    assert th.run(parts.sums.on("gpu1")(ends), [writes(c.writer()) for c in channels])[0] == 30


def test_a_trace_says_that_it_was_there_and_no_more(gpu1, caller, tmp_path):  # rule 14.7
    """Processes on another machine are not observed, and the trace and `weft trace` state this."""
    file = tmp_path / "t.jsonl"
    values, back = th.Channel("values"), th.Channel("back")

    @th.process
    def drives(out: Any, inp: Any) -> int:
        out.write(4)
        return inp.read()

    with tracing(file), measuring() as m:
        got = th.run(
            drives(values.writer(), back.reader()),
            parts.doubles.on("gpu1")(values.reader(), back.writer()),
        )
    assert got == [8, "done"]
    events, _ = _trace.read(file)
    mine = [(e["e"], e.get("in")) for e in events if e["p"] == "main/doubles"]
    assert mine == [("start", None), ("away", "host gpu1"), ("end", None)]
    assert {e["c"] for e in events if "c" in e} == {"values", "back"}
    assert {row.name: row.transfers for row in m.rows()} == {"values": 1, "back": 1}
    assert _trace.summarise(events).unseen == ["host gpu1"]
    results = subprocess.run(
        [sys.executable, "-m", "weft.cli", "trace", file],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "host gpu1 ran processes: what they did there is not in this trace" in results.stdout


def test_in_coroutines(gpu1, caller):

    @co.process
    async def writes(out: Any) -> None:
        for i in range(10):
            await out.write(i)

    @co.process
    async def reads(back: Any) -> list[int]:
        return [v async for v in back]

    values, back = co.Channel("values"), co.Channel("back")
    got = co.run(
        writes(values.writer()),
        parts.doubles_awaited.on("gpu1")(values.reader(), back.writer()),
        reads(back.reader()),
    )
    assert got[1:] == ["done", [2 * i for i in range(10)]]


@pytest.mark.parametrize(
    ("how", "kind", "args"),
    [
        ("value", ValueError, ("told so",)),
        ("key", KeyError, ("told so",)),
        ("odd", parts.Odd, ("odd", 3)),
        ("system", UnicodeDecodeError, ("utf-8", b"x", 0, 1, "no")),
    ],
)
def test_exceptions_come_back(gpu1, caller, how, kind, args):  # wire 17.11
    with pytest.raises(kind) as raised:
        th.run(parts.fails.on("gpu1")(how))
    assert type(raised.value) is kind and raised.value.args == args
    text = str(raised.value.__cause__)
    assert "in another OS process:\nTraceback" in text and "in fails\n" in text


def test_poison_comes_over(gpu1, caller):  # wire 17.11
    c = th.Channel()
    w = c.writer()

    @th.process
    def writes(out: Any) -> str:
        try:
            while True:
                out.write(1)
        except Poisoned:
            return "poisoned"

    assert th.run(writes(w), parts.poisons.on("gpu1")(c.reader()))[0] == "poisoned"


@th.process
def beside() -> str:
    return "beside"


def ends_of_a_process(host: Any) -> None:
    """An end that no operation met is a failure, and a poison spreads. An end that an operation met
    is quiet, and the report names the place.
    """
    kinds = {"made": Retired, "own": parts.RetiredSubclass, "asks": Retired, "poison": Poisoned}
    for how, kind in kinds.items():
        c = th.Channel("c")
        r = c.reader()
        with pytest.raises(kind) as raised:
            th.run(parts.left_by.on(host)(how, c.writer()), beside())
        assert type(raised.value) is kind and raised.value.met is False
        with pytest.raises(Poisoned if kind is Poisoned else Retired):
            r.read()
    source = Path(parts.__file__).read_text(encoding="utf-8").splitlines()
    for how in ("retired", "poisoned", "cancelled"):
        n, _ = th.run(parts.left_by.on(host)(how), beside())
        assert isinstance(n, NoResult) and not n
        assert (n.process, n.how) == ("main/left_by", how)
        file, _, line = n.where.partition(":")
        assert file == "far_parts.py"
        stands = source[int(line) - 1].strip()
        assert stands == ("raise ps.Cancelled" if how == "cancelled" else "r.read()")


def test_how_a_process_ended_comes_over(gpu1, caller):  # rules 3.5, 4.3, 7.1, wire 17.11
    ends_of_a_process("gpu1")
    says = "a NoResult.*process .*left_by_here gave no result.* cannot go to a program on another"
    with pytest.raises(BadUse, match=says):
        th.run(parts.one_without_a_result.on("gpu1")())


def test_how_one_ended_where_both_trust(agent, server, keys):  # rules 3.5, 4.3, 7.1
    agent("gpu1", "--trust")
    with net.join(server.url, keys=keys, trust=True) as network:
        ends_of_a_process(network.host("gpu1"))
        (n,) = th.run(parts.one_without_a_result.on(network.host("gpu1"))())
        assert isinstance(n, NoResult) and n.how == "retired" and "far_parts.py" in repr(n)


# Whatever fields an agent sends, the caller makes a RuntimeError of them, and calls nothing else.
@pytest.mark.parametrize(
    ("module", "kind", "args"),
    [
        ("os", "system", ["true"]),
        ("builtins", "print", ["x"]),
        ("builtins", "SystemExit", [3]),
        ("builtins", "KeyboardInterrupt", []),
        ("subprocess", "CalledProcessError", [1, "x"]),
        ("builtins", "UnicodeDecodeError", ["too", "few"]),
        ("far_parts", "Point", [1, 2]),
        ("far_parts", "add", [1, 2]),
        (None, None, None),
    ],
)
def test_a_failure_makes_exceptions_only(module, kind, args):  # wire 17.11
    asked = _net_calls.asked_of(parts.not_decorated)
    failure = {"module": module, "type": kind, "args": args, "brief": "b", "text": "t"}
    error = _net_calls.exception_of(failure, asked)
    assert type(error) is RuntimeError and str(error) == "b"


# --- arguments -----------------------------------------------------------------------------------


def test_plain_values_only(gpu1, caller):  # wire 17.10
    with pytest.raises(BadUse, match=r"a Point cannot go to a program on another"):
        th.run(parts.x_of.on("gpu1")(Point(3, 4)))
    with pytest.raises(BadUse, match=r"a Point cannot go to a program on another"):
        th.run(parts.gives_an_object.on("gpu1")())
    with pytest.raises(BadUse, match=r"itself cannot go to another machine: give it an end"):
        th.run(parts.x_of.on("gpu1")(th.Channel()))


@pytest.mark.parametrize("there", [True, False])
def test_pickles_where_both_trust(agent, server, keys, there):  # wire 17.6, 17.10
    agent("gpu1", *["--trust"][: int(there)])
    with net.join(server.url, keys=keys, trust=True) as network:
        host = network.host("gpu1")
        if not there:
            with pytest.raises(BadUse, match="a Point cannot go"):
                th.run(parts.x_of.on(host)(Point(3, 4)))
            return
        assert th.run(parts.x_of.on(host)(Point(3, 4))) == 3
        point = th.run(parts.gives_an_object.on(host)())
        assert type(point) is Point and point.y == 2
        with pytest.raises(parts.Odd) as raised:
            th.run(parts.fails.on(host)("odd"))
        assert "in fails\n" in str(raised.value.__cause__)
        with pytest.raises(BadUse, match="not_allowed is not allowed on host gpu1"):
            th.run(parts.not_allowed.on(host)())


# --- refused --------------------------------------------------------------------------------------


def test_what_is_not_allowed(agent, network):  # wire 17.9
    agent("gpu1", "--allow", "far_parts:add", "--allow", "far_parts:pid")
    with pytest.raises(
        BadUse,
        match=r"far_parts:not_allowed is not allowed on host gpu1, which runs far_parts:add, "
        r"far_parts:pid: start its agent with --allow",
    ):
        th.run(parts.not_allowed.on("gpu1")())
    assert th.run(parts.add.on("gpu1")(1, 1)) == 2


def test_another_source_is_refused(agent, network, tmp_path):  # wire 17.9
    """The refusal names both digests and versions. Once both have the same source, the call runs,
    in OS processes that have this source.
    """
    shutil.copy(HERE / "points.py", tmp_path)
    more = f"with open({str(tmp_path / 'by')!r}, 'a') as by:\n    print(os.getpid(), file=by)\n"
    (tmp_path / "far_parts.py").write_text((HERE / "far_parts.py").read_text() + more)
    pids = agent("gpu1", "--hosts", "1", folder=tmp_path).report["pids"]
    # Only the hosts imported the module, not the agent.
    assert (tmp_path / "by").read_text().split() == [str(pid) for pid in pids]
    with pytest.raises(BadUse) as raised:
        th.run(parts.add.on("gpu1")(1, 2))
    there = _sources.digest_of(tmp_path / "far_parts.py")[:16]
    here = _sources.digest_of(HERE / "far_parts.py")[:16]
    python = sys.version.split()[0]
    assert f"SHA-256 {there}…" in str(raised.value) and f"{here}… here" in str(raised.value)
    assert f"(Python {python} and Weft" in str(raised.value)
    assert "Bring the same source to both machines" in str(raised.value)
    shutil.copy(HERE / "far_parts.py", tmp_path)
    assert th.run(parts.add.on("gpu1")(1, 2)) == 3


def test_changed_on_both_sides(agent, network, tmp_path, monkeypatch):
    """An OS process that has imported an older source does not run calls for a caller that has a
    newer source.
    """
    module = tmp_path / "changes.py"
    module.write_text("def answer():\n    return 1\n")
    agent("gpu1", "--hosts", "1", "--allow", "changes:answer", folder=tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    import changes

    assert th.run(ps.process(changes.answer).on("gpu1")()) == 1
    module.write_text("def answer():\n    return 22\n")
    assert th.run(ps.process(changes.answer).on("gpu1")()) == 22
    module.unlink()
    with pytest.raises(OSError, match=r"changes\.py"):  # the file is no longer on this machine
        th.run(ps.process(changes.answer).on("gpu1")())


def test_a_module_that_is_not_there(agent, network, tmp_path):  # wire 17.9
    for name in ("points.py", "far_parts.py"):
        shutil.copy(HERE / name, tmp_path)
    agent(folder=tmp_path)
    (tmp_path / "far_parts.py").unlink()
    with pytest.raises(BadUse, match=r"there is no module 'far_parts' on gpu1, or none in Python"):
        th.run(parts.add.on("gpu1")(1, 2))


def test_functions_that_nobody_finds(network):
    @ps.process
    def local() -> None: ...

    for function in (local, ps.process(lambda: 3)):
        with pytest.raises(BadUse, match="cannot run on another machine, which finds a function"):
            th.run(function.on(network.host("gpu1"))())
    with pytest.raises(BadUse, match="has no source in Python"):
        _net_calls.asked_of(len)


@pytest.mark.parametrize("run", ["", "x", "x:", ":y", "x:y z", "x:y:z", "a" * 200 + ":b", 3])
def test_what_is_nothing_to_allow(agent, run):
    with pytest.raises(BadUse, match="MODULE:FUNCTION"):
        _net_calls.parted_run(run)


def test_agents_that_do_not_begin(agent, server):
    assert "MODULE:FUNCTION, as" in agent("gpu1", "--allow", "nonsense").refused
    assert "a name must be 1 to 60 letters" in agent("a b").refused
    agent("gpu1")
    assert re.search(r"'host=gpu1' is taken by gpu1 at", agent("gpu1").refused)
    one = subprocess.run(
        [sys.executable, "-m", "weft.cli", "host", "--keys", "/nowhere", "--allow", "a:b"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert one.returncode == 2 and "`weft net up`" in one.stderr


def test_what_is_allowed_is_looked_at_when_the_agent_begins(agent, tmp_path):  # wire 17.9
    (tmp_path / "broken.py").write_text("import no_such_module\n")
    (tmp_path / "ends.py").write_text("raise SystemExit('too early')\n")
    (tmp_path / "fine.py").write_text("print('{}')\nNUMBER = 42\n\n\ndef f(): ...\n")
    names = ("nosuch:f", "broken:f", "ends:f", "fine:g", "fine:NUMBER", "fine:f")
    allow = [word for name in names for word in ("--allow", name)]
    there = agent("gpu1", "--hosts", "1", *allow, folder=tmp_path)
    assert there.process.wait() == 2
    for wrong in (
        f"nosuch:f (there is no module 'nosuch', or none in Python, in {tmp_path})",
        "broken:f (ModuleNotFoundError: No module named 'no_such_module')",
        "ends:f (SystemExit: too early)",
        "fine:g (AttributeError: module 'fine' has no attribute 'g')",
        "fine:NUMBER (it is not a function)",
    ):
        assert wrong in there.refused
    assert "fine:f" not in there.refused
    assert (
        agent("gpu1", "--hosts", "1", "--allow", "fine:f", folder=tmp_path).report["host"] == "gpu1"
    )


def test_an_allowed_module_that_kills_its_process(agent, tmp_path):  # wire 17.9
    (tmp_path / "kills.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    refused = agent("gpu1", "--hosts", "1", "--allow", "kills:f", folder=tmp_path).refused
    assert "the OS process that imported its modules has died" in refused and "SIGKILL" in refused


def test_what_killed_agents_leave_is_removed_by_the_next(agent, tmp_path, monkeypatch):
    """An agent removes the files of killed agents; files of running agents, and of other programs,
    remain."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    own = ("--hosts", "1", "--allow", "far_parts:pid")

    def folders() -> set[Path]:
        return set(tmp_path.glob("weft-*"))

    lives = agent("lives", *own)
    of_it = folders()
    killed = agent("killed", *own)
    left = folders() - of_it
    assert len(of_it) == len(left) == 1
    killed.kill()
    killed.ended()
    (tmp_path / "weft-agent-file").touch()
    (tmp_path / "weft-agent-link").symlink_to(tmp_path)
    others = {tmp_path / "weft-agent-file", tmp_path / "weft-agent-link"}
    assert folders() == of_it | left | others
    third = agent("third", *own)
    assert of_it | others < folders() and not left & folders()
    for one in (lives, third):
        one.process.terminate()
        one.ended()
    assert folders() == others


def test_a_host_that_is_not_there(network):
    with pytest.raises(BadUse, match=r"there was no host 'gpu7' within 0\.2 seconds: `weft host"):
        th.run(parts.add.on(network.host("gpu7", patience=0.2))(1, 2))
    with pytest.raises(BadUse, match="a name must be 1 to 60"):
        network.host("gpu 1")
    with pytest.raises(BadUse, match="patience must be a number of seconds"):
        network.host("gpu1", patience=-1)


def test_names_of_hosts_without_a_network(server, keys):
    with pytest.raises(BadUse, match=r"no such backend.*the name of a host of a network"):
        parts.add.on("gpu1")
    with net.join(server.url, keys=keys) as one, net.join(server.url, keys=keys):
        with pytest.raises(BadUse, match="has joined 2 networks; say of which"):
            parts.add.on("gpu1")
        host = one.host("gpu1")
    with pytest.raises(BadUse, match="has left the network: join again"):
        th.run(parts.add.on(host)(1, 2))


def test_a_pass_of_another_agent(gpu1, caller):  # wire 17.9
    """The host refuses the pass of another agent with `again`; then the caller takes a ticket."""
    host = caller.host("gpu1")
    assert th.run(parts.add.on(host)(1, 2)) == 3
    meeting = caller._meeting
    entry, _ = meeting._passes["gpu1"]
    request = {"host": "x", "trust": False, "name": "host=gpu1", "run": "far_parts:add"}
    for wrong in ("0" * 32, "", None, 7, "ü"):
        with pytest.raises(_net_link.StaleTicket, match="this pass belongs to another agent"):
            _net_loop.call(
                caller._loop,
                _net_link.reach(
                    meeting._client_tls,
                    entry["address"],
                    {**request, "pass": wrong},
                    entry["fingerprint"],
                ),
            )
    meeting._passes["gpu1"] = entry, "0" * 32
    assert th.run(parts.add.on(host)(2, 2)) == 4


def test_a_call_is_given_the_time_to_begin(gpu1, caller, monkeypatch):  # wire 17.9, 17.12
    """An agent may first have to start an OS process, and the caller waits longer than the agent
    needs for that. If the caller waits in vain, the error names what it has waited for, and the OS
    process is free for the next call.
    """
    assert _net_link.BEGINS > _net_agent.START and _net_link.GREETING > _net_agent.FATE
    host = caller.host("gpu1")
    assert th.run(parts.add.on(host)(1, 2)) == 3
    with monkeypatch.context() as patch:
        patch.setattr(_net_link, "BEGINS", 0.0)
        with pytest.raises(BadUse, match="has not begun far_parts:add within 0 seconds: it is sto"):
            th.run(parts.add.on(host)(1, 2))
    assert th.run(parts.add.on(host)(2, 2)) == 4


def test_without_keys_of_the_network(agent, server, strange_keys):
    agent()
    with pytest.raises(BadUse, match=r"the NATS server at .* cannot be used"):
        net.join(server.url, keys=strange_keys)


def test_the_server_is_lost(agent, server, network):  # wire 17.8
    """A host that the caller has met before continues to serve."""
    agent()
    assert th.run(parts.add.on("gpu1")(1, 2)) == 3
    server.stop(signal.SIGKILL)
    assert th.run(parts.add.on("gpu1")(3, 2)) == 5


# --- deaths ---------------------------------------------------------------------------------------


@th.process
def first_of(numbers: Any, then: Callable[[int], None] = lambda pid: None) -> str:
    then(numbers.read())
    try:
        while True:
            numbers.read()
    except PeerDied:
        return "peer died"


def test_a_host_that_dies(agent, network):  # wire 17.12
    agent("gpu1", "--hosts", "1")
    numbers = th.Channel("numbers")
    first = first_of(numbers.reader())
    with pytest.raises(ProcessDied) as raised:
        th.run(first, parts.dies.on("gpu1")(numbers.writer()))
    error = raised.value
    assert (error.host, error.process, error.signal) == ("gpu1", "dies", signal.SIGKILL)
    assert error.stderr == "last words"
    assert "on host 'gpu1' was ended by SIGKILL" in str(error)
    assert th.run(parts.add.on("gpu1")(1, 2)) == 3  # another OS process has been started


def test_an_agent_that_is_killed(agent, network):  # wire 17.12
    there = agent("gpu1", "--hosts", "1")
    numbers, reports = th.Channel("numbers"), th.Channel("said", capacity=1)
    keep = reports.reader()
    first = first_of(numbers.reader(), lambda pid: there.kill())
    with pytest.raises(ProcessDied) as raised:
        th.run(first, parts.writes_for_ever.on("gpu1")(numbers.writer(), reports.writer()))
    error = raised.value
    assert (error.host, error.signal, error.status) == ("gpu1", None, None)
    assert error.pid in there.report["pids"] and "is lost (its machine or its agent" in str(error)
    keep.retire()
    with pytest.raises(ConnectionError, match=r"the agent of host 'gpu1' does not answer at"):
        th.run(parts.add.on(network.host("gpu1"))(1, 2))
    while not gone(there.report["pids"][0]):  # the agent's OS processes end with the agent
        th.sleep(0.01)


def test_a_second_ctrl_c_gives_up_a_call_that_comes_to_no_operation(agent, server, keys, program):
    """Rule 6.7. The first Ctrl-C cancels the call, but the call never notices the cancellation."""
    agent("gpu1", "--hosts", "1")
    p = program("calls_what_never_ends", server.url, keys, "gpu1")
    assert p.next_report() == "first"
    p.process.send_signal(signal.SIGINT)
    assert p.next_report() == "cancelled"
    p.process.send_signal(signal.SIGINT)
    assert p.next_report() == "interrupted"
    assert p.ended() == 0


def test_an_agent_that_is_stopped(agent, network):
    there = agent("gpu1", "--hosts", "1")
    numbers, reports = th.Channel("numbers"), th.Channel("said", capacity=1)
    keep = reports.reader()
    first = first_of(numbers.reader(), lambda pid: there.process.send_signal(signal.SIGINT))
    with pytest.raises(ProcessDied):
        th.run(first, parts.writes_for_ever.on("gpu1")(numbers.writer(), reports.writer()))
    status, errors = there.ended()
    assert (status, "weft: host gpu1 is stopped, by Ctrl-C" in errors) == (130, True)
    assert all(map(gone, there.report["pids"])) and not network.names()
    keep.retire()


def test_what_the_caller_cancels(gpu1, caller):  # wire 17.10
    """The call is cancelled on the host: its `finally` runs, and its ends retire."""
    numbers, reports = th.Channel("numbers"), th.Channel("said")
    listens = reports.reader()

    @th.process
    def enough(numbers: Any) -> None:
        numbers.read()
        raise ValueError("enough")

    @th.process
    def outer() -> None:
        th.Parallel(
            enough(numbers.reader()),
            parts.writes_for_ever.on("gpu1")(numbers.writer(), reports.writer()),
        )

    @th.process
    def hears() -> str:
        return str(listens.read())

    @th.process
    def guarded() -> str:
        try:
            outer_failed = th.Parallel(outer())
        except ValueError as error:
            return str(error)
        return str(outer_failed)

    assert th.run(guarded(), hears()) == ["enough", "ended"]


def test_cancelled_before_the_host_is_there(network):
    """The cancelled process does not wait until the end of its patience."""

    @th.process
    def fails() -> None:
        raise ValueError("at once")

    with pytest.raises(ValueError, match="at once"):
        th.run(parts.add.on(network.host("gpu9", patience=1e5))(1, 2), fails())


def test_ctrl_c_of_the_caller(agent, server, keys, program):  # wire 17.10
    there = agent("gpu1", "--hosts", "1")
    p = program("calls_for_ever", server.url, keys)
    pid = p.next_report()
    assert pid in there.report["pids"]
    p.process.send_signal(signal.SIGINT)
    assert p.next_report() == ["ended", "KeyboardInterrupt"]
    assert p.ended() == 0
    with net.join(server.url, keys=keys) as network:  # the same OS process, now free
        assert th.run(parts.pid.on(network.host("gpu1"))()) == pid


@pytest.mark.soak
def test_a_killed_agent_is_started_again_at_once(agent, network):  # wire 17.3
    """The new agent takes the name, which the killed agent cannot withdraw."""
    first = agent("gpu1", "--hosts", "1")
    host = network.host("gpu1")
    assert th.run(parts.pid.on(host)()) in first.report["pids"]
    first.kill()
    first.ended()
    second = agent("gpu1", "--hosts", "1")
    assert th.run(parts.pid.on(host)()) in second.report["pids"]


def test_a_caller_that_is_killed(agent, server, keys, program):
    agent("gpu1", "--hosts", "1")
    p = program("calls_for_ever", server.url, keys)
    pid = p.next_report()
    p.kill()
    with net.join(server.url, keys=keys) as network:
        assert th.run(parts.pid.on(network.host("gpu1"))()) == pid


# --- what reports say of hosts


def test_hosts_are_listed(agent, server, keys):
    there = agent("gpu1", "--hosts", "2", "--allow", "far_parts:pid", "--trust")
    command = [sys.executable, "-m", "weft.cli", "net", "ls", "--server", server.url]
    command += ["--keys", str(keys)]
    for_people = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    address = there.report["address"]
    assert for_people == f"host gpu1: 2 OS processes at {address}, trusts, runs far_parts:pid\n"
    listed = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
    assert json.loads(listed.stdout) == [
        {
            "host": "gpu1",
            "address": address,
            "allow": ["far_parts:pid"],
            "hosts": 2,
            "trust": True,
            "relayed": 0,
        }
    ]


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        ({"module": "weft", "type": "BadUse"}, BadUse),
        ({"module": "weft", "type": "BadUse", "args": 7}, BadUse),
        ({"end": "Poisoned"}, Poisoned),
        ({"end": "Poisoned", "strength": "much"}, Poisoned),
        ({"end": "Poisoned", "strength": -1}, Poisoned),
        ({"end": "Poisoned", "strength": 1 << 70}, Poisoned),
        ({"end": "Retired", "at": 7, "met": "much"}, Retired),
        ({"end": "Kept", "at": None}, RuntimeError),
    ],
)
def test_a_failure_that_says_less_than_it_should(failure, expected):  # wire 17.11
    """The caller receives the exception without the omitted fields, and no error of Weft itself."""
    asked = _net_calls.asked_of(parts.not_decorated)
    error = _net_calls.exception_of({"brief": "b", **failure}, asked)
    assert type(error) is expected and "b" in str(error)


def test_cancelled_is_no_failure():
    failure = {"module": "weft", "type": "Cancelled", "args": [], "brief": "b", "text": "t"}
    asked = _net_calls.asked_of(parts.not_decorated)
    assert isinstance(_net_calls.exception_of(failure, asked), Cancelled)

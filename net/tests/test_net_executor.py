"""weft.processes.Executor over hosts of a network (WIRE-NETWORKS.md 17.14)."""

from __future__ import annotations

import asyncio
import concurrent.futures as cf
import os
import random
import signal
import subprocess
import sys
import threading
import types
from collections.abc import Callable
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import far_parts as parts
import pytest
from conftest import gone
from points import Point

from weft import net
from weft import threads as th
from weft._distributed_deadlock import rounds as _rounds
from weft._hosts import pool as _pool
from weft._hosts.pickling import RemoteTraceback
from weft._net import calls as _net_calls
from weft._net import host_executor as _net_executor
from weft._net import loop as _net_loop
from weft.errors import BadUse, Deadlock, ProcessDied
from weft.processes import Executor, Hosts

HEARD = 300.0  # seconds after which a test that hangs fails
HERE = Path(__file__).resolve().parent
pytestmark = pytest.mark.usefixtures("never_away")


def test_calls_and_their_results(gpu1, caller):  # wire 17.14
    with Executor(on=caller.hosts()) as pool:
        assert pool.submit(parts.plus, 1, b=2).result() == 3
        assert list(pool.map(parts.plus, range(500), range(500))) == [2 * i for i in range(500)]
        pids = set(pool.map(parts.where, range(200)))
        assert pids <= set(gpu1.report["pids"])
    # The Executor finds the host by its name, and uses one OS process.
    with Executor(1, on="gpu1") as pool:
        assert len(set(pool.map(parts.where, range(50)))) == 1


def test_its_number_of_calls(agent, network):
    """An Executor without a number of calls runs as many calls at the same time as there are OS
    processes."""
    agent("gpu1", "--hosts", "2")
    agent("gpu2", "--hosts", "1")
    with Executor(on=network.hosts(2)) as pool:
        assert pool._state.workers == 3
    with Executor(on=network.host("gpu1")) as pool:
        assert pool._state.workers == 2
    with Executor(7, on="gpu2") as pool:
        assert pool._state.workers == 7


def test_over_two_hosts(agent, network, server, keys):
    """Each of three calls waits for the other two, so all three must run at the same time, on both
    hosts."""
    agents = [agent("gpu1", "--hosts", "2"), agent("gpu2", "--hosts", "1")]
    channels = [(th.Channel(), th.Channel()) for _ in range(3)]
    with Executor(on=network.hosts(2)) as pool:
        names = [f"meet/{i}" for i in range(3)]
        for name, (there, here) in zip(names, channels, strict=True):
            network.offer(f"{name}/a", there, writers=True)
            network.offer(f"{name}/b", here, readers=True)
        ran = [pool.submit(parts.meets, server.url, str(keys), name) for name in names]
        pids = [there.reader().read() for there, _ in channels]
        for _, here in channels:
            here.writer().write("go on")
        assert [r.result() for r in ran] == pids
    assert sorted(pids) == sorted(p for a in agents for p in a.report["pids"])


def test_failures_come_back(gpu1, caller):  # wire 17.11, 17.14
    with Executor(on="gpu1") as pool:
        wrong = pool.submit(parts.fails, "odd").exception()
        assert type(wrong) is parts.Odd and wrong.args == ("odd", 3)
        assert isinstance(wrong.__cause__, RemoteTraceback) and "in fails\n" in str(wrong.__cause__)
        assert type(pool.submit(parts.fails, "value").exception()) is ValueError
        assert pool.submit(parts.plus, 1, 1).result() == 2  # the pool continues
        wrong = pool.submit(parts.plus, 1, None).exception()
        assert type(wrong) is TypeError


def test_what_is_not_allowed_is_refused(agent, network):  # wire 17.9
    """The calls that are not allowed fail, and the error names what to add; the other calls
    continue."""
    agent("gpu1", "--allow", "far_parts:plus", "--hosts", "1")
    for on, says in (
        ("gpu1", r"far_parts:where is not allowed on host gpu1.*with --allow for it too"),
        (network.hosts(), r"far_parts:where is allowed on none.*--allow far_parts:where"),
    ):
        with Executor(on=on) as pool:
            refused = [pool.submit(parts.where, i) for i in range(3)]
            for call in refused:
                with pytest.raises(BadUse, match=says):
                    call.result()
            assert pool.submit(parts.plus, 1, 2).result() == 3


def test_what_nobody_finds(gpu1, caller):
    with Executor(on="gpu1") as pool:
        for function in (lambda: 3, Point(1, 2).__class__.__str__, len):
            with pytest.raises(BadUse, match="cannot run on another machine"):
                pool.submit(function).result()
        with pytest.raises(BadUse, match="doubles_awaited is a coroutine function, and an Exec"):
            pool.submit(parts.doubles_awaited, 1, 2).result()


def test_what_cannot_go(gpu1, caller):  # wire 17.6, 17.14
    """Of several calls that are sent together, only the call whose argument or result cannot be
    sent fails.
    """
    values: list[Any] = [*range(300), Point(1, 2), *range(300)]
    with Executor(on="gpu1") as pool:
        got = [pool.submit(parts.plus, v, 1) for v in values]
        with pytest.raises(BadUse, match="a Point cannot go"):
            got[300].result()
        assert [g.result() for g in got[:300] + got[301:]] == [
            v + 1 for v in values if v != values[300]
        ]
        objects = [pool.submit(parts.point_if, i == 40) for i in range(90)]
        with pytest.raises(BadUse, match="a Point cannot go"):
            objects[40].result()
        assert {o.result() for i, o in enumerate(objects) if i != 40} == {0}


def test_pickles_where_both_trust(agent, server, keys):  # wire 17.6
    agent("gpu1", "--hosts", "1", "--trust")
    with net.join(server.url, keys=keys, trust=True) as network, Executor(on="gpu1") as pool:
        assert [p.y for p in pool.map(parts.point_if, [1, 1, 1])] == [2, 2, 2]
        assert type(pool.submit(parts.fails, "odd").exception()) is parts.Odd
        with pytest.raises(BadUse, match="not_allowed is not allowed on host gpu1"):
            pool.submit(parts.not_allowed).result()
        assert network.names() == []


@pytest.mark.parametrize("trust", [False, True])
def test_whatever_an_odd_object_does_is_the_failure_of_its_call(agent, server, keys, trust):
    """Rule 9.3. Other calls continue in the same OS process. Without trust no odd object can be
    sent."""
    there = agent("gpu1", "--hosts", "1", *["--trust"][: int(trust)])
    with net.join(server.url, keys=keys, trust=trust), Executor(1, on="gpu1") as pool:
        for name in parts.ODD:
            others = [pool.submit(parts.given, n) for n in range(5)]
            calls = [
                lambda: pool.submit(parts.given, parts.Loads(name)).result(),  # noqa: B023
                lambda: pool.submit(parts.loads, name).result(),  # noqa: B023
                lambda: pool.submit(parts.given, parts.Untold(name)).result(),  # noqa: B023
                lambda: th.run(parts.gives_back.on("gpu1")(parts.Loads(name))),  # noqa: B023
                lambda: th.run(parts.gives_odd.on("gpu1")(name)),  # noqa: B023
                lambda: th.run(parts.gives_back.on("gpu1")(parts.Untold(name))),  # noqa: B023
            ]
            for number, call in enumerate(calls):
                says = "cannot be pickled" if number % 3 == 2 else f"unpickling raises {name}"
                if (
                    trust
                    and number == 5
                    and name in ("KeyboardInterrupt", "SystemExit", "Cancelled")
                ):
                    # The argument is pickled in this program, where the exception may be a real
                    # Ctrl-C: so it propagates unchanged.
                    with pytest.raises(parts.ODD[name]):
                        call()
                    continue
                with pytest.raises(BadUse, match=says if trust else "cannot go to a program"):
                    call()
            for call in (
                lambda: pool.submit(parts.untold, name).result(),  # noqa: B023
                lambda: th.run(parts.fails_oddly.on("gpu1")(name)),  # noqa: B023
            ):
                with pytest.raises(Exception) as caught:
                    call()
                assert type(caught.value) in (
                    (RuntimeError,) if trust else (RuntimeError, parts.Untold)
                )
                assert "in untold\n" in str(caught.value.__cause__)
            assert [f.result() for f in others] == list(range(5))
        assert pool.submit(parts.where, 0).result() == there.report["pids"][0]


def test_two_functions_at_once(gpu1, caller):
    """Calls of several functions are mixed, and each goes to its own function."""
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    rng = random.Random(seed)
    with Executor(on="gpu1") as pool:
        calls = [(rng.random() < 0.5, i) for i in range(400)]
        got = [pool.submit(parts.minus if minus else parts.plus, i, 1) for minus, i in calls]
        assert [g.result() for g in got] == [i - 1 if minus else i + 1 for minus, i in calls]


def test_a_process_that_dies(agent, network):  # wire 17.12, 17.14
    """All calls that were under way, or waited, fail with BrokenProcessPool, as in
    ProcessPoolExecutor. Results that had arrived are kept.
    """
    agent("gpu1", "--hosts", "1")
    with Executor(on="gpu1") as pool:
        assert pool.submit(parts.plus, 1, 1).result() == 2
        calls = [pool.submit(parts.dies_if, i == 0) for i in range(5)]
        for call in calls:
            with pytest.raises(BrokenProcessPool, match=r"gpu1.*SIGKILL"):
                call.result()
        with pytest.raises(BrokenProcessPool):
            pool.submit(parts.plus, 1, 1)
    with Executor(on="gpu1") as pool:  # the host has another OS process
        assert pool.submit(parts.plus, 1, 1).result() == 2


def test_a_second_ctrl_c_gives_up_its_calls(agent, server, keys, program):
    """Rule 6.7. The OS process of the host is stopped, and does not answer. The first Ctrl-C
    cancels the run, but a process that waits for a future reaches no operation.
    """
    there = agent("gpu1", "--hosts", "1")
    p = program("calls_by_an_executor", server.url, keys, "gpu1")
    assert p.next_report() == "begun"
    os.killpg(there.process.pid, signal.SIGSTOP)
    try:
        p.process.send_signal(signal.SIGINT)
        assert p.next_report() == "cancelled"
        p.process.send_signal(signal.SIGINT)
        assert p.next_report() == "its calls were given up by a second Ctrl-C"
        assert p.next_report() == "interrupted"
        assert p.next_report() == "shut down"
    finally:
        os.killpg(there.process.pid, signal.SIGCONT)
    assert p.ended() == 0


def test_ctrl_c_while_a_host_is_waited_for(server, keys, program):
    p = program("calls_a_host_that_never_comes", server.url, keys)
    assert p.next_report() == "begun"
    p.process.send_signal(signal.SIGINT)
    assert p.next_report() == "the executor was stopped by Ctrl-C"
    assert p.ended() == 0


LIES = [
    None,
    7,
    [7],
    [[0, 1]],
    [[5, 1, None]],
    [["0", 1, None]],
    [[0, 1, None], [0, 2, None]],
    [[1, None, 3]],
]


@pytest.mark.parametrize("lie", LIES, ids=str)
def test_results_that_are_none(lie):  # wire 17.14
    """A program that sends a message that is not a result counts as dead, so that the calls do not
    wait forever.
    """

    class LostHosts:
        def _died(self, name: str, host: str, session: Any) -> ProcessDied:
            return ProcessDied(name, 1, None, host=host)

    line = object.__new__(_net_executor._Line)
    line.hosts, line.host, line.size = LostHosts(), "gpu1", 1  # type: ignore[assignment]
    line.session = types.SimpleNamespace(trusted=False)  # type: ignore[assignment]
    line.asked, line.died = _net_calls.asked_of(parts.plus), False
    orders, results = th.Channel("orders", capacity=1), th.Channel("result", capacity=1)
    heard, tells = orders.reader(), results.writer()
    line.told, line.answer = orders.writer(), results.reader()
    tells.write(lie)
    batch = [_pool.Call(cf.Future(), parts.plus, (i, 1), {}) for i in range(2)]
    with pytest.raises(ProcessDied, match="gpu1"):
        line.compute(batch)
    assert line.died and heard.read() == [[[0, 1], {}], [[1, 1], {}]]


def test_an_agent_that_dies(agent, network):
    there = agent("gpu1", "--hosts", "1")
    with Executor(on=network.hosts()) as pool:
        assert pool.submit(parts.plus, 1, 1).result() == 2
        pool.submit(parts.waits_if, False).result()  # the pool now has a session for this function
        waits = [pool.submit(parts.waits_if, True) for _ in range(2)]
        there.kill()
        for call in waits:
            with pytest.raises(BrokenProcessPool, match="is lost"):
                call.result()
    while not all(map(gone, there.report["pids"])):
        th.sleep(0.01)


def program(server: Any, keys: Path, last: str) -> subprocess.CompletedProcess[str]:
    """Runs a program that has a `pool` on gpu1 and whose last line is `last`. Checks that the
    program exits with success.
    """
    code = (
        "import os, sys; sys.path.insert(0, sys.argv[3])\n"
        "from weft import net; from weft.processes import Executor; import far_parts as parts\n"
        "network = net.join(sys.argv[1], keys=sys.argv[2]); pool = Executor(on='gpu1')\n"
    )
    command = [sys.executable, "-c", code + last, server.url, str(keys), str(HERE)]
    return subprocess.run(command, capture_output=True, text=True, check=True)


def test_a_caller_that_goes(agent, server, keys):
    """The call that a dead caller had begun ends, and the OS process is free for other calls."""
    there = agent("gpu1", "--hosts", "1")
    asks = "print(pool.submit(parts.where, 1).result(), flush=True); os._exit(0)"
    output = program(server, keys, asks).stdout
    assert int(output) in there.report["pids"]
    with net.join(server.url, keys=keys), Executor(on="gpu1") as pool:
        assert pool.submit(parts.where, 1).result() == int(output)


def test_a_program_that_ends_without_shutdown(agent, server, keys):
    """When a program ends without shutdown(), its calls are finished first, as the calls of
    concurrent.futures are."""
    agent("gpu1", "--hosts", "1")
    asks = (
        "for i in range(20):\n"
        "    pool.submit(parts.plus, i, i).add_done_callback(lambda f: print(f.result()))\n"
    )
    result = program(server, keys, asks)
    assert sorted(map(int, result.stdout.split())) == [2 * i for i in range(20)]
    assert result.stderr == ""


def test_shut_down(gpu1, caller):
    pool = Executor(on="gpu1")
    first = pool.submit(parts.where, 0)
    first.result()
    many = [pool.submit(parts.plus, i, i) for i in range(300)]
    pool.shutdown(wait=False, cancel_futures=True)
    over, cancelled = cf.wait(many)[0], [c for c in many if c.cancelled()]
    assert len(over) == 300 and all(c.cancelled() or c.result() is not None for c in over)
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.submit(parts.plus, 1, 1)
    pool.shutdown()
    assert len(cancelled) <= 300


def test_a_network_that_was_left(agent, server, keys):
    agent("gpu1", "--hosts", "1")
    with net.join(server.url, keys=keys):
        pool = Executor(on="gpu1")
        assert pool.submit(parts.plus, 1, 1).result() == 2
    with pytest.raises(BrokenProcessPool):
        pool.submit(parts.plus, 1, 1).result()
    pool.shutdown()


def test_a_call_that_begins_as_the_network_is_left(agent, server, keys, monkeypatch):
    """The call must not continue in a session that no program ends."""
    agent("gpu1", "--hosts", "1")
    loop = _net_loop.use()  # the loop keeps running, as if for another network
    network = net.join(server.url, keys=keys)
    way_to = network._meeting._way_to
    reached, left = threading.Event(), threading.Event()

    async def later(entry: dict[str, Any]) -> Any:
        streams = await way_to(entry)
        reached.set()
        await asyncio.to_thread(left.wait)
        return streams

    monkeypatch.setattr(network._meeting, "_way_to", later)
    with Executor(1, on=network.host("gpu1")) as pool:
        call = pool.submit(parts.waits_at_a_channel)
        reached.wait()
        network.close()
        left.set()
        try:
            assert isinstance(call.exception(HEARD), (BadUse, BrokenProcessPool))
        finally:
            pool._state.stop()
    _net_loop.done(loop)


def test_submitted_by_many_threads(gpu1, caller):
    got: list[int] = []
    with Executor(on="gpu1") as pool:

        def some(k: int) -> None:
            got.extend(pool.map(parts.plus, [k] * 50, range(50)))

        threads = [threading.Thread(target=some, args=(k,)) for k in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert sorted(got) == sorted(k + i for k in range(4) for i in range(50))


def test_what_makes_no_sense(agent, network, server, keys):
    with pytest.raises(ValueError, match="leave out all arguments but max_workers"):
        Executor(on="gpu1", initializer=os.getpid)
    with pytest.raises(ValueError, match="max_workers must be greater than 0"):
        Executor(0, on="gpu1")
    with Hosts(1) as local, pytest.raises(BadUse, match=r"takes hosts of a network.*leave on= out"):
        Executor(on=local)
    with pytest.raises(BadUse, match=r"there was no host 'gpu1' within 0\.2 seconds"):
        Executor(on=network.host("gpu1", patience=0.2))
    network.close()
    with pytest.raises(BadUse, match=r"is the name of a host of a network, and none is joined"):
        Executor(on="gpu1")
    with pytest.raises(
        BadUse, match=r"preload, nice are for OS processes that this program starts"
    ):
        Hosts("nats://lab1:4222", preload=["json"], nice=1)


def test_hosts_by_the_url_of_their_network(gpu1, keys, monkeypatch):  # wire 17.9, 17.14
    """`Hosts(url)` joins the network only to use its hosts, and leaves it at the end of the block."""
    monkeypatch.setenv("WEFT_NET", str(keys))
    with Hosts(gpu1.url) as hosts:
        assert (hosts.names, len(hosts)) == (["gpu1"], 1)
        with Executor(on=hosts) as pool:
            assert pool.submit(parts.plus, (1,), (2, {3})).result(HEARD) == (1, 2, {3})
        assert th.run(parts.add.on(hosts)(1, 2)) == 3
    with pytest.raises(BadUse, match="has left the network"):
        th.run(parts.add.on(hosts)(1, 2))
    hosts.close()


def test_a_caller_that_waits_in_vain_is_told_where_the_call_is(gpu1, caller, fifo):
    """Rounds do not reach hosts of other machines, so only a timeout reports a call that waits
    forever on such a host. test_where_calls_are.py tests the place that the report names.
    """
    path, go = fifo
    with Executor(1, on="gpu1") as pool:
        pid = pool.submit(parts.where, 0).result(HEARD)
        pool.submit(parts.waits_for_file, "/dev/null").result()
        call, next_one = pool.submit(parts.waits_for_file, path), pool.submit(parts.plus, 1, 1)
        while not call.running():
            th.sleep(0.001)
        with pytest.raises(
            cf.TimeoutError, match=r"no result of waits_for_file within 0 seconds: it"
        ):
            call.exception(0)
        while "OS process" not in call._where:
            th.sleep(0.001)
        expected = (
            r"waits_for_file within 0 seconds: it runs on host 'gpu1', in its OS process \d+$"
        )
        with pytest.raises(cf.TimeoutError, match=expected) as raised:
            call.result(0)
        assert (
            int(str(raised.value).split()[-1]) in gpu1.report["pids"] and pid in gpu1.report["pids"]
        )
        expected = (
            "no result of plus within 0 seconds: it waits for one of the executor's 1 workers"
        )
        with pytest.raises(cf.TimeoutError, match=expected):
            next_one.exception(0)
        mapped = pool.map(parts.plus, [1], [1], timeout=0.01)
        with pytest.raises(
            cf.TimeoutError, match=r"no result of plus within [\d.e-]+ seconds: it waits"
        ):
            next(mapped)
        go()
        assert (call.result(), next_one.result()) == ("gone on", 2)


def test_a_timeout_that_the_call_raised_is_its_own(gpu1, caller):
    with Executor(1, on="gpu1") as pool:
        call = pool.submit(parts.fails, "timeout")
        with pytest.raises(TimeoutError, match="told so"):
            call.result(HEARD)
        with pytest.raises(TimeoutError, match="told so"):
            call.result()


# --- deadlocks beside an Executor (rule 10.3, wire 17.16) -----------------------------------------


@pytest.fixture
def fifo(tmp_path: Path) -> tuple[str, Callable[[], Any]]:
    """Returns a path for waits_for_file(), and a function that ends that wait."""
    path = tmp_path / "fifo"
    os.mkfifo(path)
    return str(path), lambda: path.write_text("gone on", encoding="utf-8")


@pytest.fixture
def after(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, Callable[[], Any]], list[bool]]:
    """after(n, then) returns a list of the findings of the following rounds; after the n-th round
    it calls then().
    """

    def begin(n: int, then: Callable[[], Any]) -> list[bool]:
        found: list[bool] = []
        real = _rounds._still

        def still(spaces: Any) -> bool:
            found.append(real(spaces))
            if len(found) == n:
                then()
            return found[-1]

        monkeypatch.setattr(_rounds, "_still", still)
        return found

    return begin


@th.process
def crosses(r: Any, w: Any) -> None:
    w.write(r.read())


def stuck() -> str:
    """Runs two processes each of which waits for the other, while ordinary code holds an end
    too."""
    a, b = th.Channel("a"), th.Channel("b")
    held = a.writer()
    with pytest.raises(Deadlock) as raised:
        th.run(crosses(a.reader(), b.writer()), crosses(b.reader(), a.writer()))
    held.retire()
    return str(raised.value)


def test_beside_one_that_has_no_calls(gpu1, caller):
    """The deadlock is reported every time: only the Executor's calls can wake a process, not its
    threads and sessions.
    """
    with Executor(on="gpu1") as pool:
        stuck()
        for n in range(3):
            assert pool.submit(parts.plus, n, 1).result() == n + 1
            assert list(pool.map(parts.minus, range(20), range(20))) == [0] * 20
            assert "read 'a'" in stuck()
    stuck()


def test_once_its_last_call_is_over(gpu1, caller, after, fifo):
    """No deadlock is reported before the last call has ended, whether that call is the first of its
    session or a later one.
    """
    path, go = fifo
    with Executor(1, on="gpu1") as pool:
        for _ in range(2):
            call = pool.submit(parts.waits_for_file, path)
            found = after(4, go)
            stuck()
            assert found[:4] == [False] * 4
            assert call.done() and call.result() == "gone on"


def test_a_callback_of_its_call_wakes_a_process(gpu1, caller, after, fifo):
    path, go = fifo
    with Executor(1, on="gpu1") as pool:
        assert pool.submit(parts.plus, 1, 1).result() == 2
        for _ in range(2):
            c = th.Channel("c", capacity=1)
            out = c.writer()
            call = pool.submit(parts.waits_for_file, path)
            call.add_done_callback(lambda f, out=out: out.write(f.result()))
            after(4, go)
            assert th.run(th.process(lambda inp: inp.read())(c.reader())) == "gone on"


def test_an_end_that_stays_with_its_host(agent, server, keys, after, fifo):
    """With trust a value may contain an end, and code on the host may still use the end."""
    path, go = fifo
    agent("gpu1", "--hosts", "1", "--trust")
    with net.join(server.url, keys=keys, trust=True), Executor(1, on="gpu1") as pool:
        c = th.Channel("c")
        assert pool.submit(parts.writes_later, c.writer(), path).result() is None
        found = after(4, go)
        assert th.run(th.process(lambda inp: inp.read())(c.reader())) == "gone on"
        assert found[:4] == [False] * 4


def test_once_its_host_has_died(agent, network):
    there = agent("gpu1", "--hosts", "1")
    with Executor(1, on="gpu1") as pool:
        assert pool.submit(parts.plus, 1, 1).result() == 2
        there.kill()
        stuck()
        with pytest.raises(BrokenProcessPool):
            pool.submit(parts.plus, 1, 1).result()
        stuck()

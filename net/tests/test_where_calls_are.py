"""Tests the reports of where a call on another machine is (WIRE-NETWORKS.md 17.12; rules 6.7,
10.3), and how the call ends once its caller has ended (17.14).
"""

from __future__ import annotations

import asyncio
import concurrent.futures as cf
import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import far_parts as parts
import pytest

from weft import threads as th
from weft._distributed_deadlock import remote_calls as _remote_calls
from weft._net import calls as _net_calls
from weft._net import host_executor as _net_executor
from weft._net import loop as _net_loop
from weft.processes import Executor

HEARD = 300.0  # seconds after which a test that hangs fails
HERE = Path(__file__).resolve().parent
pytestmark = pytest.mark.usefixtures("never_away")


def late(call: Any, says: str) -> str:
    """Returns the text of the call's timeout, as soon as it contains `says`."""
    seconds = 0.01
    while True:
        with pytest.raises(cf.TimeoutError) as raised:
            call.result(seconds)
        if re.search(says, str(raised.value)):
            return str(raised.value)
        seconds = min(2 * seconds, 1.0)


@contextlib.contextmanager
def pool_of(workers: int) -> Iterator[Executor]:
    """Yields an Executor whose calls are abandoned at the end of the block, so that a failed test
    waits for no call.
    """
    with Executor(workers, on="gpu1") as pool:
        try:
            yield pool
        finally:
            pool._state.stop()


@pytest.fixture
def fifo(tmp_path: Path) -> str:
    os.mkfifo(tmp_path / "fifo")
    return str(tmp_path / "fifo")


def write(path: str) -> None:
    Path(path).write_text("gone on", encoding="utf-8")


def test_at_which_channel(agent, network):
    """The text contains function, operation, channel and line, as reports about this machine do.
    For a process that reaches no operation the text contains the line where the process is.
    Afterwards the call reads its value, so asking does no harm to the call.
    """
    there = agent("gpu1", "--hosts", "1")
    with pool_of(1) as pool:
        call = pool.submit(parts.waits_at_a_channel)
        text = late(call, "read 'never'")
        assert re.fullmatch(
            r"no result of waits_at_a_channel within [\d.]+ seconds: it runs on host 'gpu1', "
            rf"in its OS process {there.report['pids'][0]}; "
            r"main/waits_at_a_channel: read 'never' at far_parts\.py:\d+",
            text,
        )
    assert isinstance(call.exception(), cf.BrokenExecutor)


def test_what_comes_to_no_operation(gpu1, caller, fifo):
    with pool_of(1) as pool:
        call = pool.submit(parts.waits_for_file, fifo)
        text = late(call, "far_parts")
        assert re.search(r"; main/waits_for_file: running at far_parts\.py:\d+$", text)
        write(fifo)
        assert call.result() == "gone on"


def test_each_of_its_processes_and_nobody_elses(agent, network, fifo, tmp_path):
    """Two calls run in one OS process, and the answer about each contains only the processes of
    that call."""
    agent("gpu1", "--hosts", "1")
    with pool_of(2) as pool:
        os.mkfifo(tmp_path / "other")
        calls = [
            pool.submit(parts.waits_for_its_own, fifo),
            pool.submit(parts.waits_for_file, str(tmp_path / "other")),
        ]
        text = late(calls[0], "^(?=.*waits for its)(?=.*read 'inner')(?=.*finds: running at)")
        lines = re.findall(r"; (main/[\w/]+): ([^;]*?) at \w+\.py:\d+", text)
        assert sorted(lines) == [
            ("main/waits_for_its_own", "waits for its processes"),
            ("main/waits_for_its_own/awaits", "read 'inner'"),
            ("main/waits_for_its_own/finds", "running"),
        ], text
        assert "waits_for_file:" not in text
        text = late(calls[1], "far_parts")
        assert "main/waits_for_file: running" in text and "awaits" not in text
        write(fifo)
        write(str(tmp_path / "other"))
        assert calls[0].result() == ["gone on", None]
        assert calls[1].result() == "gone on"


def test_one_that_is_stopped_does_not_say(agent, network, monkeypatch):
    """No process waits for a stopped process longer than the agent's or the caller's patience."""
    there = agent("gpu1", "--hosts", "1")
    with pool_of(1) as pool:
        call = pool.submit(parts.waits_at_a_channel)
        late(call, "far_parts")
        os.kill(there.report["pids"][0], signal.SIGSTOP)
        try:
            assert late(call, "does not").endswith(", which does not say where")
        finally:
            os.kill(there.report["pids"][0], signal.SIGCONT)
        os.kill(there.process.pid, signal.SIGSTOP)  # stops the agent
        monkeypatch.setattr(_net_executor, "ASKS", 0.01)
        try:
            assert late(call, "does not").endswith(", which does not say where")
        finally:
            os.kill(there.process.pid, signal.SIGCONT)


def test_which_programs_may_ask(agent, network):
    """The question needs the number of a call, which only the call's caller knows; there is no
    answer about a call that has ended.
    """
    there = agent("gpu1", "--hosts", "1")
    with pool_of(1) as pool:
        call = pool.submit(parts.waits_at_a_channel)
        late(call, "far_parts")
        meeting, asked = network._meeting, call._call
        for wrong in ("", "0" * 16, None, 7, ["a"]):
            assert _net_loop.call(network._loop, meeting.where("gpu1", wrong)) is None
        assert _net_loop.call(network._loop, meeting.where("nobody", "0" * 16)) is None
    # The call's OS process has not yet learnt that the call has ended.
    while asked.ask().result() is not None:
        th.sleep(0.001)
    assert there.process.poll() is None


ASKS = """
import sys, time
sys.path.insert(0, sys.argv[3])
import far_parts
from weft import net, threads as th
from weft._distributed_deadlock import remote_calls as _remote_calls
from weft.processes import Executor

@th.process
def calls(pool, pids):
    pids.read()
    call, told = pool.submit(far_parts.waits_at_a_channel), ""
    while "read 'never'" not in told:
        try:
            call.result(0.1)
        except TimeoutError as error:
            told = str(error)
    while "read 'jobs'" not in told:  # after what it has said
        told = "".join(line for _, line in _remote_calls.lines(_remote_calls.asked(), time.monotonic() + 1))
    print("ready", flush=True)
    call.result()

with net.join(sys.argv[1], keys=sys.argv[2], rounds=sys.argv[4] == "rounds") as network:
    jobs, pids = th.Channel("jobs"), th.Channel("pids")
    held = jobs.writer()
    with Executor(1, on="gpu1") as pool:
        pool.submit(far_parts.where, 0).result()
        far = far_parts.waits_for.on("gpu1")(jobs.reader(), pids.writer())
        th.run(far, calls(pool, pids.reader()))
"""


@pytest.mark.parametrize("rounds", ["rounds", "none"])
def test_ctrl_c_says_where_they_are(agent, server, keys, rounds):
    """Rule 6.7 holds for calls on other machines too, whether or not this program asks other
    programs in rounds.
    """
    there = agent("gpu1", "--hosts", "2")
    command = [sys.executable, "-c", ASKS, server.url, str(keys), str(HERE), rounds]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as p:
        assert p.stdout is not None and p.stderr is not None
        assert p.stdout.readline() == "ready\n"
        p.send_signal(signal.SIGINT)
        text = ""
        while text.count(" on host 'gpu1'\n") < 2:
            more = p.stderr.readline()
            assert more, text
            text += more
        p.send_signal(signal.SIGINT)
        p.communicate()
    pids = "|".join(map(str, there.report["pids"]))
    for line in ("waits_for: read 'jobs'", "waits_at_a_channel: read 'never'"):
        assert re.search(
            rf"  main/{line} at far_parts\.py:\d+ in OS process ({pids}) on host 'gpu1'\n", text
        ), text
    assert "hosts.py" not in text and "main/where" not in text, text  # each call is named once


def test_calls_that_do_not_answer_hold_up_nobody() -> None:
    """Rule 6.7: calls that do not answer are reported as silent, once the patience of the asking
    program has ended."""
    never: cf.Future[Any] = cf.Future()
    over: cf.Future[Any] = cf.Future()
    over.set_result(["main/x: running at x.py:1"])

    def gone() -> Any:
        raise OSError("its network has been left")

    asks = (lambda: never), (lambda: over), gone
    calls = [_remote_calls.FarCall("gpu1", pid, ask) for pid, ask in enumerate(asks)]
    with (
        _remote_calls.called(calls[0]),
        _remote_calls.called(calls[1]),
        _remote_calls.called(calls[2]),
    ):
        lines = [line for _, line in _remote_calls.lines(_remote_calls.asked(), 0.0)]
    assert sorted(lines) == [
        "a call that does not say where it is in OS process 0 on host 'gpu1'",
        "main/x: running at x.py:1 in OS process 1 on host 'gpu1'",
    ]
    assert never.cancelled() and _remote_calls.asked() == []


# --- a caller that goes ---------------------------------------------------------------------------

CALLS = """
import sys
sys.path.insert(0, sys.argv[3])
import far_parts
from weft import net
from weft.processes import Executor
net.join(sys.argv[1], keys=sys.argv[2])
pool = Executor(2, on="gpu1")
for name in ("meet/a", "meet/b"):
    pool.submit(far_parts.reads_and_says, sys.argv[1], sys.argv[2], name)
sys.stdin.read()
"""


def test_what_runs_for_a_caller_that_has_gone_is_cancelled(agent, network, server, keys):
    """wire 17.14: the call is cancelled once, at its next operation, so it can still release its
    resources."""
    agent("gpu1", "--hosts", "1")
    jobs, reports = ([th.Channel(name) for name in "ab"] for _ in range(2))
    held = [c.writer() for c in jobs]  # these writers make the calls wait
    for c, message in zip(jobs, reports, strict=True):
        network.offer(f"meet/{c.name}", c, readers=True)
        network.offer(f"meet/{c.name}/said", message, writers=True)
    command = [sys.executable, "-c", CALLS, server.url, str(keys), str(HERE)]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as p:
        while [c.stats().waiting_readers for c in jobs] != [1, 1]:
            th.sleep(0.001)
        p.kill()
    assert [c.reader().read() for c in reports] == ["cancelled", "cancelled"]
    while [c.stats().readers for c in jobs] != [0, 0]:
        th.sleep(0.001)
    assert len(held) == 2
    with Executor(1, on="gpu1") as pool:
        assert pool.submit(parts.plus, 1, 1).result() == 2


class Link:
    """The link of a caller that sends two calls together, and closes when the test orders it."""

    def __init__(self) -> None:
        self.orders, self.results = th.Channel("orders"), th.Channel("result", capacity=9)
        self.goes = threading.Event()

    def take(self, name: str) -> Any:
        return self.orders.reader() if name == "orders" else self.results.writer()

    def wait(self) -> None:
        self.goes.wait()


def test_those_of_its_list_that_have_not_begun_do_not() -> None:  # wire 17.14
    link, begun = Link(), parts.begun
    signals, answers = link.orders.writer(), link.results.reader()
    args = link, "far_parts:begins", False, "a call"
    serves = threading.Thread(target=_net_calls._serve_many, args=args)
    serves.start()
    signals.write([[[1], {}], [[2], {}]])
    while not begun:
        th.sleep(0.001)
    link.goes.set()
    signals.retire()
    failures = {n: failure["type"] for part in answers for n, _, failure in part}
    serves.join()
    assert begun == [1] and set(failures.values()) == {"Cancelled"}


def test_a_question_that_is_given_up_leaves_no_connection() -> None:
    """A question completes while it is being cancelled. asyncio.wait_for() may lose the result, a
    connection, which must be closed nevertheless.
    """

    async def ends_all_the_same() -> str:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(HEARD)
        return "a connection"

    async def main() -> None:
        dropped: list[str] = []
        waits = asyncio.ensure_future(_net_loop.within(HEARD, ends_all_the_same(), dropped.append))
        for _ in range(3):  # `waits` waits now
            await asyncio.sleep(0)
        waits.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            dropped.append(await waits)  # later versions of Python return the result
        assert dropped == ["a connection"]

    asyncio.run(main())

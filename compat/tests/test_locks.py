"""weft.compat.pycsp_locks: PyCSP-locksharing's names over threads. The networks were written for
Weft."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

import pytest

from weft.compat import _main
from weft.compat.pycsp_locks import (
    CSP,
    Alternative,
    BufferedChannel,
    Channel,
    Guard,
    Parallel,
    PoisonException,
    Process,
    Sequence,
    Skip,
    Spawn,
    Timer,
    poison_channel,
    process,
)
from weft.compat.pycsp_locks.cfutures import CFuture
from weft.compat.pycsp_locks.plugNplay import (
    AltDelta2,
    Identity,
    Mux2,
    ParDelta2,
    Prefix,
    SeqDelta2,
    SkipProcess,
    Successor,
    poison_chans,
)
from weft.compat.pycsp_locks.utils import avg, handle_common_args
from weft.errors import BadUse, Deadlock


@pytest.fixture(autouse=True)
def at_the_end() -> Any:
    yield
    _main.leave()


@process
def send(values: Any, cout: Any) -> Any:
    """Writes the values."""
    return [cout(v) for v in values]


@process
def receive(count: int, cin: Any) -> Any:
    return [cin() for _ in range(count)]


@process
def drain(cin: Any) -> Any:
    return list(cin)


def test_run_gives_the_composition_and_retval_the_results() -> None:
    ch = Channel("one")
    both = Parallel(send(range(3), ch.write), receive(3, ch.read))
    assert both.run() is both
    assert both.retval == [[0, 0, 0], [0, 1, 2]]


def test_csp_takes_one_or_several() -> None:
    ch = BufferedChannel()
    assert CSP(send([1], ch.write)) == [0]
    assert CSP(Sequence(send([2], ch.write), receive(2, ch.read))) == [[0], [1, 2]]
    assert CSP(send([3], ch.write), receive(1, ch.read)) == [[0], [3]]


def test_compositions_nest() -> None:
    @process
    def number(n: int) -> int:
        return n

    nested = Parallel(number(1), Sequence(number(2), Parallel(number(3), number(4))), Parallel())
    assert nested.run().retval == [1, [2, [3, 4]], []]


def test_processes() -> None:
    made = send([], None)
    assert isinstance(made, Process)
    assert (send.__name__, send.__doc__, made.name) == ("send", "Writes the values.", "send")
    assert made.run() is made  # run() runs the process in the caller's thread
    assert made.retval == []

    async def coroutine() -> None: ...

    with pytest.raises(BadUse, match="apycsp"):
        process(coroutine)


def test_spawn_start_and_join() -> None:
    ch = Channel()
    reader = Spawn(receive(2, ch.read))
    assert reader.is_alive()
    ch.write("a")
    ch.write("b")
    reader.join()
    reader.join()
    assert (reader.retval, reader.is_alive()) == (["a", "b"], False)
    with pytest.raises(BadUse, match="started already"):
        reader.start()
    with pytest.raises(BadUse, match="not started"):
        send([], None).join()


def test_a_program_that_spawns_waits_at_its_end() -> None:
    program = """
from weft.compat.pycsp_locks import *
@process
def late(cin): print("got", cin())
c = Channel()
Spawn(late(c.read))
c.write(7)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=280
    )
    assert (done.returncode, done.stdout) == (0, "got 7\n"), done.stderr


def test_poison_ends_processes_quietly_and_loops_at_their_end(capsys: Any) -> None:
    @process(verbose_poison=True)
    def told(cin: Any) -> None:
        cin()

    ch = Channel()

    @process
    def ends() -> None:
        while ch.queue_len() < 2:
            pass
        assert ch.verify()
        poison_channel(ch.read)

    poisoned, drained = told(ch.read), drain(ch)
    assert CSP(poisoned, drained, ends()) == [None, [], None]
    assert (poisoned.poisoned, drained.poisoned, ch.poisoned) == (True, False, True)
    assert "Process poisoned" in capsys.readouterr().out
    for operation in (ch.read, lambda: ch.write(1), Alternative(ch.read).select):
        with pytest.raises(PoisonException):
            operation()


def test_a_failure_is_raised_and_ends_the_others() -> None:
    @process
    def fails() -> None:
        raise KeyError("on purpose")

    with pytest.raises(KeyError, match="on purpose"):
        CSP(fails(), receive(1, Channel().read))


def test_a_deadlock_is_reported() -> None:
    with pytest.raises(Deadlock, match="lonely"):
        CSP(receive(1, Channel("lonely").read), receive(1, Channel().read))


def test_alternatives() -> None:
    a, b, out = Channel("a"), BufferedChannel("b"), BufferedChannel("out")
    CSP(send([1, 2, 3], b.write))
    assert b.queue_len() == 3
    skip, late, write = Skip(), Timer(0.001), out.write.alt_pending_write(7)
    assert Alternative(a.read, b.read, skip).select() == (b.read, 1)
    with Alternative(b.read) as (g, value):
        assert (g, value) == (b.read, 2)
    assert Alternative(skip, b.read).pri_select() == (skip, None)
    alt = Alternative(a.read, late)
    assert [alt.select() for _ in range(3)] == [(late, None)] * 3
    assert Alternative(write).select() == (write, 0)
    assert (out.queue_len(), out.read(), out.queue_len()) == (1, 7, 0)


def test_alternatives_meet() -> None:
    @process
    def side(cin: Any, cout: Any) -> int:
        return [Alternative(cout.alt_pending_write("v"), cin).select()[1] for _ in range(20)].count(
            "v"
        )

    a, b = Channel(), Channel()
    assert sum(CSP(side(a.read, b.write), side(b.read, a.write))) == 20


def test_bad_guards_are_refused() -> None:
    class CustomGuard(Guard):
        def enable(self, alt: Any) -> Any: ...

    ch = Channel()
    for bad in (ch, ch.write, 3, CustomGuard()):
        with pytest.raises(BadUse, match="alt_pending_write"):
            Alternative(bad)
    with pytest.raises(BadUse, match="itself"):
        Alternative(ch.read, ch.write.alt_pending_write(1)).select()


@pytest.mark.parametrize("delta", [SeqDelta2, ParDelta2, AltDelta2])
def test_plug_and_play(delta: Any) -> None:
    a, b, c, d = (Channel(name) for name in "abcd")

    @process
    def first_five(cin: Any) -> Any:
        got = [cin() for _ in range(5)]
        poison_chans(a, b, c, d).run()
        return got

    result = CSP(
        Prefix(c.read, a.write, prefixItem=0),
        delta(a.read, b.write, d.write),
        Successor(b.read, c.write),
        first_five(d.read),
        SkipProcess(),
    )
    assert result[3] == [0, 1, 2, 3, 4]


def test_mux_and_identity() -> None:
    one, two, out, last = Channel(), Channel(), Channel(), Channel()

    @process
    def both() -> Any:
        got = sorted(last.read() for _ in range(2))
        poison_chans(one, two, out, last).run()
        return got

    result = CSP(
        send([1], one.write),
        send([2], two.write),
        Mux2(one.read, two.read, out.write),
        Identity(out.read, last.write),
        both(),
    )
    assert result[4] == [1, 2]


def test_cfutures_pass_results_and_exceptions() -> None:
    lock = threading.RLock()
    for outcome in ("result", PoisonException("passed")):
        future, got, started = CFuture(lock), [], threading.Event()

        def waits(future: Any = future, got: Any = got, started: Any = started) -> None:
            try:
                with future:
                    started.set()
                    got.append(future.wait())
            except PoisonException as e:
                got.append(e)

        thread = threading.Thread(target=waits)
        thread.start()
        started.wait()
        with CFuture(lock):  # the block is entered only while the other thread waits
            assert not future.done()
            (future.set_exception if isinstance(outcome, Exception) else future.set_result)(outcome)
        thread.join()
        assert (got, future.done()) == ([outcome], True)
    with pytest.raises(RuntimeError, match="outside"):
        CFuture().wait()
    with CFuture(), CFuture():  # the two futures of one thread share one lock
        pass


def test_helpers(monkeypatch: Any) -> None:
    assert avg([1, 2, 3]) == 2
    monkeypatch.setattr(sys, "argv", ["program", "-v", "--many", "3"])
    args = handle_common_args([(["--many"], {"type": int})])
    assert (args.many, args.v) == (3, True)

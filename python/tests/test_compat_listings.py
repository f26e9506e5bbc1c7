"""The listings of the PyCSP papers, in our words, over weft.compat: two backends by one import, @io, Configuration, the
arbitration's effect, a greenlet that blocks, and the producer-consumer that delegates jobs by choice."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

import pytest
from compat_networks import implementations, load


@pytest.fixture(params=implementations())
def p(request: pytest.FixtureRequest) -> Any:
    module = load(request.param)
    yield module
    module.shutdown()


NETWORK = """
from weft.compat.pycsp.{name} import *

@process
def hello(out, n):
    for i in range(n):
        out("hello %d" % i)
    retire(out)

@process
def show(source):
    while True:
        print(source())

words = Channel("words")
Parallel(hello(-words, 3), show(+words))
shutdown()
"""


@pytest.mark.parametrize("name", [*implementations(), "threads", "processes"])
def test_listing_1_an_implementation_is_chosen_by_one_import(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", NETWORK.format(name=name)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, "hello 0\nhello 1\nhello 2\n"), done.stderr


def test_listing_2_io_keeps_the_others_running(p: Any) -> None:
    """Ten that wait at once: each is let go only when all have begun to wait."""
    all_wait = threading.Barrier(10)

    @p.io
    def wait() -> int:
        return all_wait.wait(30)

    @p.process
    def delayed(i: int) -> int:
        wait()
        return i

    assert p.Parallel([delayed(i) for i in range(10)]) == list(range(10))


def test_listing_3_a_constant_is_set_and_got() -> None:
    names: dict[str, Any] = {}
    with pytest.warns(RuntimeWarning, match="threads of this interpreter"):
        sys.modules.pop("weft.compat.pycsp.processes", None)
        exec("from weft.compat.pycsp.processes import *", names)
    names["Configuration"]().set(names["PROCESSES_SHARED_CONDITIONS"], 50)
    assert names["Configuration"]().get(names["PROCESSES_SHARED_CONDITIONS"]) == 50
    assert names["version"][3] == "processes"


def test_listing_5_each_request_is_matched_once(p: Any) -> None:
    """Choices of many readers and writers at two channels: every value arrives once."""
    a, b = p.Channel("a"), p.Channel("b")
    each, pairs = 40, 4

    @p.process
    def offers(left: Any, right: Any, base: int) -> None:
        for i in range(each):
            p.Alternation([{(left, base + i): None, (right, base + i): None}]).select()

    @p.process
    def takes(left: Any, right: Any) -> list[int]:
        return [p.Alternation([{left: None, right: None}]).select()[1] for _ in range(each)]

    results = p.Parallel(
        [offers(-a, -b, each * i) for i in range(pairs)], [takes(+a, +b) for _ in range(pairs)]
    )
    assert sorted(v for got in results[pairs:] for v in got) == list(range(each * pairs))


def test_listing_6_a_process_that_blocks_hands_over(p: Any) -> None:
    """A ring: a token passes through every process in turn, though each blocks at once."""
    size, rounds = 30, 5
    ring = p.Channel() * size

    @p.process
    def element(cin: Any, cout: Any) -> None:
        while True:
            cout(cin() + 1)

    @p.process
    def root(cin: Any, cout: Any) -> int:
        token = 0
        for _ in range(rounds):
            cout(token + 1)
            token = cin()
        p.retire(cin, cout)
        return token

    elements = [element(+ring[i], -ring[i + 1]) for i in range(size - 1)]
    assert p.Parallel(root(+ring[-1], -ring[0]), elements)[0] == size * rounds


def test_listing_7_jobs_are_delegated_and_results_received_in_any_order(p: Any) -> None:
    worker_in, worker_out = p.Channel("results"), p.Channel("jobs")
    count = 25

    @p.process
    def producer_consumer(results_in: Any, jobs_out: Any) -> dict[int, int]:
        jobs, results = list(range(count)), {}

        @p.choice
        def received_job(channel_input: Any) -> None:
            job, result = channel_input
            results[job] = result

        @p.choice
        def send_job() -> None:
            jobs.pop()

        while jobs or len(results) < count:
            if jobs:
                p.Alternation(
                    [{results_in: received_job(), (jobs_out, jobs[-1]): send_job()}]
                ).execute()
            else:
                received_job().invoke_on_input(results_in())
        p.retire(jobs_out, results_in)
        return results

    @p.process
    def worker(jobs_in: Any, results_out: Any) -> None:
        while True:
            job = jobs_in()
            results_out((job, job * job))

    results = p.Parallel(
        producer_consumer(+worker_in, -worker_out), 3 * worker(+worker_out, -worker_in)
    )
    assert results[0] == {i: i * i for i in range(count)}


# ------------------------------------------------------------------------------------------------ their examples, ours


def test_sieve_grows_as_it_runs(p: Any) -> None:
    @p.process
    def naturals(out: Any, to: int) -> None:
        for i in range(2, to):
            out(i)
        p.poison(out)

    @p.process
    def sift(cin: Any, out: Any) -> None:
        own: Any = None
        try:
            prime = cin()
            out(prime)
            onward = p.Channel()
            own = onward.writer()
            p.Spawn(sift(onward.reader(), out))
            while True:
                n = cin()
                if n % prime:
                    own(n)
        except p.ChannelPoisonException:
            p.poison(own if own else out)

    @p.process
    def collect(cin: Any) -> list[int]:
        found = []
        try:
            while True:
                found.append(cin())
        except p.ChannelPoisonException:
            return found

    numbers, primes = p.Channel(), p.Channel()
    found = p.Parallel(naturals(-numbers, 60), sift(+numbers, -primes), collect(+primes))[2]
    assert found == [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59]


def test_philosophers_dine(p: Any) -> None:
    """Five, four of them seated at a time; each takes and lays down its forks in either order. The butler goes home."""
    seats, steps = 5, 200
    left, right = p.Channel() * seats, p.Channel() * seats
    down, up = p.Channel() * seats, p.Channel() * seats

    @p.process
    def philosopher(left: Any, right: Any, down: Any, up: Any) -> int:
        eaten = 0
        try:
            while True:
                down(True)
                for _ in ("take", "lay down"):
                    p.FairSelect(
                        p.OutputGuard(left, True, action=lambda: right(True)),
                        p.OutputGuard(right, True, action=lambda: left(True)),
                    )
                eaten += 1
                up(True)
        except p.ChannelRetireException:
            p.retire(left, right)
            return eaten

    @p.process
    def fork(left: Any, right: Any) -> None:
        while True:
            taken_by, _ = p.FairSelect(p.InputGuard(left), p.InputGuard(right))
            taken_by()

    @p.process
    def butler(down: Any, up: Any) -> tuple[int, int]:
        seated = most = ups = 0
        for _ in range(steps):
            guards = [p.InputGuard(u) for u in up]
            if seated < seats - 1:
                guards += [p.InputGuard(d) for d in down]
            if p.FairSelect(guards)[0] in down:
                seated += 1
            else:
                seated -= 1
                ups += 1
            most = max(most, seated)
        p.retire(down, up)
        return most, ups

    results = p.Parallel(
        butler([+d for d in down], [+u for u in up]),
        [philosopher(-left[i], -right[i], -down[i], -up[i]) for i in range(seats)],
        [fork(+left[i], +right[(i + 1) % seats]) for i in range(seats)],
    )
    (most, ups), eaten = results[0], results[1 : 1 + seats]
    assert 1 <= most <= seats - 1
    assert ups <= sum(eaten) <= ups + seats - 1
    assert min(eaten) >= 1


@pytest.mark.parametrize("end", ["poison", "retire"])
def test_termination_races(p: Any, end: str) -> None:
    """Five sources that end one channel when each is done: retire loses nothing, poison ends all at the first."""
    channel = p.Channel()

    @p.process
    def source(out: Any) -> None:
        for i in range(10):
            out(i)
        getattr(p, end)(out)

    @p.process
    def sink(cin: Any) -> int:
        count = 0
        try:
            while True:
                cin()
                count += 1
        except (p.ChannelPoisonException, p.ChannelRetireException):
            return count

    total = sum(n for n in p.Parallel(source(-channel) * 5, sink(+channel) * 5) if n)
    assert total == 50 if end == "retire" else 10 <= total <= 50

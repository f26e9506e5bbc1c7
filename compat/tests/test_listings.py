"""The listings of the PyCSP paper and its examples, rewritten, over weft.compat: each on threads
and on greenlets.

compat/docs/pycsp.md ("What runs") lists the programs that these tests represent.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import warnings
from random import Random
from typing import Any

import pytest
from networks import implementations, load


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
        timeout=280,
    )
    assert (done.returncode, done.stdout) == (0, "hello 0\nhello 1\nhello 2\n"), done.stderr


def test_listing_2_io_keeps_the_others_running(p: Any) -> None:
    """Ten processes wait at the same time: each is released only when all ten have begun to
    wait."""
    all_wait = threading.Barrier(10)

    @p.io
    def wait() -> int:
        return all_wait.wait(280)

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


def test_the_settings_of_pycsp_processes_0_7_1_are_there() -> None:
    """Checks the settings that the configuration example of pycsp 0.7.1 sets."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        from weft.compat.pycsp import processes as old
    settings = [name for name in old.__all__ if name.startswith("PROCESSES_")]
    assert settings == [
        "PROCESSES_ALLOC_CHANNELENDS",
        "PROCESSES_ALLOC_CHANNELS",
        "PROCESSES_ALLOC_MSG_BUFFER",
        "PROCESSES_ALLOC_QUEUE_PER_CHANNEL",
        "PROCESSES_MSG_BUFFER_BLOCKSIZE",
        "PROCESSES_SHARED_CONDITIONS",
        "PROCESSES_SHARED_LOCKS",
    ]
    store = old.Configuration()
    assert store.get(old.PROCESSES_MSG_BUFFER_BLOCKSIZE) == 10000
    kept = {name: store.get(getattr(old, name)) for name in settings}
    for n, name in enumerate(settings):
        store.set(getattr(old, name), n)
    assert [store.get(getattr(old, name)) for name in settings] == list(range(7))
    for name, value in kept.items():
        store.set(getattr(old, name), value)


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
    """A ring: a token passes through every process, although each process blocks immediately."""
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


# ------------------------------------------------------------------- their examples, written anew


def test_commstime(p: Any) -> None:
    """The numbers 0, 1, 2, … from a loop of prefix, delta and successor; poison of the consumer
    ends all four."""
    a, b, c, d = p.Channel() * 4

    @p.process
    def prefix(cin: Any, out: Any) -> None:
        out(0)
        while True:
            out(cin())

    @p.process
    def delta(cin: Any, left: Any, right: Any) -> None:
        while True:
            value = cin()
            left(value)
            right(value)

    @p.process
    def successor(cin: Any, out: Any) -> None:
        while True:
            out(cin() + 1)

    @p.process
    def consumer(cin: Any, n: int) -> list[int]:
        got = [cin() for _ in range(n)]
        p.poison(cin)
        return got

    results = p.Parallel(prefix(+c, -a), delta(+a, -b, -d), successor(+b, -c), consumer(+d, 200))
    assert results == [None, None, None, list(range(200))]


def hits(seed: int, throws: int) -> int:
    """Returns how many of `throws` random points of the unit square lie within the circle."""
    random = Random(seed)
    return sum(random.random() ** 2 + random.random() ** 2 < 1 for _ in range(throws))


def test_monte_carlo_pi(p: Any) -> None:
    """Workers send their counts and retire; the sum equals that of a single program."""
    throws, seeds = 500, range(8)
    results = p.Channel()

    @p.process
    def worker(out: Any, seed: int) -> int:
        found = hits(seed, throws)
        out(found)
        p.retire(out)
        return found

    @p.process
    def collect(cin: Any) -> int:
        total = 0
        try:
            while True:
                total += cin()
        except p.ChannelRetireException:
            return total

    expected = [hits(seed, throws) for seed in seeds]
    found = p.Parallel([worker(-results, seed) for seed in seeds], collect(+results))
    assert found == [*expected, sum(expected)]  # the processes return the same values as results


def row(y: int, width: int, height: int) -> list[int]:
    """Returns a line of the Mandelbrot set: for each point the number of steps after which the
    point left the set, at most 50."""

    def steps(c: complex) -> int:
        z = 0j
        for n in range(50):
            if abs(z) > 2:
                return n
            z = z * z + c
        return 50

    return [steps(complex(3 * x / width - 2, 2 * y / height - 1)) for x in range(width)]


def test_mandelbrot_by_a_producer_that_is_the_consumer_too(p: Any) -> None:
    """One process writes lines and reads the results in one choice; `action` is a function, where
    the example has a string."""
    width, height = 24, 16
    to_workers, from_workers = p.Channel(), p.Channel()

    @p.process
    def master(jobs: Any, lines: Any) -> list[Any]:
        image: list[Any] = [None] * height
        todo = list(range(height))

        @p.choice
        def arrived(channel_input: Any) -> None:
            y, line = channel_input
            image[y] = line

        while None in image:
            guards = [p.InputGuard(lines, action=arrived())]
            if todo:
                guards.append(p.OutputGuard(jobs, todo[-1], action=todo.pop))
            p.AltSelect(guards)
        p.retire(jobs, lines)
        return image

    @p.process
    def worker(jobs: Any, lines: Any) -> None:
        while True:
            y = jobs()
            lines((y, row(y, width, height)))

    image = p.Parallel(master(-to_workers, +from_workers), 3 * worker(+to_workers, -from_workers))[
        0
    ]
    assert image == [row(y, width, height) for y in range(height)]


@pytest.mark.parametrize("tokens", [1, 4])
def test_a_ring_with_several_tokens(p: Any, tokens: int) -> None:
    """Each token passes around the ring n times; the process that sees the last token for the last
    time ends the ring."""
    size, laps = 10, 6
    ring = p.Channel() * size

    @p.process
    def element(cin: Any, cout: Any) -> int:
        passed = 0
        try:
            while True:
                token, hops = cin()
                cout((token, hops + 1))
                passed += 1
        except p.ChannelRetireException:
            p.retire(cin, cout)
            return passed

    @p.process
    def first(cin: Any, cout: Any) -> list[Any]:
        for token in range(tokens):
            cout((token, 0))
        seen = []
        while len(seen) < tokens * laps:
            token, hops = cin()
            seen.append((token, hops))
            if len(seen) <= tokens * (laps - 1):
                cout((token, hops + 1))
        p.retire(cin, cout)
        return seen

    seen, *passed = p.Parallel(
        first(+ring[-1], -ring[0]), [element(+ring[i], -ring[i + 1]) for i in range(size - 1)]
    )
    assert seen == [(t, lap * size + size - 1) for lap in range(laps) for t in range(tokens)]
    assert passed == [tokens * laps] * (size - 1)


def test_many_processes_each_read_one_value(p: Any) -> None:
    """There are more processes than Spawn starts together (1,000). The next batch starts when no
    process has ended for a while. compat/docs/pycsp.md gives the time that a million processes
    take.
    """
    channel = p.Channel()
    seen: list[int] = []
    count = 2500

    @p.process
    def read(cin: Any) -> None:
        seen.append(cin())

    p.Spawn(count * read(+channel))
    cout = -channel
    for i in range(count):
        cout(i)
    p.shutdown()
    assert sorted(seen) == list(range(count))


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
    """Five philosophers, four of them seated at a time; each takes the two forks, and lays them
    down, in either order. At the end the butler ends too.
    """
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
    """Five sources end one channel when they are done: retirement loses no value; poison ends all
    sources as soon as the first is done."""
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

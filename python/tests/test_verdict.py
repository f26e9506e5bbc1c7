"""Tests the verdict (rule 14.12) on shares made by hand, and on generated networks with one slow
stage.

The soak runs all 200 networks; each test names its seed. A slow stage takes some 12 ms for a value,
the other stages take a fifth of a millisecond. So the slow stage is the same on a busy machine.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from looked_at import LOOKS

from weft import coroutines, greenlets, threads
from weft._watching import look as _look
from weft._watching import trace as _trace
from weft._watching import visit as _visit
from weft._watching.verdict import Node, folded, verdict
from weft.errors import ChannelEnd
from weft.observe import measuring

MODULES: dict[str, Any] = {"coroutines": coroutines, "threads": threads, "greenlets": greenlets}
WAYS = ("computes", "sleeps", "sleeps outside", "io", "lock outside")
SHAPES = ("pipeline", "farm", "tree")
BACKENDS = ("coroutines", "threads", "greenlets", "mixed")
SLOW, FAST = 0.012, 0.0002  # seconds of a slow and of a fast step


def line(*shares: tuple[float, float, float], names: str = "abcdef") -> list[Node]:
    """Returns a pipeline, with the given shares of each process: busy, waiting to read, and waiting
    to write.
    """
    return [
        Node(
            f"main/{name}",
            busy,
            reads=reads,
            writes=writes,
            inputs={f"c{i}"} if i else set(),
            outputs={f"c{i + 1}"} if i + 1 < len(shares) else set(),
            at=1,
        )
        for i, ((busy, reads, writes), name) in enumerate(zip(shares, names, strict=False))
    ]


def test_the_stage_that_all_wait_for() -> None:
    """Rule 14.12."""
    found = verdict(line((0.04, 0, 0.96), (0.96, 0, 0.04), (0.05, 0.95, 0)))
    assert found.names == ("main/b",) and found.kind == "bottleneck"
    assert found.text == (
        "`main/b` is the bottleneck: busy 96 %; what is before it waits to write, what is behind it "
        "waits to read"
    )


def test_two_within_a_tenth_are_both_named() -> None:
    """Rule 14.12."""
    nodes = line((0.02, 0, 0.98), (0.95, 0, 0), (0.90, 0.1, 0), (0, 1, 0))
    assert verdict(nodes).names == ("main/b", "main/c")
    assert verdict(nodes).text.startswith("two processes of equal weight: `main/b` (busy 95 %) and")
    nodes[2].busy = 0.80
    assert verdict(nodes).names == ("main/b",)


def test_a_source_that_waits_for_io_is_outside() -> None:
    """Rule 14.12."""
    nodes = line((0.02, 0, 0), (0.03, 0.97, 0))
    nodes[0].io = 0.95
    assert verdict(nodes).text == "nobody: the pipeline waits for `main/a`'s io"
    nodes[0].io, nodes[0].time = 0, 0.95
    assert verdict(nodes).text == "nobody: the pipeline waits for `main/a`'s time"


def test_many_that_share_a_cpu() -> None:
    """Rule 14.12."""
    found = verdict(line(*[(0.2, 0.1, 0.1)] * 5))
    assert found.kind == "scheduler" and "one CPU computes all (5 processes" in found.text


def test_workers_of_one_name_count_as_one() -> None:
    """Rule 14.12."""
    workers = [
        Node(f"main/worker[{i}]", 0.93, reads=0.07, inputs={"a"}, outputs={"b"}) for i in range(4)
    ]
    ends = [
        Node("main/src", 0.01, writes=0.99, outputs={"a"}),
        Node("main/dst", 0, reads=1, inputs={"b"}),
    ]
    found = verdict([*workers, *ends])
    assert found.names == ("main/worker[0..3]",)
    assert found.text.startswith(
        "`main/worker[0..3]` are the bottleneck: busy 93 %; what is before"
    )
    workers[2].busy, workers[0].busy, workers[1].busy, workers[3].busy = 0.95, 0.1, 0.12, 0.08
    assert verdict([*workers, *ends]).names == ("main/worker[2]",)


def test_one_of_many_that_does_something_else() -> None:
    """Rule 14.12: the others still count as one."""
    workers = [
        Node(f"main/worker[{i}]", 0.93, reads=0.07, inputs={f"a{i}"}, outputs={"b"})
        for i in range(30)
    ]
    workers[7].busy, workers[7].reads = 0.2, 0.8
    source = Node("main/src", 0.01, writes=0.99, outputs={f"a{i}" for i in range(30)})
    found = verdict([*workers, source])
    assert found.names == ("main/worker[0..29]",)
    assert found.text.startswith("`main/worker[0..29]` are the bottleneck: busy 93 %")
    for i in range(4, 30):  # those that are much lighter are three, too few to count as one
        workers[i].busy = 0.5 if i < 27 else 0.05
    assert verdict([*workers, source]).names == ("main/worker[0..3]",)


def test_a_process_that_only_sleeps_is_no_bottleneck() -> None:
    """Rule 14.12: a process that only sleeps, and for which no process waits, is not a
    bottleneck."""
    nodes = [*line((0.05, 0, 0.9), (0.8, 0.1, 0.1), (0.1, 0.9, 0)), Node("main/clock", 0, 1.0)]
    assert verdict(nodes).names == ("main/b",)


def test_nobody() -> None:
    assert verdict([]).text == "nothing runs here"
    found = verdict(line((0, 0, 1), (0, 1, 0)))
    assert found.kind == "idle" and found.text.startswith("nobody: ")


def test_the_name_that_many_share() -> None:
    assert folded("main/worker[3]/part[12]") == "main/worker[*]/part[*]"


# --- generated networks ---------------------------------------------------------------------------


def spin(seconds: float) -> None:
    """Computes for `seconds` of the thread's CPU time, so that other programs do not shorten the
    computation."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


class Lock:
    """A lock that an outside thread holds most of the time."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.over = False

    def take(self) -> None:
        """Returns when the outside thread has released the lock, some 12 ms later."""
        self.lock.acquire()
        threading.Timer(SLOW, self.lock.release).start()
        self.lock.acquire()
        self.lock.release()


class Network:
    """A network made from a seed, its slow stage, and a way to run it."""

    def __init__(self, seed: int, backend: str) -> None:
        self.rng = random.Random(seed)
        self.backend = backend
        self.shape = SHAPES[seed % 3]
        self.way = WAYS[self.rng.randrange(len(WAYS))]
        self.stop = threading.Event()
        self.lock = Lock()
        self.parts: list[Any] = []
        self.slow = ""
        getattr(self, self.shape)()

    def module(self) -> Any:
        name = self.backend
        if name == "mixed":
            name = self.rng.choice(("coroutines", "threads"))
        return MODULES[name]

    def stage(self, name: str, slow: bool, reads: list[Any], writes: list[Any]) -> None:
        """A process that reads a value from each reader, works, and writes a value to each
        writer."""
        module = self.module()
        if slow:
            self.slow = f"main/{name}"
        way = self.way if slow else "computes"
        io = module.io(time.sleep) if way == "io" else None

        def work() -> None:
            if way == "computes":
                spin(SLOW if slow else FAST)
            elif way == "sleeps outside":
                time.sleep(SLOW)
            elif way == "lock outside":
                self.lock.take()

        if module is coroutines:

            async def awaits(reads: Any, writes: Any) -> None:
                while not self.stop.is_set():
                    for r in reads:
                        await r.read()
                    if way == "sleeps":
                        await coroutines.sleep(SLOW)
                    elif io is not None:
                        await io(SLOW)
                    else:
                        work()
                    for w in writes:
                        await w.write(1)

            body: Any = awaits
        else:

            def blocks(reads: Any, writes: Any) -> None:
                while not self.stop.is_set():
                    for r in reads:
                        r.read()
                    if way == "sleeps":
                        module.sleep(SLOW)
                    elif io is not None:
                        io(SLOW)
                    else:
                        work()
                    for w in writes:
                        w.write(1)

            body = blocks
        self.parts.append(module.process(body)(reads, writes).named(name))

    def channel(self, name: str) -> Any:
        capacity = self.rng.choice((0, 0, 1, 4))
        return coroutines.Channel(name, capacity=capacity) if capacity else coroutines.Channel(name)

    def pipeline(self) -> None:
        n = self.rng.randint(3, 6)
        slow = self.rng.randrange(n)
        pipes = [self.channel(f"c{i}") for i in range(n - 1)]
        for i in range(n):
            self.stage(
                f"s{i}",
                i == slow,
                [pipes[i - 1].reader()] if i else [],
                [pipes[i].writer()] if i + 1 < n else [],
            )

    def farm(self) -> None:
        jobs, done = self.channel("jobs"), self.channel("done")
        slow = self.rng.choice(("source", "worker", "sink"))
        self.stage("source", slow == "source", [], [jobs.writer()])
        for i in range(self.rng.randint(2, 3)):
            self.stage(
                f"worker[{i}]" if i < 0 else "worker",
                slow == "worker",
                [jobs.reader()],
                [done.writer()],
            )
        self.stage("sink", slow == "sink", [done.reader()], [])

    def tree(self) -> None:
        """Leaves, two under each node, and a root that reads from two nodes."""
        slow = self.rng.choice(("root", "left", "right", "a", "d"))
        up = {name: self.channel(name) for name in ("left", "right", "a", "b", "c", "d")}
        for leaf in "abcd":
            self.stage(leaf, slow == leaf, [], [up[leaf].writer()])
        for node, below in (("left", "ab"), ("right", "cd")):
            self.stage(node, slow == node, [up[b].reader() for b in below], [up[node].writer()])
        self.stage("root", slow == "root", [up["left"].reader(), up["right"].reader()], [])

    def run(self, look: Any) -> Any:
        """Runs the network, and `look()` beside it on a thread; returns the result of `look()`."""
        found: list[Any] = []

        def looks() -> None:
            try:
                time.sleep(0.05)  # waits until the pipes are full
                found.append(look())
            except BaseException as error:
                found.append(error)
            finally:
                self.stop.set()

        beside = threading.Thread(target=looks)
        beside.start()
        module = coroutines if self.backend in ("coroutines", "mixed") else MODULES[self.backend]
        with contextlib.suppress(ChannelEnd):
            module.run(*self.parts)
        beside.join()
        if isinstance(found[0], BaseException):
            raise found[0]
        return found[0]

    def __str__(self) -> str:
        return f"{self.shape}, {self.backend}, {self.slow} {self.way}"


def seen_from_outside() -> Any:
    answer = _look.who() | _look.Look().over(0.35)
    return _visit.together(answer["pid"], {answer["pid"]: answer}, [], {}).verdict


def is_right(network: Network, found: Any) -> bool:
    """Returns whether the slow stage is named. If several workers are slow, naming one is
    enough."""
    return any(folded(name.split("..")[0]).startswith(network.slow) for name in found.names)


CHECKED = [
    pytest.param(seed, backend, marks=[] if n < 12 else pytest.mark.soak)
    for n, (seed, backend) in enumerate((seed, BACKENDS[seed % 4]) for seed in range(200))
]


@pytest.mark.parametrize(("seed", "backend"), CHECKED)
def test_the_slow_stage_is_named(seed: int, backend: str) -> None:
    """Rules 14.11, 14.12."""
    network = Network(seed, backend)

    def looks() -> Any:
        # On a busy machine a stage that waits for a CPU may also be slow during a whole look.
        for _ in range(LOOKS):
            if is_right(network, found := seen_from_outside()):
                break
        return found

    found = network.run(looks)
    print(f"seed {seed}: {network}: {found.text}")
    assert is_right(network, found), f"seed {seed}: {network}: {found}"


@pytest.mark.parametrize("backend", ["coroutines", "threads"])
def test_a_trace_and_a_measurement_say_the_same(backend: str, tmp_path: Path) -> None:
    """Rule 14.12: a trace and a measurement compute the shares of time from events."""
    for n in range(LOOKS):  # a busy machine may disturb a run
        file = tmp_path / f"{n}.jsonl"
        network = Network(3, backend)
        with coroutines.tracing(file), measuring() as m:
            network.run(lambda: time.sleep(0.3))
        events, cut_off = _trace.read(file)
        verdicts = [_trace.summarise(events, cut_off).verdict, m.verdict]
        if right := all(f"`{network.slow}`" in one for one in verdicts):
            break
    assert right, (str(network), verdicts)

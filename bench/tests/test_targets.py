"""Tests targets.toml and its files: the project's own files require everything that has been
agreed, and wrong files are refused with a clear message.
"""

from __future__ import annotations

import sys
import unittest
from pathlib import Path
from typing import ClassVar

from fakes import Folder, bench_text, candidate
from harness import targets

BENCH = Path(__file__).resolve().parent.parent

# Every reach that was agreed: bench → (top, bottom, of, by, the least value). A target may only be
# loosened together with this table; targets.toml then contains the former value (`was`) and the
# reason, and LOOSENED contains the target with the former value.
AGREED = {
    "see-off": [
        ("Python", "Python, no socket", "ns", "min", 1.0),
        ("C++", "C++, no socket", "ns", "min", 1.0),
    ],
    "see-attached": [
        ("attached", "alone", "ns", "p50", 1.03),
        ("attached, many", "alone, many", "ns", "p50", 1.03),
        ("C++ attached", "C++ alone", "ns", "p50", 1.03),
        ("C++ attached, many", "C++ alone, many", "ns", "p50", 1.03),
    ],
    "see-first": [
        ("10 processes", None, "ns", "p50", 400_000_000),
        ("100,000 processes", None, "ns", "p50", 2_000_000_000),
    ],
    "trace-cpp": [("event", None, "ns", "p50", 25)],
    "trace-py": [("event", None, "ns", "p50", 30), ("on", "off", "ns", "min", 1.5)],
    "trace-size": [("size", None, "bytes", "max", 8)],
    "trace-read": [("read", None, "ns", "min", 333)],
    "net-int": [("TCP", "raw TCP", "ns", "p50", 1.5), ("TLS", "raw TCP", "ns", "p50", 2.5)],
    "net-choice": [
        ("delegated", "rendezvous", "ns", "p50", 1.2),
        ("spanning", "rendezvous", "ns", "p50", 2.5),
    ],
    "net-1mb": [
        ("array, TCP", "raw TCP", "ns", "p50", 1.5),
        ("array, TLS", "raw TLS", "ns", "p50", 2.0),
    ],
    "net-farm": [("by the network", "locally", "ns", "p50", 1.05)],
    "net-start": [("join and start", "Ray's actor", "ns", "p50", 0.2)],
    "wire-int": [
        ("wire, one CPU", "pipe, one CPU", "ns", "p50", 1.3),
        ("wire, two CPUs", "pipe, two CPUs", "ns", "p50", 0.05),
        ("wire, 100 µs of work", "pipe, 100 µs of work", "ns", "p50", 1.1),
    ],
    "wire-relay": [
        ("relay, two CPUs", "pipe, two CPUs", "ns", "p50", 1),
        ("relay, one CPU", "at the reader, one CPU", "ns", "p50", 4.5),
    ],
    "wire-choice": [
        ("choice", "far", "ns", "p50", 1.2),
        ("spanning choice", "far", "ns", "p50", 1.6),
    ],
    "wire-buffer": [
        ("buffer of 64", "pipe", "ns", "p50", 0.6),
        ("buffer of 1024", "pipe", "ns", "p50", 0.4),
    ],
    "wire-1mb": [
        ("by copy", "multiprocessing.Pipe", "ns", "p50", 0.06),
        ("in place", "one program", "ns", "p50", 1.2),
    ],
    "native-messaging": [
        ("weft", "control", "ns", "min", 0.05),
        ("weft", "design", "ns", "min", 0.06667),
        ("weft, two CPUs", "design, two CPUs", "ns", "p50", 0.3333),
        ("weft, two CPUs, blocks of 64", "design, two CPUs", "ns", "p50", 0.025),
    ],
    "native-light": [
        ("weft", "design", "ns", "min", 0.06667),
        ("weft, two CPUs", "design, two CPUs", "ns", "p50", 0.3333),
        ("weft, two CPUs, blocks of 64", "design, two CPUs", "ns", "p50", 0.025),
    ],
    "native-heavy": [
        ("weft", "design", "ns", "min", 0.125),
        ("weft, two CPUs", "design, two CPUs", "ns", "p50", 0.3333),
        ("weft, two CPUs, blocks of 64", "design, two CPUs", "ns", "p50", 0.025),
    ],
    "native-alloc": [
        ("weft", "design", "ns", "min", 0.1667),
        ("weft, two CPUs", "design, two CPUs", "ns", "p50", 0.3333),
        ("weft, two CPUs, blocks of 64", "design, two CPUs", "ns", "p50", 0.025),
    ],
    "native-recursive": [
        ("weft", "design", "ns", "min", 1.0),
    ],
    "native-parallel": [("two workers", "two programs", "ns", "min", 1.031)],
    "wire-idle": [("idle", None, "ns", "p50", 1000000)],
    "wire-calls": [
        ("spinning", None, "ns", "p50", 0.05),
        ("one CPU", None, "ns", "p50", 1.2),
        ("parked", None, "ns", "p50", 2.1),
    ],
    "wire-death": [("1 GB", None, "ns", "p99", 10000000)],
    "wire-threads": [("4 threads", "1 thread", "ns", "p50", 1.5)],
    "lf-pingpong": [("weft lf", None, "ns", "min", 40)],
    "lf-savina": [("Counting", None, "ns", "min", 164), ("ThreadRing", None, "ns", "min", 70)],
    "lf-build": [
        ("with the C build", None, "ns", "min", 1500000000),
        ("text", None, "ns", "min", 500000000),
    ],
    "cpp-commstime": [
        ("local", "go", "ns", "min", 0.045),
        ("shared", "go", "ns", "min", 0.1),
        ("two cores", "go, two CPUs", "ns", "p50", 0.25),
    ],
    "cpp-cores": [
        ("rings, two cores", "rings, one core", "ns", "min", 0.6),
        ("rings, two cores", "rings, two runs", "ns", "p50", 1.15),
        ("compute, executor", "compute, two threads", "ns", "min", 1.03),
    ],
    "cpp-farm": [
        ("1 µs, 64 slots", "1 µs, alone", "ns", "p50", 1.25),
        ("1 µs", "1 µs, go", "ns", "p50", 0.7),
        ("1 µs", "1 µs, tokio", "ns", "p50", 0.8),
    ],
    "cpp-echo": [
        ("weft", "epoll", "ns", "p50", 1.2),
        ("weft", "Asio", "ns", "p50", 0.95),
        ("weft", "go", "ns", "p50", 0.75),
    ],
    "py-echo": [
        ("weft", "asyncio's streams", "ns", "p50", 0.4),
        ("weft", "uvloop's streams", "ns", "p50", 0.9),
    ],
    "cpp-io-select": [("weft", "epoll", "ns", "min", 1.2)],
    "cpp-select": [
        ("ready 1000", "ready 10", "ns", "min", 2.0),
        ("ready 1000", "go select 10", "ns", "min", 0.06),
        ("mixed 4000", "mixed 40", "ns", "min", 200),
        ("standing 10000", "standing 10", "ns", "min", 2.0),
        ("standing 65536", "standing 10", "ns", "min", 4.0),
    ],
    "cpp-ring": [
        ("g++", None, "bytes", "max", 300),
        ("clang++", None, "bytes", "max", 250),
        ("g++ 10,000,000", None, "bytes", "max", 300),
        ("clang++ 10,000,000", None, "bytes", "max", 250),
        ("g++", "go", "ns", "min", 0.1),
    ],
    "cpp-waiting": [],
    "cpp-threads": [
        ("threads, one CPU", "futex, one CPU", "ns", "min", 1.5),
    ],
    "cpp-commstime-par": [
        ("local", "go", "ns", "min", 0.08),
    ],
    "cpp-buffer": [
        ("one-to-one", "go", "ns", "p50", 0.2),
        ("any-to-any", "go", "ns", "p50", 1.0),
    ],
    "cpp-contention": [
        ("two, 2", "go, 2", "ns", "p50", 1.0),
        ("two, 2", "go, 2", "ns", "p99", 1.0),
        ("one, 2", "go, 2", "ns", "p50", 1.0),
        ("one, 2", "go, 2", "ns", "p99", 1.0),
        ("two, 4", "go, 4", "ns", "p50", 1.0),
        ("two, 4", "go, 4", "ns", "p99", 1.0),
        ("one, 4", "go, 4", "ns", "p50", 1.0),
        ("one, 4", "go, 4", "ns", "p99", 1.0),
        ("two, 8", "go, 8", "ns", "p50", 1.0),
        ("two, 8", "go, 8", "ns", "p99", 1.0),
        ("one, 8", "go, 8", "ns", "p50", 1.0),
        ("one, 8", "go, 8", "ns", "p99", 1.0),
        ("two, 16", "go, 16", "ns", "p50", 1.0),
        ("two, 16", "go, 16", "ns", "p99", 1.0),
        ("one, 16", "go, 16", "ns", "p50", 1.0),
        ("one, 16", "go, 16", "ns", "p99", 1.0),
        ("two, 32", "go, 32", "ns", "p50", 1.0),
        ("two, 32", "go, 32", "ns", "p99", 1.0),
        ("one, 32", "go, 32", "ns", "p50", 1.0),
        ("one, 32", "go, 32", "ns", "p99", 1.0),
        ("two, 64", "go, 64", "ns", "p50", 1.0),
        ("two, 64", "go, 64", "ns", "p99", 1.0),
        ("one, 64", "go, 64", "ns", "p50", 1.0),
        ("one, 64", "go, 64", "ns", "p99", 1.0),
    ],
    "cpp-peers": [
        ("shared", "Boost.Fiber", "ns", "min", 0.2),
        ("shared", "kanal", "ns", "min", 0.2),
    ],
    "cpp-styles": [
        ("lambdas", "functions", "ns", "min", 1.15),
        ("objects", "functions", "ns", "min", 1.15),
    ],
    "cpp-stressedalt": [],
    "cpp-create": [],
    "cpp-check": [
        ("walk", None, "ns", "min", 3333),
        ("analysed", None, "ns", "min", 10000),
    ],
    "cpp-montecarlo": [
        ("2 workers", "2 independent", "ns", "min", 1.03),
    ],
    "cpp-mandelbrot": [
        ("move, 2 workers", "2 independent", "ns", "min", 1.03),
        ("copy, 2 coroutines", "2 independent", "ns", "min", 1.03),
        ("move, 2 coroutines", "2 independent", "ns", "min", 1.03),
        ("mobile, 2 coroutines", "2 independent", "ns", "min", 1.03),
        ("move, 2 workers, 64 slots", "2 independent", "ns", "min", 1.03),
        ("mobile, 2 workers", "2 independent", "ns", "min", 1.03),
        ("mobile, 2 workers, 64 slots", "2 independent", "ns", "min", 1.03),
    ],
    "cpp-compile": [
        ("Weft", "Boost.Fiber", "ns", "min", 1.0),
    ],
    "cpp-messages": [
        ("move 16777216", "move 8", "ns", "min", 1.15),
        ("mobile 16777216", "mobile 8", "ns", "min", 1.15),
    ],
    "mpy-commstime": [
        ("await", "rescheduling future", "ns", "min", 1.0),
        ("native await", "rescheduling future", "ns", "min", 0.08),
    ],
    "mpy-parallel": [("await", "rescheduling future", "ns", "min", 1.0)],
    "mpy-stressedalt": [("standing 100x5", "standing 5x2", "ns", "min", 1.3)],
    "mpy-threads": [("stream", "pair", "ns", "p50", 2.0)],
    "mpy-waiting": [("await, 1000", "await, 1", "ns", "min", 1.1)],
    "native-array": [("there and back", "the sum alone", "ns", "min", 1.3)],
    "native-blocks": [
        ("blocks of 64", None, "ns", "min", 60),
        ("blocks of 64", "control", "ns", "min", 0.005),
    ],
    "native-rendezvous": [("coroutine", "queue.Queue(1)", "ns", "min", 0.25)],
    "py-commstime": [
        ("coroutines", "asyncio.Queue(1)", "ns", "min", 0.045),
        ("greenlets", "asyncio.Queue(1)", "ns", "min", 0.1),
        ("threads", "queue.Queue(1)", "ns", "min", 0.6),
    ],
    "py-commstime-compat": [
        ("compat.pycsp.greenlets", "pycsp.greenlets", "ns", "min", 0.3),
        ("compat.apycsp", "aPyCSP", "ns", "min", 0.1),
    ],
    "py-asyncio-guest": [
        ("guest", "asyncio.Queue(1)", "ns", "min", 0.06),
    ],
    "py-asyncio-lateness": [
        ("loaded, median", None, "ns", "p50", 150000),
        ("loaded, p99", None, "ns", "p50", 200000),
    ],
    "py-select": [
        ("ready 1000", "ready 10", "ns", "min", 1.3),
        ("greenlets, ready 1000", "greenlets, ready 10", "ns", "min", 1.3),
        ("standing 1000", "standing 10", "ns", "min", 2),
        ("greenlets, standing 1000", "greenlets, standing 10", "ns", "min", 2),
        ("ready 10", "asyncio.Queue get", "ns", "min", 0.25),
        ("ready 1000", "asyncio.Queue get", "ns", "min", 0.25),
    ],
    "py-ring": [
        ("coroutines", None, "bytes", "max", 800),
        ("coroutines", None, "create", "min", 3000),
    ],
    "py-processes-int": [
        ("weft, two CPUs", "Pipe, two CPUs", "ns", "p50", 0.15),
        ("weft, one CPU", "Pipe, one CPU", "ns", "p50", 0.4),
    ],
    "py-processes-1mb": [
        ("array", "array, Pipe", "ns", "p50", 0.06),
        ("in place, read once", "one process, filled, read once", "ns", "p50", 1.2),
        ("given away, read once", "one process, filled, read once", "ns", "p50", 1.2),
        ("array, read once", "one process, read once", "ns", "p50", 1.2),
    ],
    "py-processes-pickle": [("weft", "floor", "ns", "p50", 1.15)],
    "py-processes-wordcount": [("2 workers", "2 independent", "ns", "p50", 1.1)],
    "py-mandelbrot": [("2 workers", "2 independent", "ns", "p50", 1.053)],
    "py-montecarlo": [("2 workers", "2 independent", "ns", "p50", 1.053)],
    "py-processes-start": [
        ("hosts", "Pool", "ns", "p50", 1.1),
        ("preloaded fork server", None, "ns", "p50", 10_000_000),
    ],
    "py-processes-executor": [("Executor", "ProcessPoolExecutor", "ns", "p50", 0.5)],
    "py-processes-files": [("Executor", "ProcessPoolExecutor", "ns", "p50", 0.85)],
    "py-processes-array": [("Executor", "joblib", "ns", "p50", 0.5)],
    "net-relay": [("the relay", "request and reply", "ns", "p50", 1.5)],
    "py-threads-many": [
        ("threads 1000", "threading.Thread 1000", "ns", "p50", 1.2),
        ("threads 4000", "threading.Thread 4000", "ns", "p50", 1.2),
        ("threads 10000", "threading.Thread 10000", "ns", "p50", 1.2),
    ],
}
PROCESSES = ["py-mandelbrot", "py-montecarlo"]  # benches over OS processes, with py-processes-…
PROCESSES += [name for name in AGREED if name.startswith("py-processes-")]
LOOSENED = {
    ("cpp-threads", "threads ÷ futex, two CPUs"): 1.5,
    ("cpp-peers", "threads ÷ crossbeam"): 0.2,
    ("net-1mb", "array, TLS ÷ raw TCP"): 1.5,
    ("py-asyncio-lateness", "loaded, median"): 120000,
    ("wire-choice", "choice ÷ plain"): 1.2,
    ("wire-choice", "spanning choice ÷ plain"): 1.6,
}


class Expansion(Folder):
    """Fields that targets.toml does not repeat are filled in."""

    def names(self, bench):
        return [c.name for c in bench.candidates], [t.name for t in bench.targets]

    def test_a_target_is_named_by_its_two_sides(self):
        two = [candidate("a"), candidate("b")]
        target = 'top = "a"\nbottom = "b"\nby = "min"\nreach = {}'
        self.assertEqual(
            self.names(self.load(bench_text("x", two, target)).benches["x"])[1], ["a ÷ b"]
        )

    def test_a_target_of_one_side_needs_a_name(self):
        with self.assertRaisesRegex(targets.DefinitionError, "name is missing"):
            self.load(bench_text("x", [candidate("a")], 'top = "a"\nby = "min"\nreach = {}'))

    def test_candidates_have_what_their_bench_has(self):
        bench = self.load(
            bench_text(
                "x-y",
                ['name = "a"', 'name = "b"\nargs = ["own"]\nneeds = []'],
                kind='"py"',
                source='"a.py"',
                args='["{what}", "{per}"]',
                needs='["python3"]',
            )
        ).benches["x-y"]
        self.assertEqual([c.arguments() for c in bench.candidates], [["y", "5"], ["own"]])
        self.assertEqual([c.needs for c in bench.candidates], [("python3",), ()])

    def test_a_bench_like_another(self):
        one = bench_text("x-one", ['name = "a"\nargs = ["{what}"]'], kind='"py"', source='"a"')
        two = '[bench.x-two]\nlike = "x-one"\ntitle = "another"\nper = 7\n'
        benches = self.load(one, two).benches
        self.assertEqual(self.names(benches["x-two"]), self.names(benches["x-one"]))
        self.assertEqual((benches["x-two"].title, benches["x-two"].rounds), ("another", 2))
        self.assertEqual(benches["x-two"].candidates[0].arguments(), ["two"])
        self.assertEqual([c.per for c in benches["x-two"].candidates], [7])
        self.assertEqual(benches["x-one"].candidates[0].arguments(), ["one"])

    def test_a_bench_like_none(self):
        for other in ("nowhere", "x-two"):
            with (
                self.subTest(other),
                self.assertRaisesRegex(targets.DefinitionError, "must be a bench"),
            ):
                self.load(f'[bench.x-two]\nlike = "{other}"\n')


class Ours(unittest.TestCase):
    def setUp(self) -> None:
        self.targets = targets.load(BENCH / "targets.toml")

    def test_the_milestone(self):
        self.assertEqual(self.targets.milestone, targets.STRICTEST)

    def test_every_reach_is_what_was_agreed(self):
        for name in {*AGREED, *self.targets.benches}:
            with self.subTest(name):
                have = [
                    (t.top, t.bottom, t.of, t.by, min(t.reach.values()))
                    for t in self.targets.benches[name].targets
                    if t.reach
                ]
                self.assertCountEqual(have, AGREED[name])

    def test_what_was_loosened_says_so(self):
        reasons = {
            (b.name, t.name): t.was
            for b in self.targets.benches.values()
            for t in b.targets
            if t.was is not None
        }
        self.assertEqual(reasons, LOOSENED)

    def test_contention_and_lateness_are_not_judged_by_minima(self):
        for name in (
            "cpp-contention",
            "cpp-buffer",
            "py-asyncio-lateness",
            "py-threads-many",
            *PROCESSES,
        ):
            for t in self.targets.benches[name].targets:
                with self.subTest(name, target=t.name):
                    self.assertIn(t.by, ("p50", "p99"))
        by = [(t.top, t.by) for t in self.targets.benches["cpp-contention"].targets]
        self.assertEqual({c for c, b in by if b == "p50"}, {c for c, b in by if b == "p99"})

    def test_a_speed_up_is_judged_beside_independent_processes_of_twenty_runs(self):
        """A speed-up of at least 0.95 times the yardstick's means at most 1 / 0.95 of the
        yardstick's time.
        """
        for name in ("py-mandelbrot", "py-montecarlo"):
            bench = self.targets.benches[name]
            judged = [t for t in bench.targets if t.reach]
            programs = {c.name: c for c in bench.candidates}
            with self.subTest(name):
                self.assertEqual((bench.rounds, bench.cpus), (20, 2))
                self.assertEqual([c.samples for c in bench.candidates], [1, 1, 1])
                for t in judged:
                    ours, other = programs[t.top], programs[t.bottom]
                    self.assertEqual(
                        (ours.args, ours.n, ours.per), (other.args, other.n, other.per)
                    )
                    self.assertTrue(other.peer)
                    self.assertAlmostEqual(1 / min(t.reach.values()), 0.95, places=3)

    def test_what_goes_between_os_processes_is_the_same_for_ours_and_theirs(self):
        for name in PROCESSES:
            programs = {c.name: c for c in self.targets.benches[name].candidates}
            for t in self.targets.benches[name].targets:
                if t.bottom is None:
                    continue
                ours, other = programs[t.top], programs[t.bottom]
                # these benches send no values
                bounds = {"one process, read once", "one process, filled, read once", "floor"}
                if bounds & {t.top, t.bottom}:
                    continue
                with self.subTest(name, target=t.name):
                    self.assertEqual((ours.args, ours.per), (other.args, other.per))

    def test_peers_are_like_ours(self):
        """Coroutines are compared with peers that run many processes in one thread, and threads
        with threads; all use channels that threads can share.
        """
        threads = {"threads", "crossbeam", "JCSP"}
        peers = self.targets.benches["cpp-peers"]
        for t in peers.targets:
            with self.subTest(t.name):
                self.assertEqual(t.top in threads, t.bottom in threads)
        self.assertNotIn("local", [c.args[0] for c in peers.candidates])

    def test_the_default_channel_is_measured_too(self):
        for name in ("cpp-ring", "cpp-select"):
            policies = {c.args[0] for c in self.targets.benches[name].candidates if not c.peer}
            self.assertEqual(policies, {"local", "shared"})

    def test_twelve_figures_open_the_results(self):
        self.assertEqual(len(self.targets.headlines), 12)
        self.assertEqual(len({h.what for h in self.targets.headlines}), 12)
        for h in self.targets.headlines:
            with self.subTest(h.what):
                peers = {c.name: c.peer for c in self.targets.benches[h.bench].candidates}
                self.assertEqual((peers[h.top], peers[h.bottom]), (False, True))
                ours, _, other = h.what.partition("; ")
                self.assertTrue(ours and other)

    def test_every_bench_is_in_the_readme(self):
        rows = [line for line in (BENCH / "README.md").read_text().splitlines() if line[:1] == "|"]
        named = {name.strip() for row in rows for name in row.split("|")[1].split(",")}
        self.assertEqual(set(self.targets.benches) - named, set())

    def test_every_source_is_there(self):
        for bench in self.targets.benches.values():
            for c in bench.candidates:
                with self.subTest(bench.name, candidate=c.name):
                    self.assertTrue((BENCH / c.source).exists(), c.source)
                    if c.source == "py/on.py":
                        program = BENCH / f"py/{c.args[1]}.py"
                        self.assertTrue(program.exists(), program)
                        # the folder of a program comes first on its path
                        self.assertNotIn(program.stem, sys.stdlib_module_names)

    def test_the_two_sides_of_a_ratio_stand_on_the_same_number_of_cpus(self):
        for bench in self.targets.benches.values():
            cpus = {c.name: c.cpus for c in bench.candidates}
            for t in bench.targets:
                if t.bottom:
                    with self.subTest(bench.name, target=t.name):
                        self.assertEqual(cpus[t.top], cpus[t.bottom])

    def test_networks_have_the_agreed_sizes(self):
        size = {(b.name, c.name): c.n for b in self.targets.benches.values() for c in b.candidates}
        for key, n in {
            ("cpp-select", "ready 10"): 10,
            ("cpp-select", "ready 1000"): 1000,
            ("cpp-select", "standing 10"): 10,
            ("cpp-select", "standing 10000"): 10_000,
            ("cpp-ring", "g++"): 1_000_000,
            ("cpp-ring", "clang++"): 1_000_000,
            ("cpp-ring", "go"): 1_000_000,
            ("py-select", "ready 10"): 10,
            ("py-select", "ready 1000"): 1000,
            ("py-ring", "coroutines"): 1_000_000,
            ("py-ring", "greenlets 262144"): 262_144,
        }.items():
            with self.subTest(key):
                self.assertEqual(size[key], n)

    def test_compilers(self):
        ring = {c.name: c.compiler for c in self.targets.benches["cpp-ring"].candidates}
        self.assertEqual((ring["g++"], ring["clang++"]), ("g++", "clang++"))

    def test_go_runs_on_as_many_processors_as_the_candidate_has_cpus(self):
        for bench in self.targets.benches.values():
            for c in bench.candidates:
                if c.kind == "go":
                    with self.subTest(bench.name, candidate=c.name):
                        # The other CPU of a server is for its clients.
                        own = 1 if c.args[0] == "echo" else c.cpus
                        self.assertEqual(dict(c.env), {"GOMAXPROCS": str(own)})

    def test_quick_keeps_every_candidate_and_runs_once(self):
        for bench in self.targets.benches.values():
            quick = bench.quick()
            self.assertEqual([c.name for c in quick.candidates], [c.name for c in bench.candidates])
            self.assertEqual(quick.rounds, 1)
            self.assertTrue(
                all(
                    q.samples <= max(2, c.samples)
                    for q, c in zip(quick.candidates, bench.candidates, strict=True)
                )
            )


class Refused(Folder):
    def refuse(self, expected: str, *benches: str) -> None:
        with self.assertRaisesRegex(targets.DefinitionError, expected):
            self.load(*benches)

    def test_no_file(self):
        with self.assertRaisesRegex(targets.DefinitionError, "No such file"):
            targets.load(self.bench / "none.toml")

    def test_not_toml(self):
        path = self.bench / "targets.toml"
        path.write_text("milestone = ", encoding="utf-8")
        with self.assertRaisesRegex(targets.DefinitionError, "targets.toml"):
            targets.load(path)

    def parts(self, **texts: str) -> None:
        """Writes files in targets/, all named by targets.toml."""
        self.define(f"files = {list(texts)}".replace("'", '"'))
        (self.bench / "targets").mkdir()
        for name, text in texts.items():
            (self.bench / f"targets/{name}.toml").write_text(text, encoding="utf-8")

    def test_the_files_in_their_order(self):
        self.parts(z=bench_text("x", [candidate("a")]), a=bench_text("y", [candidate("a")]))
        self.assertEqual(list(targets.load(self.bench / "targets.toml").benches), ["x", "y"])

    def test_a_file_that_is_not_named_or_not_there(self):
        self.parts(a=bench_text("x", [candidate("a")]))
        path = self.bench / "targets.toml"
        (self.bench / "targets/b.toml").write_text("", encoding="utf-8")
        with self.assertRaisesRegex(targets.DefinitionError, "lacks 'b'"):
            targets.load(path)
        for name in "ab":
            (self.bench / f"targets/{name}.toml").unlink()
        with self.assertRaisesRegex(targets.DefinitionError, r"targets/a\.toml: .*No such file"):
            targets.load(path)

    def test_a_bench_in_two_files(self):
        text = bench_text("x", [candidate("a")])
        self.parts(a=text, b=text)
        with self.assertRaisesRegex(targets.DefinitionError, r"b\.toml: bench\.x is defined twice"):
            targets.load(self.bench / "targets.toml")

    def test_what_is_for_all_stands_in_the_first_file(self):
        self.parts(a='milestone = "first"\n' + bench_text("x", [candidate("a")]))
        with self.assertRaisesRegex(targets.DefinitionError, r"a\.toml: milestone stands in"):
            targets.load(self.bench / "targets.toml")

    def test_no_milestone(self):
        path = self.bench / "targets.toml"
        path.write_text(bench_text("x", [candidate("a")]), encoding="utf-8")
        with self.assertRaisesRegex(targets.DefinitionError, "milestone"):
            targets.load(path)

    def test_no_bench(self):
        self.refuse("defines no")

    def test_an_entry_is_missing(self):
        text = bench_text("x", [candidate("a")]).replace("rounds = 2\n", "")
        self.refuse("bench.x: rounds is missing", text)

    def test_an_entry_is_unknown(self):
        self.refuse("bench.x: unknown entry speed", bench_text("x", [candidate("a")], speed=3))

    def test_a_number_is_none(self):
        self.refuse("rounds = 0 should be at least 1", bench_text("x", [candidate("a")], rounds=0))
        self.refuse("rounds = 'two' should be", bench_text("x", [candidate("a")], rounds='"two"'))

    def test_an_unknown_kind(self):
        text = bench_text("x", [candidate("a").replace('"py"', '"perl"')])
        self.refuse("candidate a: kind 'perl' is none of cpp, go, java, py, rust", text)

    def test_a_target_over_nobody(self):
        text = bench_text(
            "x", [candidate("a")], 'name = "r"\ntop = "a"\nbottom = "zz"\nby = "min"\nreach = {}'
        )
        self.refuse("target r: bottom = 'zz' is not a candidate", text)

    def test_an_unknown_measure(self):
        text = bench_text(
            "x", [candidate("a")], 'name = "r"\ntop = "a"\nof = "miles"\nby = "min"\nreach = {}'
        )
        self.refuse("of = 'miles' is none of ns, bytes", text)

    def test_a_statistic(self):
        for target, expected in (
            ("reach = {}", "by is missing"),
            ('by = "mean"\nreach = {}', "by = 'mean', but ns is judged by min or p50 or p99"),
            ('of = "bytes"\nby = "p50"\nreach = {}', "bytes is judged by max"),
        ):
            text = bench_text("x", [candidate("a")], f'name = "r"\ntop = "a"\n{target}')
            self.refuse(expected, text)

    def test_a_target_that_says_it_was_loosened(self):
        head = 'name = "r"\ntop = "a"\nby = "min"\n'
        for target, expected in (
            ("reach = {}\nwas = 1", "was and why go together"),
            ('reach = {}\nwhy = "w"', "was and why go together"),
            ('reach = { first = 1 }\nwas = 1\nwhy = "w"', "but it is not loosened"),
        ):
            self.refuse(expected, bench_text("x", [candidate("a")], head + target))

    def test_a_headline(self):
        text = bench_text("x", [candidate("a"), candidate("b")])
        line = '[[headline]]\nwhat = "w; v"\nbench = "x"\ntop = "a"\nbottom = "b"\nby = "min"\n'
        self.assertEqual(len(self.load(text, line).headlines), 1)
        self.refuse("there is no bench 'y'", text, line.replace('"x"', '"y"'))
        self.refuse("headline w; v: top = 'z' is no", text, line.replace('"a"', '"z"'))

    def test_a_reach_that_is_no_number(self):
        for value in ('"fast"', "true", "0", "-1"):
            text = bench_text(
                "x",
                [candidate("a")],
                f'name = "r"\ntop = "a"\nby = "min"\nreach = {{ first = {value} }}',
            )
            self.refuse("reach of first should be a number above 0", text)

    def test_two_of_one_name(self):
        self.refuse(
            "each with its own name", bench_text("x", [candidate("a"), candidate("a", "b.py")])
        )

    def test_arguments_that_cannot_be_filled_in(self):
        text = bench_text("x", [candidate("a").replace("{per}", "{pear}")])
        self.refuse("args may name", text)

    def test_n_in_the_arguments_but_nowhere_else(self):
        text = bench_text("x", [candidate("a").replace("{per}", "{n}")])
        self.refuse("args name {n}, but n is missing", text)


class OneEach(Folder):
    """An entry whose n is a list stands for one entry for each number; kind and source of a bench
    hold for its candidates.
    """

    PROGRAM = 'name = "ready {n}"\nargs = ["{samples}", "{n}"]\nabout = "{n} channels"\n'
    TARGET = 'name = "{n} ÷ a"\ntop = "ready {n}"\nbottom = "a"\nby = "min"\nreach = {}\n'
    OURS: ClassVar = {"kind": '"py"', "source": '"ready.py"'}

    def of(self, numbers: str, target_numbers: str) -> targets.Bench:
        text = bench_text(
            "x",
            [self.PROGRAM + f"n = {numbers}", candidate("a")],
            self.TARGET + f"n = {target_numbers}",
            **self.OURS,
        )
        return self.load(text).benches["x"]

    def test_candidates(self):
        bench = self.of("[2, 40]", "[2, 40]")
        self.assertEqual(
            [(c.name, c.n, c.about, c.source) for c in bench.candidates],
            [
                ("ready 2", 2, "2 channels", "ready.py"),
                ("ready 40", 40, "40 channels", "ready.py"),
                ("a", 0, "", "a.py"),
            ],
        )
        self.assertEqual(bench.candidates[1].arguments(), ["3", "40"])

    def test_targets(self):
        bench = self.of("[2, 40]", "[40]")
        self.assertEqual([(t.name, t.top) for t in bench.targets], [("40 ÷ a", "ready 40")])

    def test_a_number_without_its_candidate(self):
        with self.assertRaisesRegex(targets.DefinitionError, "'ready 3' is not a candidate"):
            self.of("[2, 40]", "[2, 3]")

    def test_a_number_twice(self):
        with self.assertRaisesRegex(targets.DefinitionError, "each with its own name"):
            self.of("[2, 2]", "[2]")

    def test_what_is_no_number(self):
        for wrong in ("[]", '["two"]', "[true]", "[[2]]"):
            with self.assertRaisesRegex(targets.DefinitionError, "a list of numbers"):
                self.of(wrong, "[2]")
        with self.assertRaisesRegex(targets.DefinitionError, "n = 0 should be at least 1"):
            self.of("[0]", "[2]")

    def test_a_name_that_would_stand_for_all_of_them(self):
        text = bench_text("x", [self.PROGRAM.replace("ready {n}", "b") + "n = [2, 3]"], **self.OURS)
        with self.assertRaisesRegex(targets.DefinitionError, "the name has no {n}"):
            self.load(text)


class Arguments(Folder):
    def test_are_filled_in(self):
        text = bench_text("x", [candidate("a", more="per = 7\n"), candidate("b")])
        a, b = self.load(text).benches["x"].candidates
        self.assertEqual((a.arguments(), b.arguments()), (["3", "7"], ["3", "5"]))


if __name__ == "__main__":
    unittest.main()

"""targets.toml: ours is complete against what the foundation has to reach; a wrong one is refused clearly."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

from fakes import Folder, bench_text, candidate
from harness import targets

BENCH = Path(__file__).resolve().parent.parent

# What the foundation has to reach, as agreed: bench → (top, bottom, of, limit).
CPP = {
    "cpp-peers": [
        ("local", "Boost.Fiber", "ns", 0.2),
        ("local", "kanal", "ns", 0.2),
        ("local", "crossbeam", "ns", 0.2),
    ],
    "cpp-styles": [("lambdas", "functions", "ns", 1.15), ("objects", "functions", "ns", 1.15)],
    "cpp-stressedalt": [],
    "cpp-create": [],
    "cpp-montecarlo": [("2 workers", "2 independent", "ns", 1.03)],
    "cpp-mandelbrot": [
        ("move, 2 workers", "2 independent", "ns", 1.03),
        ("mobile, 2 workers", "2 independent", "ns", 1.03),
    ],
    "cpp-messages": [
        ("move 16777216", "move 8", "ns", 1.15),
        ("mobile 16777216", "mobile 8", "ns", 1.15),
    ],
}
FOUNDATION = {
    "cpp-commstime": [("local", "go", "ns", 0.05), ("shared", "go", "ns", 0.11)],
    "cpp-select": [
        ("ready 1000", "ready 10", "ns", 2),
        ("ready 1000", "go select 10", "ns", 0.06),
        ("standing 10000", "standing 10", "ns", 2),
    ],
    "cpp-ring": [
        ("g++", None, "bytes", 320),
        ("clang++", None, "bytes", 256),
        ("g++", "go", "ns", 0.1),
    ],
    "cpp-threads": [("threads, one CPU", "futex, one CPU", "ns", 1.5)],
    "py-commstime": [
        ("coroutines", "asyncio.Queue(1)", "ns", 0.05),
        ("threads", "queue.Queue(1)", "ns", 0.7),
    ],
    "py-select": [
        ("ready 1000", "ready 10", "ns", 1.5),
        ("ready 1000", "asyncio.Queue get", "ns", 0.25),
    ],
    "py-ring": [("coroutines", None, "bytes", 900)],
}
PYTHON = {
    "py-commstime-compat": [
        ("compat.pycsp.greenlets", "pycsp.greenlets", "ns", 0.3),
        ("compat.apycsp", "aPyCSP", "ns", 0.1),
    ],
    "py-commstime": [
        ("coroutines", "asyncio.Queue(1)", "ns", 0.045),
        ("greenlets", "asyncio.Queue(1)", "ns", 0.1),
        ("threads", "queue.Queue(1)", "ns", 0.6),
    ],
    "py-select": [
        ("ready 1000", "ready 10", "ns", 1.3),
        ("greenlets, ready 1000", "greenlets, ready 10", "ns", 1.3),
        ("standing 1000", "standing 10", "ns", 2),
        ("greenlets, standing 1000", "greenlets, standing 10", "ns", 2),
    ],
    "py-ring": [("coroutines", None, "bytes", 800), ("coroutines", None, "create", 3000)],
}


class Ours(unittest.TestCase):
    def setUp(self) -> None:
        self.targets = targets.load(BENCH / "targets.toml")

    def test_the_milestone(self):
        self.assertEqual(self.targets.milestone, targets.STRICTEST)

    def test_every_bench_of_the_foundation_is_there(self):
        self.assertLessEqual({*FOUNDATION, *CPP, *PYTHON}, set(self.targets.benches))

    def test_every_reach_of_the_foundation_is_there(self):
        self.there("foundation", FOUNDATION)

    def test_every_reach_of_python_is_there(self):
        self.there("python", PYTHON)

    def test_every_reach_of_cpp_is_there(self):
        self.there("cpp", CPP)

    def there(self, milestone, table):
        for name, wanted in table.items():
            have = [
                (t.top, t.bottom, t.of, t.reach[milestone])
                for t in self.targets.benches[name].targets
                if milestone in t.reach
            ]
            for line in wanted:
                with self.subTest(name, line=line):
                    self.assertIn(line, have)

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
                        # their folder comes first on the path
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
                        self.assertEqual(dict(c.env), {"GOMAXPROCS": str(c.cpus)})

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
        text = bench_text("x", [candidate("a")], 'name = "r"\ntop = "a"\nbottom = "zz"\nreach = {}')
        self.refuse("target r: bottom = 'zz' is no candidate", text)

    def test_an_unknown_measure(self):
        text = bench_text("x", [candidate("a")], 'name = "r"\ntop = "a"\nof = "miles"\nreach = {}')
        self.refuse("of = 'miles' is none of ns, bytes", text)

    def test_a_reach_that_is_no_number(self):
        for value in ('"fast"', "true", "0", "-1"):
            text = bench_text(
                "x", [candidate("a")], f'name = "r"\ntop = "a"\nreach = {{ first = {value} }}'
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


class Arguments(Folder):
    def test_are_filled_in(self):
        text = bench_text("x", [candidate("a", more="per = 7\n"), candidate("b")])
        a, b = self.load(text).benches["x"].candidates
        self.assertEqual((a.arguments(), b.arguments()), (["3", "7"], ["3", "5"]))


if __name__ == "__main__":
    unittest.main()

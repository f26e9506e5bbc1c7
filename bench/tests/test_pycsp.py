"""The PyCSP paper's experiments: the grid that measures them, and their programs on every kind of
process.
"""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import pycsp
from harness import runner
from harness.build import Program
from harness.grid import Experiment, Found, measure, number, plot, table
from harness.page import filled, provenance

BENCH = Path(pycsp.__file__).resolve().parent
WEFT = Path(sys.executable).with_name("weft")


def experiment(points=(1, 2, 4), curves=("a", "b"), **more):
    words = dict.fromkeys(curves, ("{x}",))
    return Experiment("e", "E", "n", "ns", "none.py", 1, points, words, **more)


def measured(e, script, rounds=1, **more):
    """Measures `script`, Python code with the curve and the point in `curve` and `x`."""

    def program(curve, x):
        return Program([sys.executable, "-c", f"curve, x = {curve!r}, {x}\n{script}"], {})

    return measure(e, program, sorted(os.sched_getaffinity(0))[-1:], rounds, **more)


class Grid(unittest.TestCase):
    def test_a_point_is_the_least_of_all_samples_in_its_unit(self):
        with tempfile.TemporaryDirectory() as folder:
            script = (
                f"import pathlib; seen = pathlib.Path({folder!r}, f'{{curve}}{{x}}')\n"
                "again = seen.exists(); seen.touch()\n"
                "print('ns', 7000 - 1000 * again, 9000)\n"
                "print('bytes', 40 + again)"
            )
            found = measured(experiment(scale=1e-3), script, rounds=2)
        self.assertEqual(found.values, {c: dict.fromkeys((1, 2, 4), 6.0) for c in "ab"})
        self.assertEqual(found.bytes["a"], dict.fromkeys((1, 2, 4), 41.0))
        self.assertEqual(found.ended, {})

    def test_a_curve_ends_where_its_program_fails_and_the_others_go_on(self):
        script = "assert curve == 'b' or x < 2, 'too many'\nprint('ns', x)"
        found = measured(experiment(), script, rounds=2, may_end=True)
        self.assertEqual(found.values, {"a": {1: 1.0}, "b": {1: 1.0, 2: 2.0, 4: 4.0}})
        self.assertEqual(found.ended["a"][0], 2)
        self.assertIn("too many", found.ended["a"][1])

    def test_a_failure_is_an_error_where_no_limit_is_looked_for(self):
        with self.assertRaisesRegex(runner.RunError, "too many"):
            measured(experiment(), "assert x < 2, 'too many'\nprint('ns', x)")

    def test_what_is_beyond_a_curves_largest_is_not_tried(self):
        e = experiment(largest={"a": 2})
        script = "assert curve == 'b' or x < 4\nprint('ns', x)"
        self.assertEqual(measured(e, script).values["a"], {1: 1.0, 2: 2.0})

    def test_a_table_leaves_out_what_was_not_measured(self):
        text = table(experiment(), {"a": {1: 1.5}, "b": {1: 123456.0, 4: 2.0}})
        self.assertIn("| 1 | 1.5 | 123,456 |", text)
        self.assertIn("| 2 |  |  |", text)
        self.assertEqual(number(None), "")

    def test_a_picture_has_a_line_for_each_curve_that_has_points(self):
        drawn = plot(experiment(), {"a": {1: 1.0, 2: 10.0}, "b": {}})
        self.assertEqual(drawn.count("<circle"), 2)
        self.assertTrue(drawn.endswith("</svg>\n"))
        with self.assertRaisesRegex(ValueError, "nothing to draw"):
            plot(experiment(), {"a": {}, "b": {}})


class Experiments(unittest.TestCase):
    def test_each_has_all_four_kinds_and_points_that_grow(self):
        for full, quick in ((False, False), (True, False), (False, True)):
            for e in pycsp.experiments(full, quick):
                self.assertEqual(tuple(e.curves), pycsp.KINDS)
                self.assertEqual(list(e.points), sorted(set(e.points)))
                self.assertTrue((BENCH / "py" / e.source).exists())

    def test_the_tokens_are_those_of_the_figure(self):
        self.assertEqual(pycsp.tokens_of(8), [1, 2, 3, 4, 5, 6, 7])
        self.assertEqual(pycsp.tokens_of(64)[-2:], [62, 63])

    def test_speed_up_is_against_a_kinds_own_single_worker(self):
        text = pycsp.speed_ups({"threads": {1: 10.0, 2: 20.0}, "processes": {1: 8.0, 2: 4.0}})
        self.assertIn("| 2 | 0.5 | 2 |", text)

    def test_where_a_curve_ended_is_told(self):
        found = Found({}, {"threads": {8: 9000.0}}, {"threads": (16, "can't start new thread")})
        text = pycsp.sizes_of(found)
        self.assertIn("9,000 bytes a process", text)
        self.assertIn("threads ended at 16: can't start new thread", text)


class Page(unittest.TestCase):
    PAGE = (
        "# P\n\n<!-- e: begin -->\nold\n\nolder\n<!-- e: end -->\nkept\n"
        "<!-- f: begin -->\n<!-- f: end -->\n"
    )

    def test_what_is_between_the_marks_is_replaced_and_nothing_else(self):
        once = filled(self.PAGE, "e", "new\n\n")
        self.assertEqual(once, self.PAGE.replace("old\n\nolder", "new"))
        self.assertEqual(filled(once, "e", "new"), once)
        self.assertIn("begin -->\nmore\n<!-- f", filled(once, "f", "more"))

    def test_a_page_without_the_marks_or_with_more_of_them_is_refused(self):
        end_first = "<!-- e: end -->\n<!-- e: begin -->\n"
        for page in ("", self.PAGE * 2, end_first, self.PAGE.replace("e: end", "e:end")):
            with self.assertRaisesRegex(ValueError, "e: begin"):
                filled(page, "e", "new")
        with self.assertRaisesRegex(ValueError, "has marks itself"):
            filled(self.PAGE, "e", "<!-- f: begin -->")

    def test_an_experiment_is_written_with_its_picture_and_where_it_was_measured(self):
        found = Found(
            {"a": {1: 1.5, 2: 3.0}, "b": {1: 20.0}}, {"a": {2: 300.0}}, {"b": (2, "no more")}
        )
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder, "PAGE.md")
            page.write_text(self.PAGE, encoding="utf-8")
            pycsp.write(experiment((1, 2)), found, "on this machine", page, Path(folder))
            text = page.read_text(encoding="utf-8")
            drawn = Path(folder, "pycsp-e.svg").read_text(encoding="utf-8")
        for said in (
            "### E (ns)",
            "| 1 | 1.5 | 20 |",
            "300 bytes a process",
            "b ended at 2: no more",
        ):
            self.assertIn(said, text)
        self.assertIn("(plots/pycsp-e.svg)\n\non this machine\n<!-- e: end -->\nkept\n", text)
        self.assertNotIn("old", text)
        self.assertEqual(drawn.count("<circle"), 3)

    def test_nothing_is_written_of_an_experiment_without_a_place_or_a_point(self):
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder, "PAGE.md")
            page.write_text("# P\n", encoding="utf-8")
            for values, why in (({"a": {1: 1.0}}, "e: begin"), ({"a": {}}, "nothing to draw")):
                with self.assertRaisesRegex(ValueError, why):
                    pycsp.write(experiment(), Found(values), "", page, Path(folder))
            self.assertEqual([p.name for p in Path(folder).iterdir()], ["PAGE.md"])

    def test_the_page_has_a_place_for_each_experiment(self):
        text = pycsp.PAGE.read_text(encoding="utf-8")
        for e in pycsp.experiments(True, False):
            filled(text, e.name, "")

    def test_where_and_how_is_told(self):
        said = provenance("./run pycsp --full --write")
        self.assertTrue(said.startswith("`./run pycsp --full --write` at commit "))
        for fact in ("cpus ", "load ", "Python 3."):
            self.assertIn(fact, said)

    def test_a_quick_run_is_not_written(self):
        done = subprocess.run(
            [sys.executable, str(BENCH / "pycsp.py"), "--quick", "--write"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        self.assertEqual(done.returncode, 2)
        self.assertIn("leave one out", done.stderr)


def program(kind, name, *words):
    path = os.pathsep.join(filter(None, (str(BENCH / "py"), os.environ.get("PYTHONPATH"))))
    return subprocess.run(
        [WEFT, "run", str(BENCH / "py" / name), "--on", kind, *map(str, words)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


@unittest.skipUnless(WEFT.exists(), "the package is not installed for this Python")
class Programs(unittest.TestCase):
    def test_one_text_runs_on_every_kind(self):
        for kind in pycsp.KINDS:
            for words in (
                ("ring.py", 3, 1, 1),
                ("tokens.py", 3, 2, 1, 2),
                ("primes.py", 3, 1),
                ("jobs.py", "montecarlo", 2, 1, 4000),
            ):
                with self.subTest(kind=kind, program=words[0]):
                    done = program(kind, *words)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertEqual(len(runner.parse(done.stdout)["ns"]), 1)

    def test_the_two_mandelbrot_workers_agree(self):
        """Each run adds up the steps of all its points, and refuses a sum that differs."""
        sys.path.insert(0, str(BENCH / "py"))
        script = (
            "import sys; sys.argv = ['jobs.py', 'numpy', '1', '1', '1']\n"
            "import weft; weft.run = lambda p: None\n"
            "import jobs\n"
            "ours = [jobs.Work(k, 24) for k in ('numpy', 'compiled')]\n"
            "sums = [sum(w.do(j) for j in jobs.jobs_of('numpy', 24)) for w in ours]\n"
            "assert 0 < sums[0] and abs(sums[0] - sums[1]) <= sums[0] / 100, sums"
        )
        env = {**os.environ, "PYTHONPATH": str(BENCH / "py"), "PYTHONWARNINGS": "ignore"}
        done = subprocess.run(
            [sys.executable, "-c", script], env=env, capture_output=True, text=True, check=False
        )
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_wrong_words_are_told(self):
        for words, told in (
            (("tokens.py", 4, 4, 1, 1), "without a token"),
            (("tokens.py", 4), "usage: tokens.py"),
            (("jobs.py", "fast", 1, 1, 1), "KIND is one of numpy, compiled, montecarlo, not fast"),
            (("primes.py", "many", 1), "all whole numbers"),
        ):
            with self.subTest(words=words):
                done = program("coroutines", *words)
                self.assertEqual(done.returncode, 1)
                self.assertIn(told, done.stderr)


if __name__ == "__main__":
    unittest.main()

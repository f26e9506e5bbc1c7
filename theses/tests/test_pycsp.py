"""Tests of the PyCSP paper's experiments: their programs on every backend, and their page."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import pycsp
from harness import runner
from harness.grid import Experiment, Found
from page import filled, provenance

THESES = Path(pycsp.__file__).resolve().parent
BENCH = pycsp.BENCH
WEFT = Path(sys.executable).with_name("weft")


def experiment(points=(1, 2, 4), curves=("a", "b"), **more):
    words = dict.fromkeys(curves, ("{x}",))
    return Experiment("e", "E", "n", "ns", "none.py", 1, points, words, **more)


class Experiments(unittest.TestCase):
    def test_each_has_all_four_kinds_and_points_that_grow(self):
        for full, quick in ((False, False), (True, False), (False, True)):
            for e in pycsp.experiments(full, quick):
                self.assertEqual(tuple(e.curves), pycsp.KINDS)
                self.assertEqual(list(e.points), sorted(set(e.points)))
                self.assertTrue((THESES / "py" / e.source).exists())

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
        with self.assertRaisesRegex(ValueError, "contains marks itself"):
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
        for sentence in (
            "### E (ns)",
            "| 1 | 1.5 | 20 |",
            "300 bytes a process",
            "b ended at 2: no more",
        ):
            self.assertIn(sentence, text)
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
        text = provenance("./run thesis pycsp --full --write")
        self.assertTrue(text.startswith("`./run thesis pycsp --full --write` at commit "))
        for fact in ("cpus ", "load ", "Python 3."):
            self.assertIn(fact, text)

    def test_a_quick_run_is_not_written(self):
        done = subprocess.run(
            [sys.executable, str(THESES / "pycsp.py"), "--quick", "--write"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        self.assertEqual(done.returncode, 2)
        self.assertIn("leave one out", done.stderr)


def program(kind, name, *words):
    path = os.pathsep.join(filter(None, (str(BENCH / "py"), os.environ.get("PYTHONPATH"))))
    return subprocess.run(
        [WEFT, "run", str((THESES / "py" / name).resolve()), "--on", kind, *map(str, words)],
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
                ("../../bench/py/ring.py", 3, 1, 1),
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
        script = (
            "import sys; sys.argv = ['jobs.py', 'numpy', '1', '1', '1']\n"
            "import weft; weft.run = lambda p: None\n"
            "import jobs\n"
            "ours = [jobs.Work(k, 24) for k in ('numpy', 'compiled')]\n"
            "sums = [sum(w.do(j) for j in jobs.jobs_of('numpy', 24)) for w in ours]\n"
            "assert 0 < sums[0] and abs(sums[0] - sums[1]) <= sums[0] / 100, sums"
        )
        env = {
            **os.environ,
            "PYTHONPATH": f"{BENCH / 'py'}:{THESES / 'py'}",
            "PYTHONWARNINGS": "ignore",
        }
        done = subprocess.run(
            [sys.executable, "-c", script], env=env, capture_output=True, text=True, check=False
        )
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_wrong_words_are_told(self):
        for words, message in (
            (("tokens.py", 4, 4, 1, 1), "without a token"),
            (("tokens.py", 4), "usage: tokens.py"),
            (("jobs.py", "fast", 1, 1, 1), "KIND is one of numpy, compiled, montecarlo, not fast"),
            (("primes.py", "many", 1), "all whole numbers"),
        ):
            with self.subTest(words=words):
                done = program("coroutines", *words)
                self.assertEqual(done.returncode, 1)
                self.assertIn(message, done.stderr)


if __name__ == "__main__":
    unittest.main()

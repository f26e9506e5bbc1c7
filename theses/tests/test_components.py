"""Tests of the thesis's tables: the measurements and their order, the contents of the tables, and
the place where the tables are written.
"""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import components
from components import Case, Found
from harness.build import Missing
from page import filled

HERE = Path(components.__file__).resolve().parent


class Counts(unittest.TestCase):
    def test_the_full_counts_are_the_thesis_s_and_each_has_its_rows(self):
        full = {(c.workload, c.messages) for c in components.cases(True, False)}
        self.assertEqual(full, set(components.THESIS))
        self.assertEqual(len(full), 10)

    def test_the_thesis_s_figures_agree_with_what_it_says_of_them(self):
        """The thesis states its speed-ups in per cent of the control's time, rounded."""
        percentages = (23, 20, 27, 32, 35, 72, 75, 99, 94, 93)
        for per_cent, (control, design) in zip(
            percentages, components.THESIS.values(), strict=True
        ):
            self.assertAlmostEqual(100 * (1 - design[0] / control[0]), per_cent, delta=1)

    def test_every_workload_is_there_at_every_size(self):
        for full, quick in ((False, False), (True, False), (False, True)):
            found = {c.workload for c in components.cases(full, quick)}
            self.assertEqual(found, set(components.COUNTS))

    def test_runs_are_shared_among_rounds(self):
        for runs, rounds, right in ((10, 5, [2] * 5), (10, 2, [5, 5]), (3, 2, [2, 1]), (1, 5, [1])):
            self.assertEqual(components.shares(runs, rounds), right)

    def test_programs_are_there(self):
        for who in components.NEEDS:
            words = components.argv(who, Case("heavy", 7), 3)
            self.assertTrue(Path(words[0]).exists(), words[0])
            at = words.index("heavy")
            self.assertEqual(words[at + 1 : at + 3], ["7", "3"])
            self.assertEqual("pinned" in words, who != "control")


class Measured(unittest.TestCase):
    def test_rounds_are_interleaved_and_first_runs_stand_apart(self):
        order = []

        def start(who, case, runs):
            order.append((who, runs))
            return Found([9.0], [float(runs)] * runs, [1.0] * runs)

        found = components.measure(Case("heavy", 5), ["a", "b"], [2, 1], start)
        self.assertEqual(order, [("a", 2), ("b", 2), ("a", 1), ("b", 1)])
        self.assertEqual(found["a"], Found([9.0, 9.0], [2.0, 2.0, 1.0], [1.0] * 3))

    def test_nanoseconds_a_pair_become_seconds_a_run(self):
        found = components.parse("first 5e6\ncpu 1e6 2e6\nns 2e6 3e6\n", 1000)
        self.assertEqual(found, Found([5.0], [2.0, 3.0], [1.0, 2.0]))

    def test_what_is_no_figure_is_refused(self):
        for text in (
            "", "ns 1\n", "first 1\ncpu 1\nns x\n", "first 1\ncpu 1\nns 1 2\n",
            "first 1 2\ncpu 1\nns 1\n", "first 1\ncpu\nns\n",
        ):  # fmt: skip
            with self.subTest(text), self.assertRaisesRegex(components.runner.RunError, "printed"):
                components.parse(text, 10)

    def test_a_program_that_fails_is_named_with_its_last_line(self):
        script = "import sys; sys.exit('no such socket')"
        with (
            mock.patch.object(components, "argv", lambda who, case, runs: ["-c", script]),
            self.assertRaisesRegex(components.runner.RunError, "heavy-5, design .* no such socket"),
        ):
            components.started("design", Case("heavy", 5), 1)

    def test_a_program_without_its_libraries_is_left_out_and_said(self):
        def need(what):
            if what == "header:zmq.hpp":
                raise Missing("zmq.hpp is not here")

        lines = []
        with mock.patch.object(components, "need", need):
            people = components.here(lines.append)
        self.assertEqual(people, ["control", "weft", "weft, blocks of 64"])
        self.assertEqual(lines, ["components: design left out: zmq.hpp is not here"])


FOUND = {
    "control": Found([9.0], [2.0, 4.0], [1.0, 1.0]),
    "weft": Found([0.5], [0.1, 0.2], [0.02, 0.03]),
}


class Tables(unittest.TestCase):
    def test_mean_variance_deviation_range_first_and_ratios(self):
        lines = components.table(Case("heavy", 7), FOUND).splitlines()
        self.assertEqual(lines[-2], "| control | 3 | 2 | 1.414 | 2 | 9 | 1 | 1 | 1 |")
        self.assertEqual(
            lines[-1], "| weft | 0.15 | 0.005 | 0.07071 | 0.1 | 0.5 | 0.025 | 20 | 40 |"
        )
        self.assertNotIn("the thesis's", "\n".join(lines))

    def test_the_thesis_s_rows_stand_above_where_it_has_this_count(self):
        text = components.table(Case("recursive", 40), FOUND)
        self.assertIn("its machine | 41.983 | 0.111 | 0.333 | 1.146 |  |  | 1 |  |", text)
        self.assertIn("design, its machine | 0.549 | 0.000 | 0.001 | 0.004 |  |  | 76.47 |", text)
        self.assertLess(text.index("its machine"), text.index("| control |"))

    def test_one_run_has_no_variance_and_without_a_control_there_is_no_ratio(self):
        text = components.table(Case("heavy", 7), {"weft": Found([0.5], [0.1], [0.02])})
        self.assertIn("| weft | 0.1 |  |  |  | 0.5 | 0.02 |  |  |", text)

    def test_every_row_has_as_many_cells_as_the_head(self):
        rows = components.table(Case("alloc", 500_000), FOUND).splitlines()[2:]
        self.assertEqual({row.count("|") for row in rows}, {10})


class Page(unittest.TestCase):
    def test_the_page_has_a_place_for_each_experiment(self):
        text = components.PAGE.read_text(encoding="utf-8")
        for full in (False, True):
            for case in components.cases(full, False):
                filled(text, case.name, "")

    def test_a_table_is_written_with_where_it_was_measured_and_nothing_else_changes(self):
        before = "# P\n<!-- heavy-7: begin -->\nold\n<!-- heavy-7: end -->\nkept\n"
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder, "PAGE.md")
            page.write_text(before, encoding="utf-8")
            components.write(Case("heavy", 7), "| table |\n", "here", page)
            after = page.read_text(encoding="utf-8")
            with self.assertRaisesRegex(ValueError, "heavy-8: begin"):
                components.write(Case("heavy", 8), "| table |\n", "here", page)
            self.assertEqual(page.read_text(encoding="utf-8"), after)
        self.assertEqual(after, before.replace("old", "| table |\n\nhere"))

    def test_mistakes_are_told(self):
        for words, says in (
            (("--quick", "--write"), "leave one out"),
            (("--runs", "0"), "at least 1"),
            (("--only", "nothing"), "no experiment's name contains 'nothing'"),
        ):
            with self.subTest(words):
                done = subprocess.run(
                    [sys.executable, str(HERE / "components.py"), *words],
                    capture_output=True, text=True, check=False,
                )  # fmt: skip
                self.assertEqual(done.returncode, 2)
                self.assertIn(says, done.stderr)


if __name__ == "__main__":
    unittest.main()

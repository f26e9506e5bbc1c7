"""Tests the grid that measures programs over sizes: its points, its limits, its tables and
pictures.
"""

import os
import sys
import tempfile
import unittest

from harness import runner
from harness.build import Program
from harness.grid import Experiment, measure, number, plot, table


def experiment(points=(1, 2, 4), curves=("a", "b"), **more):
    words = dict.fromkeys(curves, ("{x}",))
    return Experiment("e", "E", "n", "ns", "none.py", 1, points, words, **more)


def measured(e, script, rounds=1, **more):
    """Measures `script`, which is Python, with the curve and the point in `curve` and `x`."""

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


if __name__ == "__main__":
    unittest.main()

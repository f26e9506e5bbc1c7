"""Tests which benches are drawn as curves."""

from __future__ import annotations

import unittest

from harness import curve


class Curves(unittest.TestCase):
    def test_names_with_a_number_make_curves(self):
        ns = {"two, 2": 3.0, "go, 2": 30.0, "two, 4": 4.0, "go, 4": None, "two, 8": 5.0}
        expected = {"two": {2: 3.0, 4: 4.0, 8: 5.0}, "go": {2: 30.0}}
        self.assertEqual(curve.curves(ns), expected)

    def test_a_name_without_a_number_or_too_few_points_draw_nothing(self):
        with_go = {"two, 2": 1.0, "two, 4": 1.0, "two, 8": 1.0, "go": 2.0}
        for ns in (with_go, {"two, 2": 1.0, "two, 4": 1.0}, {}):
            with self.subTest(ns):
                self.assertEqual(curve.curves(ns), {})

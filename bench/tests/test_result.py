"""Tests how figures are computed from samples: minima, percentiles, ratios, reach, and the JSON
object.
"""

from __future__ import annotations

import json
import unittest

from fakes import Folder, bench_text, candidate
from harness.result import SCHEMA, check_schema, evaluate, percentile
from harness.runner import Samples

FRAME = {"command": "c", "commit": "abc", "machine": {}, "versions": {}, "quick": False}
RATIO = 'name = "a ÷ b"\ntop = "a"\nbottom = "b"\nby = "min"\nreach = { first = 0.5, second = 0.1 }'


def sampled(*runs: list[float]) -> Samples:
    """Returns the samples of these runs."""
    return Samples({"ns": [ns for run in runs for ns in run]}, list(runs))


class Percentiles(unittest.TestCase):
    def test_nearest_rank(self):
        values = [15, 20, 35, 40, 50]
        for percent, expected in (
            (0, 15),
            (5, 15),
            (30, 20),
            (40, 20),
            (50, 35),
            (99, 50),
            (100, 50),
        ):
            with self.subTest(percent):
                self.assertEqual(percentile(reversed(values), percent), expected)

    def test_of_nothing(self):
        with self.assertRaises(ValueError):
            percentile([], 50)


class Evaluation(Folder):
    def judge(self, a, b, target=RATIO, milestone="first", skipped=None, broken=None):
        bench = self.load(bench_text("x", [candidate("a"), candidate("b")], target)).benches["x"]
        samples = {name: s for name, s in (("a", a), ("b", b)) if s is not None}
        result = evaluate(bench, samples, skipped or {}, broken or {}, milestone, FRAME)
        self.assertEqual(check_schema(result), [])
        self.assertEqual(json.loads(json.dumps(result)), result)
        return result

    def test_the_ratio_is_of_minima(self):
        result = self.judge(sampled([9.0, 4.0, 5.0]), sampled([10.0, 30.0, 20.0]))
        self.assertEqual(result["ns"], {"a": 4.0, "b": 10.0})
        self.assertEqual(result["p50"], {"a": 5.0, "b": 20.0})
        self.assertEqual(result["p99"], {"a": 9.0, "b": 30.0})
        self.assertEqual(result["ratio"], {"a ÷ b": 0.4})
        self.assertEqual(result["reach"], {"a ÷ b": 0.5})
        self.assertIs(result["met"], True)
        self.assertEqual((result["reasons"], result["failed"]), ({}, []))

    def test_the_ratio_is_of_medians_where_the_target_says_so(self):
        target = RATIO.replace('"min"', '"p50"')
        result = self.judge(sampled([1.0, 4.0, 5.0]), sampled([10.0, 8.0, 8.0]), target)
        self.assertEqual(result["ratio"], {"a ÷ b": 0.5})

    def test_the_p99_is_the_median_of_the_runs(self):
        # One bad run of three does not spoil the p99; two bad runs do.
        target = RATIO.replace('"min"', '"p99"')
        b = sampled([10.0, 20.0], [20.0, 10.0], [10.0, 20.0])
        result = self.judge(sampled([1.0, 6.0], [5.0, 100.0], [1.0, 4.0]), b, target)
        self.assertEqual((result["p99"]["a"], result["ratio"]), (6.0, {"a ÷ b": 0.3}))
        result = self.judge(sampled([1.0, 6.0], [5.0, 100.0], [80.0, 4.0]), b, target)
        self.assertEqual(result["ratio"], {"a ÷ b": 4.0})

    def test_exactly_the_reach_is_met(self):
        self.assertTrue(self.judge(Samples({"ns": [5.0]}), Samples({"ns": [10.0]}))["met"])

    def test_above_the_reach_is_not_met_and_says_so(self):
        result = self.judge(Samples({"ns": [6.0]}), Samples({"ns": [10.0]}))
        self.assertFalse(result["met"])
        self.assertEqual(result["reasons"], {"a ÷ b": "0.6 is above 0.5"})

    def test_the_milestone_decides(self):
        result = self.judge(Samples({"ns": [4.0]}), Samples({"ns": [10.0]}), milestone="second")
        self.assertEqual((result["met"], result["reach"]), (False, {"a ÷ b": 0.1}))

    def test_the_strictest_asks_for_the_least_of_all(self):
        result = self.judge(Samples({"ns": [4.0]}), Samples({"ns": [10.0]}), milestone="strictest")
        self.assertEqual((result["met"], result["reach"]), (False, {"a ÷ b": 0.1}))

    def test_a_milestone_without_an_entry_asks_nothing(self):
        result = self.judge(Samples({"ns": [40.0]}), Samples({"ns": [10.0]}), milestone="third")
        self.assertEqual(
            (result["met"], result["reach"], result["ratio"]), (True, {}, {"a ÷ b": 4.0})
        )

    def test_a_skipped_peer_leaves_null_and_not_met(self):
        result = self.judge(
            Samples({"ns": [4.0]}), None, skipped={"b": "skipped: go is not installed"}
        )
        self.assertEqual(result["ns"], {"a": 4.0, "b": None})
        self.assertEqual(result["ratio"], {"a ÷ b": None})
        self.assertFalse(result["met"])
        self.assertEqual(result["reasons"]["b"], "skipped: go is not installed")
        self.assertEqual(result["reasons"]["a ÷ b"], "not measured: no ns of b")
        self.assertEqual(result["failed"], [])

    def test_a_program_that_failed_or_does_not_build_is_named(self):
        result = self.judge(
            Samples(error="ended with status 1"), None, broken={"b": "does not build"}
        )
        self.assertEqual(result["failed"], ["b", "a"])
        self.assertEqual(result["reasons"]["a"], "ended with status 1")
        self.assertEqual(result["reasons"]["a ÷ b"], "not measured: no ns of a and b")
        self.assertFalse(result["met"])

    def test_bytes_are_the_greatest_of_the_rounds_and_need_no_peer(self):
        target = 'name = "bytes"\ntop = "a"\nof = "bytes"\nby = "max"\nreach = { first = 250 }'
        result = self.judge(Samples({"ns": [1.0], "bytes": [240.0, 248.25, 241.0]}), None, target)
        self.assertEqual(
            (result["bytes"], result["ratio"], result["met"]),
            ({"a": 248.2}, {"bytes": 248.2}, True),
        )

    def test_memory_above_the_reach(self):
        target = 'name = "bytes"\ntop = "a"\nof = "bytes"\nby = "max"\nreach = { first = 240 }'
        result = self.judge(Samples({"ns": [1.0], "bytes": [240.0, 248.0]}), None, target)
        self.assertEqual((result["met"], result["reasons"]), (False, {"bytes": "248 is above 240"}))


class Schema(unittest.TestCase):
    def test_missing_wrong_and_unknown_keys_are_named(self):
        wrong = check_schema({"bench": 3, "extra": 1})
        self.assertEqual(len(wrong), len(SCHEMA) + 1)
        self.assertIn("unknown key extra", wrong)
        self.assertTrue(any(line.startswith("bench should be") for line in wrong))


if __name__ == "__main__":
    unittest.main()

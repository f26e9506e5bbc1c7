"""Tests that the work that OS processes share in the benches is the same whichever process does it,
and that missing work is detected.
"""

import sys
import unittest
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "py"))

from away_shared import check, payload
from away_tasks import Work, tasks_of, wrong

SIZES = {"mandelbrot": 48, "montecarlo": 1, "wordcount": 3}


def totals(kind, workers, tasks=None):
    """Returns the results of `workers` workers, each of which does every `workers`-th task."""
    tasks = tasks_of(kind, SIZES[kind]) if tasks is None else tasks
    all_of_them = [Work(kind, SIZES[kind]) for _ in range(workers)]
    for k, task in enumerate(tasks):
        all_of_them[k % workers].do(task)
    return [w.total for w in all_of_them]


class Tasks(unittest.TestCase):
    def test_the_sum_does_not_depend_on_who_does_what(self):
        for kind in SIZES:
            with self.subTest(kind):
                one, three = (totals(kind, n) for n in (1, 3))
                nothing = Counter() if kind == "wordcount" else 0
                self.assertTrue(one[0])
                self.assertEqual(sum(one, nothing), sum(three, nothing))

    def test_it_is_right(self):
        for kind, per in SIZES.items():
            with self.subTest(kind):
                self.assertIsNone(wrong(kind, per, totals(kind, 2)))

    def test_a_part_that_is_missing_is_wrong(self):
        for kind, per in SIZES.items():
            with self.subTest(kind):
                tasks = list(tasks_of(kind, per))
                self.assertIsNotNone(wrong(kind, per, totals(kind, 2, tasks[: len(tasks) // 2])))


class Payloads(unittest.TestCase):
    def test_a_value_is_what_it_is(self):
        for kind in ("dict", "bytes", "array"):
            with self.subTest(kind):
                self.assertTrue(check(kind, payload(kind), payload(kind)))

    def test_one_of_another_size_or_with_another_end_is_not(self):
        for kind in ("bytes", "array"):
            value = payload(kind)
            with self.subTest(kind):
                self.assertFalse(check(kind, value[:-1], value))
                self.assertFalse(check(kind, value[::-1], value))
        names = payload("dict")
        self.assertFalse(check("dict", {**names, "name 7": 8}, names))

    def test_a_megabyte_is_one(self):
        self.assertEqual(len(payload("bytes")), 1 << 20)
        self.assertEqual(payload("array").nbytes, 1 << 20)


if __name__ == "__main__":
    unittest.main()

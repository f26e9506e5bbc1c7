"""Tests the thesis's workloads: right results are accepted, wrong results are detected, and Weft's
workers agree with Python's.
"""

import contextlib
import io
import os
import subprocess
import sys
import unittest
from pathlib import Path

BENCH = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(BENCH / "py"))

import thesis_work  # noqa: E402


class Work(unittest.TestCase):
    def test_the_work_is_what_its_name_says(self):
        right = [0, 1, 1, 2, 3, 5, 8, 13, 21, 34]
        self.assertEqual([thesis_work.fibonacci(n) for n in range(10)], right)
        self.assertEqual([thesis_work.recursive(n) for n in range(10)], right)
        self.assertEqual(thesis_work.WORK["light"](100), 55)
        self.assertEqual(thesis_work.WORK["alloc"](5), 5)

    def test_sums_are_modulo_2_to_the_64th(self):
        self.assertEqual(thesis_work.expected("messaging", 4), 10)
        self.assertEqual(thesis_work.expected("recursive", 5), 1 + 1 + 2 + 3 + 5)
        exact = sum(thesis_work.fibonacci(n) for n in range(1, 201))
        self.assertGreater(exact, 1 << 64)
        self.assertEqual(thesis_work.expected("heavy", 200), exact % (1 << 64))

    def test_a_worker_with_a_wrong_sum_has_no_time(self):
        right = thesis_work.expected("heavy", 100)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):  # signed or unsigned, the bits are the same
            thesis_work.figures("heavy", 100, 2, lambda: [right - (1 << 64), right])
        self.assertEqual(len(out.getvalue().split()), 3)
        with self.assertRaisesRegex(SystemExit, "add up"):
            thesis_work.figures("heavy", 100, 1, lambda: [right, right + 1])

    def test_our_workers_agree_with_python_s(self):
        """The sums agree even beyond 2**64, at the end of a block that is not full, and with fewer
        messages than a block.
        """
        for workload in thesis_work.WORK:
            for block in ("1", "64"):
                for messages in ("20",) if workload == "recursive" else ("150", "3"):
                    with self.subTest(workload=workload, block=block, messages=messages):
                        program = ["on.py", "coroutines", "native_thesis"]
                        done = subprocess.run(
                            [sys.executable, *program, workload, messages, "1", block],
                            cwd=BENCH / "py",
                            capture_output=True,
                            text=True,
                            timeout=300,
                            env={**os.environ, "PYTHONPATH": str(BENCH / "py")},
                        )
                        self.assertEqual(done.returncode, 0, done.stderr)
                        self.assertTrue(done.stdout.startswith("ns "), done.stdout)


if __name__ == "__main__":
    unittest.main()

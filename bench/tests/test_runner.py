"""Tests one run of a program, and the rounds over several programs: order, pinning, failures,
time-outs, Ctrl-C.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

from fakes import PYTHON
from harness import runner
from harness.build import Program


def python(text: str) -> Program:
    return Program([PYTHON, "-c", textwrap.dedent(text)], {})


ANY = sorted(os.sched_getaffinity(0))[-1:]


def gone(pid: int) -> bool:
    """Returns whether there is no such process, or only a zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state in "ZX"


class Interleaving(unittest.TestCase):
    def rounds(self, names, rounds, run):
        programs = {name: Program([name], {}) for name in names}
        return runner.interleave(programs, {name: [0] for name in names}, rounds, 1.0, run=run)

    def test_order_is_a_b_c_a_b_c(self):
        order = []

        def run(program, cpus, timeout):
            order.append(program.argv[0])
            return {"ns": [1.0]}

        self.rounds("ABC", 3, run)
        self.assertEqual("".join(order), "ABCABCABC")

    def test_samples_of_all_rounds_are_kept_apart_by_candidate_and_measure(self):
        figures = iter([5.0, 50.0, 3.0, 30.0])

        def run(program, cpus, timeout):
            value = next(figures)
            return {"ns": [value, value + 1], "bytes": [value * 2]}

        samples = self.rounds("AB", 2, run)
        self.assertEqual(samples["A"].values, {"ns": [5.0, 6.0, 3.0, 4.0], "bytes": [10.0, 6.0]})
        self.assertEqual(
            samples["B"].values, {"ns": [50.0, 51.0, 30.0, 31.0], "bytes": [100.0, 60.0]}
        )

    def test_a_program_that_failed_once_is_not_run_again_and_has_no_samples(self):
        order = []

        def run(program, cpus, timeout):
            order.append(program.argv[0])
            if order.count("B") == 2 and program.argv[0] == "B":
                raise runner.RunError("broke down")
            return {"ns": [1.0]}

        samples = self.rounds("ABC", 4, run)
        self.assertEqual("".join(order), "ABCABCACAC")
        self.assertEqual((samples["B"].values, samples["B"].error), ({}, "broke down"))
        self.assertEqual(len(samples["C"].values["ns"]), 4)

    def test_each_candidate_gets_its_own_cpus(self):
        seen = {}

        def run(program, cpus, timeout):
            seen[program.argv[0]] = cpus
            return {"ns": [1.0]}

        programs = {name: Program([name], {}) for name in "AB"}
        runner.interleave(programs, {"A": [1], "B": [0, 1]}, 1, 1.0, run=run)
        self.assertEqual(seen, {"A": [1], "B": [0, 1]})

    def test_before_is_told_of_every_run_also_of_one_left_out(self):
        log = []

        def run(program, cpus, timeout):
            raise runner.RunError("no")

        programs = {name: Program([name], {}) for name in "AB"}
        runner.interleave(
            programs, {"A": [0], "B": [0]}, 2, 1.0, lambda name, k: log.append((name, k)), run
        )
        self.assertEqual(log, [("A", 0), ("B", 0), ("A", 1), ("B", 1)])

    def test_ctrl_c_passes_through(self):
        def run(program, cpus, timeout):
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            self.rounds("A", 1, run)


class OneRun(unittest.TestCase):
    def test_samples_come_back_by_measure(self):
        got = runner.run_once(python("print('ns 3 1.5 2'); print('bytes 248')"), ANY, 20)
        self.assertEqual(got, {"ns": [3.0, 1.5, 2.0], "bytes": [248.0]})

    def test_the_program_is_pinned_and_we_are_not(self):
        before = os.sched_getaffinity(0)
        text = "import os; print('ns', *(c + 1 for c in os.sched_getaffinity(0)))"
        got = runner.run_once(python(text), ANY, 20)
        self.assertEqual(got["ns"], [float(ANY[0] + 1)])
        self.assertEqual(os.sched_getaffinity(0), before)

    def test_the_environment_of_the_candidate_is_set(self):
        program = Program(
            [PYTHON, "-c", "import os; print('ns', os.environ['LAPS'])"], {"LAPS": "7"}
        )
        self.assertEqual(runner.run_once(program, ANY, 20), {"ns": [7.0]})

    def test_a_failing_program_says_its_last_words(self):
        with self.assertRaisesRegex(runner.RunError, "ended with status 3: out of luck"):
            runner.run_once(
                python(
                    "import sys; print('first', file=sys.stderr); print('out of luck', file=sys.stderr); sys.exit(3)"
                ),
                ANY,
                20,
            )

    def test_of_a_group_of_exceptions_its_last_one_is_told(self):
        code = "raise ExceptionGroup('several', [ValueError(f'no {i}') for i in range(40)])"
        with self.assertRaisesRegex(runner.RunError, "ended with status 1: ValueError: no 14"):
            runner.run_once(python(code), ANY, 20)

    def test_a_failing_program_may_say_nothing(self):
        with self.assertRaisesRegex(runner.RunError, "ended with status 1: no message"):
            runner.run_once(python("import os; os._exit(1)"), ANY, 20)

    def test_a_crashing_program_is_named_by_its_signal(self):
        with self.assertRaisesRegex(runner.RunError, "ended with signal SIGABRT"):
            runner.run_once(python("import os; os.abort()"), ANY, 20)

    def test_samples_of_a_program_that_fails_afterwards_do_not_count(self):
        with self.assertRaises(runner.RunError):
            runner.run_once(python("print('ns 1', flush=True); raise SystemExit(2)"), ANY, 20)

    def test_a_program_that_is_not_there(self):
        with self.assertRaisesRegex(runner.RunError, "cannot be started"):
            runner.run_once(Program(["/no/such/program"], {}), ANY, 20)

    def test_a_hanging_program_is_ended_with_all_its_children(self):
        with tempfile.TemporaryDirectory() as place:
            pids = Path(place) / "pids"
            text = f"""
                import os, signal
                child = os.fork()
                if child:
                    with open({str(pids)!r}, 'w') as file:
                        print(os.getpid(), child, file=file)
                while True:
                    signal.pause()
            """
            with self.assertRaisesRegex(runner.RunError, "gave no result within 2 s and was ended"):
                runner.run_once(python(text), ANY, 2)
            for pid in map(int, pids.read_text(encoding="ascii").split()):
                while not gone(pid):  # SIGKILL was sent; when it takes effect is up to the kernel
                    os.sched_yield()


class Output(unittest.TestCase):
    def test_lines_of_one_measure_add_up(self):
        self.assertEqual(runner.parse("ns 1 2\nns 3\n"), {"ns": [1.0, 2.0, 3.0]})

    def test_what_is_no_sample_is_refused(self):
        for line in (
            "hello",
            "ns",
            "ns x",
            "ns 1 two",
            "seconds 3",
            "ns 0",
            "ns -1",
            "ns inf",
            "ns nan",
        ):
            with self.subTest(line), self.assertRaisesRegex(runner.RunError, "not a sample"):
                runner.parse("ns 1\n" + line)

    def test_silence_is_refused(self):
        with self.assertRaisesRegex(runner.RunError, "printed no samples"):
            runner.parse("")


class Cpus(unittest.TestCase):
    def test_the_last_ones_are_taken(self):
        self.assertEqual(runner.choose_cpus([0, 1, 2, 3], 1), [3])
        self.assertEqual(runner.choose_cpus([3, 0, 2], 2), [2, 3])

    def test_too_few_is_said(self):
        with self.assertRaisesRegex(runner.RunError, "needs 2 CPUs, this machine allows 1"):
            runner.choose_cpus([0], 2)


class Memory(unittest.TestCase):
    """A program that uses as much memory as possible does not crash the machine."""

    def run_once(self, script, spare):
        program = Program([sys.executable, "-c", script], {})
        return runner.run_once(program, sorted(os.sched_getaffinity(0))[-1:], 600, spare)

    def test_a_program_that_leaves_too_little_memory_is_ended(self):
        with tempfile.TemporaryDirectory() as place:
            pid_file = Path(place, "pid")
            with self.assertRaisesRegex(
                runner.RunError, "left less than .* of the machine's memory"
            ):
                self.run_once(
                    f"import os, signal; open({str(pid_file)!r}, 'w').write(str(os.getpid())); signal.pause()",
                    1 << 60,
                )
            pid = pid_file.read_text(encoding="ascii") if pid_file.exists() else ""
            while pid and not gone(int(pid)):  # "": the program was ended before it began to run
                os.sched_yield()

    def test_a_program_that_leaves_enough_memory_is_not_ended(self):
        self.assertEqual(self.run_once("print('ns 7')", 1)["ns"], [7.0])


class Stopped(unittest.TestCase):
    """The whole command is stopped while a program hangs."""

    def test_ctrl_c_ends_the_program_and_the_status_is_130(self):
        self.stop(signal.SIGINT, 130)

    def test_sigterm_ends_the_program_and_the_status_is_143(self):
        self.stop(signal.SIGTERM, 143)

    def test_commands_that_share_it_say_what_is_kept(self):
        for number, status in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
            script = (
                "import os, signal, sys\nfrom harness import runner\n"
                "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
                f"hangs = lambda: (os.kill(os.getpid(), {int(number)}), signal.pause())\n"
                "sys.exit(runner.stopped_by(hangs, 'x', 'half is kept'))"
            )
            done = subprocess.run(
                [sys.executable, "-c", script],
                cwd=Path(runner.__file__).parent.parent,
                capture_output=True,
                text=True,
                check=False,
            )
            self.assertEqual(
                (done.returncode, done.stderr), (status, "\nx: stopped; half is kept\n")
            )

    def test_a_program_that_fails_is_named_and_the_status_is_1(self):
        def fails():
            raise runner.RunError("ended with status 3")

        before = signal.getsignal(signal.SIGTERM)
        self.addCleanup(signal.signal, signal.SIGTERM, before)
        with contextlib.redirect_stderr(io.StringIO()) as errors:
            self.assertEqual(runner.stopped_by(fails, "x", "half is kept"), 1)
        self.assertEqual(errors.getvalue(), "\nx: ended with status 3\n")

    def stop(self, number, status):
        with tempfile.TemporaryDirectory() as place:
            root = Path(place)
            (root / "bench").mkdir()
            fifo = root / "started"
            os.mkfifo(fifo)
            (root / "bench/a.py").write_text(
                f"import os, signal\nopen({str(fifo)!r}, 'w').write(str(os.getpid()))\nsignal.pause()\n",
                encoding="utf-8",
            )
            from fakes import bench_text, candidate

            (root / "bench/targets.toml").write_text(
                'milestone = "first"\n' + bench_text("x", [candidate("a")]), encoding="utf-8"
            )
            main = str(Path(__file__).resolve().parent.parent / "run.py")
            argv = [
                sys.executable,
                main,
                "--targets",
                str(root / "bench/targets.toml"),
                "--root",
                place,
                "x",
                "--json",
            ]
            child = subprocess.Popen(
                argv,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
            )
            pid = int(fifo.read_text(encoding="ascii"))  # blocks until the program runs
            child.send_signal(number)
            out, err = child.communicate(timeout=280)
            self.assertEqual(child.returncode, status, err)
            self.assertIn("stopped", err)
            self.assertNotIn("Traceback", err)
            self.assertEqual(out, "")
            self.assertFalse((root / "out/bench/x.json").exists())
            while not gone(pid):
                os.sched_yield()


if __name__ == "__main__":
    unittest.main()

"""Tests the reports of progress: a program that hangs is ended and named, a program that reports
may continue, and tests that had passed are reported once.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import ROOT

# Runs progress.run in another process: the module takes its variable out of the environment when it
# is imported.
PROGRAM = """
import json, sys, progress
how = json.loads(sys.argv[1])
ran = progress.run([sys.executable, "-c", how.pop("program")], **how)
print(json.dumps([ran.status, ran.output, ran.told.passed, ran.told.failed, ran.hung]))
"""
SPEAK = "import progress, threading\n"
STUCK = "threading.Event().wait()\n"


def run(path: Path, program: str, **how: object) -> tuple[list[object], list[str]]:
    """Returns the result of progress.run, and its reports to the listener."""
    message = path / "told"
    message.touch()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps({"program": program, **how})],
        env={**os.environ, "PYTHONPATH": str(ROOT / "tools"), "WEFT_PROGRESS": str(message)},
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    return json.loads(done.stdout), message.read_text().splitlines()


def run_stuck(
    path: Path, program: str, wanted: Callable[[list[object], list[str]], bool]
) -> tuple[list[object], list[str]]:
    """Returns the result of run() for a program that hangs. If the result with a short limit is not
    `wanted`, returns the result with a long limit: a busy machine can take longer than the short
    limit to start the program.
    """
    for still in (4, 40):
        (path / "told").unlink(missing_ok=True)
        found = run(path, program, prefix="", still=still)
        if wanted(*found):
            break
    return found


def test_what_a_program_tells_is_passed_on_once(tmp_path: Path) -> None:
    program = (
        SPEAK + "progress.begin('a'); progress.end('a', 2, 1); print('out'); raise SystemExit(3)"
    )
    ran, message = run(tmp_path, program, prefix="p: ")
    assert ran == [3, "out\n", 2, 1, None]
    assert message == ["begin p: a", "end 2 1 p: a"]


def test_a_program_that_is_one_test_is_told_as_one(tmp_path: Path) -> None:
    ran, message = run(tmp_path, SPEAK + "progress.end('a', 2, 1)", name="it")
    assert ran == [0, "", 2, 1, None]
    assert set(message) == {"begin it", "end 0 0 it"}  # the caller reports the counts


@pytest.mark.parametrize(
    ("program", "named"),
    [
        (SPEAK + STUCK, "from its start"),
        (SPEAK + "print('linking', flush=True)\n" + STUCK, 'after "linking"'),
        (SPEAK + "progress.begin('a b')\n" + STUCK, "a b: no sign"),
    ],
)
def test_what_hangs_is_ended_and_named(tmp_path: Path, program: str, named: str) -> None:
    ran, _ = run_stuck(tmp_path, program, lambda ran, _: named in str(ran[4]))
    assert named in str(ran[4])
    assert ran[0] == -9


def test_what_had_passed_before_a_hang_counts_and_nothing_stays_under_way(tmp_path: Path) -> None:
    program = SPEAK + "progress.end('a', 1, 0)\nprogress.begin('b')\n" + STUCK
    expected = ["end 1 0 a", "begin b", "end 0 0 b"]
    ran, message = run_stuck(tmp_path, program, lambda _, message: message == expected)
    assert ran[2:4] == [1, 0]
    assert message == expected


def test_what_dies_leaves_nothing_under_way(tmp_path: Path) -> None:
    ran, message = run(tmp_path, SPEAK + "progress.begin('a')\nimport os\nos.abort()", prefix="")
    assert (ran[0], ran[4]) == (-6, None)
    assert message == ["begin a", "end 0 0 a"]


def test_what_failed_and_what_was_cut_off_have_names(tmp_path: Path) -> None:
    program = (
        "import progress, sys\n"
        "from pathlib import Path\n"
        "listener = progress.Listener(Path(sys.argv[1]))\n"
        "Path(sys.argv[1]).write_text('begin a\\nend 0 2 a b\\nbegin c d\\nend 3 0 e\\n')\n"
        "listener.look(0.0)\n"
        "listener.leave()\n"
        "print(listener.failures, listener.left)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "told")],
        env={**os.environ, "PYTHONPATH": str(ROOT / "tools")},
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == ("['a b'] ['a', 'c d']\n", "")


def test_what_is_no_test_may_be_silent(tmp_path: Path) -> None:
    # The program is silent for far longer than a test may be silent in these tests. It counts as
    # alive as long as it runs.
    program = SPEAK + "threading.Event().wait(2.5)\nprint('built')"
    ran, message = run(tmp_path, program, name="building", still=None)
    assert (ran[0], ran[1]) == (0, "built\n")
    assert message.count("begin building") >= 2


def test_a_test_that_says_again_that_it_is_under_way_is_no_hang(tmp_path: Path) -> None:
    """The test is under way for one and a half times the limit. On a busy machine more time
    than the short limit can pass between two signs.
    """
    for still in (3, 30):
        program = (
            SPEAK + f"for i in range({15 * still}):\n"
            "    progress.begin('a'); threading.Event().wait(0.1)\n"
            "progress.end('a', 1, 0)"
        )
        ran, _ = run(tmp_path, program, prefix="", still=still)
        if ran[4] is None:
            break
    assert ran == [0, "", 1, 0, None]


def test_nobody_listens() -> None:
    program = "import progress; progress.begin('a'); progress.end('a', 1, 0)"
    for more in ({}, {"WEFT_PROGRESS": "/nowhere/at/all"}):
        env = {**os.environ, "PYTHONPATH": str(ROOT / "tools"), **more}
        done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True)
        assert (done.returncode, done.stderr) == (0, b"")


def test_node_tests_are_told_one_by_one(tmp_path: Path) -> None:
    (tmp_path / "a.test.mjs").write_text(
        "import { test, describe, it } from 'node:test';\n"
        "test('good', () => {});\n"
        "test('bad', () => { throw new Error('no'); });\n"
        "test('with', async (t) => { await t.test('sub', () => {}); });\n"
        "test('skipped', { skip: true }, () => {});\n"
        "describe('suite', () => { it('inside', () => {}); });\n"
    )
    message = tmp_path / "told"
    message.touch()
    reporter = [
        "--test-reporter",
        str(ROOT / "tools/progress.mjs"),
        "--test-reporter-destination",
        "stderr",
    ]
    done = subprocess.run(
        ["node", "--test", *reporter, str(tmp_path / "a.test.mjs")],
        env={**os.environ, "WEFT_PROGRESS": str(message)},
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    lines = message.read_text().splitlines()
    ends = {line.rpartition(": ")[2]: line.split()[1:3] for line in lines if line.startswith("end")}
    assert ends == {
        "good": ["1", "0"],
        "bad": ["0", "1"],
        "sub": ["1", "0"],
        "with": ["1", "0"],
        "skipped": ["0", "0"],
        "inside": ["1", "0"],
        "suite": ["0", "0"],
    }
    begun = {line.removeprefix("begin ") for line in lines if line.startswith("begin")}
    assert begun == {line.split(" ", 3)[3] for line in lines if line.startswith("end")}

"""Rule 15.12: a function of the main module uses a global variable that only the starter sets.

Every test here starts an interpreter or two, which takes some 0.2 s each.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from test_processes import program

PROGRAM = """\
from weft.{backend} import *

LIMIT = 0
result = None

class Box:
    result = 5

def limit():
    return LIMIT

@process
def work():
    return {does}

def prepare():
    global LIMIT
    LIMIT = 42

if __name__ == "__main__":
    {sets}
    result = run(work())
    print(result)
"""


def run(tmp_path: Path, sets: str, does: str, backend: str = "processes") -> tuple[str, str]:
    done = program(tmp_path, PROGRAM.format(backend=backend, sets=sets, does=does))
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


@pytest.mark.parametrize(
    ("sets", "does"),
    [("LIMIT = 42", "LIMIT"), ("for LIMIT in (1, 42): pass", "limit()"), ("prepare()", "limit()")],
)
def test_it_is_told_once_at_the_line_that_sets_it(  # rule 15.12
    tmp_path: Path, sets: str, does: str
) -> None:
    output, errors = run(tmp_path, sets, does)
    assert output == "0\n"  # the value in the other OS process
    assert errors.count("WeftWarning: work uses the global variable 'LIMIT'") == 1
    lines = (tmp_path / "program.py").read_text(encoding="utf-8").splitlines()
    number = int(errors.partition("program.py:")[2].partition(":")[0])
    assert lines[number - 1].strip() == ("LIMIT = 42" if sets == "prepare()" else sets)


@pytest.mark.parametrize(
    ("sets", "does", "gives"),
    [
        ("pass", "LIMIT", 0),
        ("LIMIT = 42", "1", 1),
        ("pass", "Box.result", 5),  # an attribute has the name of a variable that is set below
        ("prepare()", "prepare() or LIMIT", 42),  # set by the function itself
    ],
)
def test_what_the_function_sees_as_it_is_is_not_told(
    tmp_path: Path, sets: str, does: str, gives: int
) -> None:
    assert run(tmp_path, sets, does) == (f"{gives}\n", "")


def test_threads_see_it(tmp_path: Path) -> None:  # rule 15.12
    assert run(tmp_path, "LIMIT = 42", "LIMIT", "threads") == ("42\n", "")


def test_an_executor_tells_it(tmp_path: Path) -> None:  # rule 15.12
    text = """
        from weft.processes import Executor

        def scaled(n):
            return n * SCALE

        SCALE = 1

        if __name__ == "__main__":
            SCALE = 10
            with Executor(1) as pool:
                print(list(pool.map(scaled, (1, 2))))
        """
    done = program(tmp_path, text)
    assert done.stdout == "[1, 2]\n"
    assert done.stderr.count("scaled uses the global variable 'SCALE'") == 1

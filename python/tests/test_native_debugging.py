"""Debug builds of native components: one stack of Python and C++ when a component throws, and
gdb at work (python/docs/native-debugging.md)."""

from __future__ import annotations

import os
import pickle
import re
import shutil
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import pytest
from components import HERE, collect, needs_compiler, source

import weft.native
import weft.threads as th
from weft._components import stack as _native_stack
from weft.errors import BadUse
from weft.native import ComponentError
from weft.processes import Channel

pytestmark = needs_compiler
SOURCE = HERE / "component_throws.cpp"
needs_addr2line = pytest.mark.skipif(shutil.which("addr2line") is None, reason="no addr2line")


@pytest.fixture(scope="module")
def throws() -> Any:
    return weft.native.load(SOURCE, debug=True)


def line_of(text: str) -> int:
    return 1 + next(i for i, line in enumerate(SOURCE.read_text().splitlines()) if text in line)


def failed(made: Any, *arguments: Any, **options: Any) -> ComponentError:
    with pytest.raises(ComponentError) as caught:
        if arguments:
            th.run(made(*arguments))
        else:
            a, b = Channel("a"), Channel("b")
            th.run(source(-a, [1.0, -1.0]), made(+a, -b, **options), collect(+b))
    return caught.value


@needs_addr2line
def test_one_stack_of_python_and_cpp(throws: Any) -> None:
    error = failed(throws.halves)
    assert error.message == "a negative sample"
    frames = traceback.extract_tb(error.__traceback__)
    native = [(f.lineno, f.name, f.line) for f in frames if f.filename == str(SOURCE)]
    assert native == [
        (line_of("= halve(x)"), "halves", "const double half = halve(x);"),
        (line_of("= checked(x)"), "halve", "const double half = checked(x) / 2;"),
        (
            line_of("throw std"),
            "checked",
            'if (x < 0) throw std::domain_error("a negative sample");',
        ),
    ]
    assert frames[0].name == "failed"  # the line of the run; the function that threw is innermost
    assert frames[-1].name == "checked"
    assert traceback.format_tb(error.__traceback__)[-1].count("\n") == 2  # the place, and its text


@needs_addr2line
def test_the_stack_comes_from_another_os_process_too(throws: Any) -> None:  # rule 16.8
    error = failed(throws.halves, on="process")
    text = "".join(traceback.format_exception(error))
    assert re.search(r"component_throws\.cpp\", line \d+, in checked", text)


@needs_addr2line
def test_the_stack_is_of_the_exception_that_left_it(throws: Any) -> None:
    """The reported stack is that of the exception that left the process, not of one that was caught
    earlier."""
    error = failed(throws.handles)
    assert (error.type, error.message) == ("int", "")
    names = [f.name for f in traceback.extract_tb(error.__traceback__)]
    assert names[-1] == "handles"
    assert "checked" not in names


def test_what_the_standard_library_throws_is_told_without_a_stack_of_its_own(throws: Any) -> None:
    error = failed(throws.library, 7)
    assert error.type == "std::out_of_range"
    assert "checked" not in [f.name for f in traceback.extract_tb(error.__traceback__)]


def test_a_build_that_is_not_for_debugging_says_the_same_without_frames() -> None:
    error = failed(weft.native.load(SOURCE).halves)
    assert error.message == "a negative sample"
    assert not [f for f in traceback.extract_tb(error.__traceback__) if f.filename == str(SOURCE)]


def test_without_addr2line_there_are_no_frames(throws: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(_native_stack, "_tool", lambda: None)
    error = failed(throws.halves)
    assert error.message == "a negative sample"
    assert traceback.extract_tb(error.__traceback__)[-1].name != "checked"


def test_a_failure_with_a_stack_can_be_pickled(throws: Any) -> None:
    error = failed(throws.halves)
    copied = pickle.loads(pickle.dumps(error))
    assert (str(copied), copied.message) == (str(error), error.message)


def test_debug_is_for_sources(tmp_path: Path) -> None:
    library = weft.native.build(SOURCE, output=tmp_path / "made.so")
    with pytest.raises(BadUse, match="flags and debug are for the compiler"):
        weft.native.load(library, debug=True)


# --- gdb ------------------------------------------------------------------------------------------

PROGRAM = """
import sys

import weft.native
from weft.threads import Channel, process, run

throws = weft.native.load(sys.argv[1], debug=True)


@process
def source(out):
    out.write(6.0)


@process
def collect(inp):
    with open(sys.argv[2], "w") as out:
        print(list(inp), file=out)


a, b = Channel("a"), Channel("b")
run(source(-a), throws.halves(+a, -b), collect(+b))
"""


@pytest.mark.skipif(shutil.which("gdb") is None, reason="no gdb")
def test_gdb_steps_from_python_into_cpp_and_back(tmp_path: Path) -> None:
    """Sets a breakpoint in the component, steps into a function that the component calls and out
    again, and prints the variables and the threads' names. After that Python continues with the
    value.
    """
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    commands = [
        "set breakpoint pending on",
        "set debuginfod enabled off",
        "break component_throws.cpp:halve",
        "run",
        "backtrace 3",
        "info threads",
        "step",
        "finish",
        "print x",
        "continue",
    ]
    gdb = ["gdb", "-nx", "--batch"]
    for command in commands:
        gdb += ["-ex", command]
    done = subprocess.run(
        [*gdb, "--args", sys.executable, str(program), str(SOURCE), str(tmp_path / "out")],
        capture_output=True,
        encoding="utf-8",
        stdin=subprocess.DEVNULL,
        env={**os.environ, "WEFT_CACHE": os.environ["WEFT_CACHE"]},
        check=False,
    )
    if "ptrace: Operation not permitted" in done.stderr or "Could not trace" in done.stderr:
        pytest.skip("this machine lets nobody trace a program")
    output = done.stdout
    assert re.search(r"hit Breakpoint 1, .*halve \(x=6\) at .*component_throws\.cpp", output), (
        output + done.stderr
    )
    assert re.search(r"#1 .*halves \(samples=.*\) at ", output)
    assert '/halves"' in output  # the thread is named by the end of its process's path
    assert "checked (x=6)" in output
    assert re.search(r"Value returned is \$1 = 6", output)
    assert "$2 = 6" in output
    assert "exited normally" in output
    assert (tmp_path / "out").read_text() == "[3.0]\n"  # Python continued with the result

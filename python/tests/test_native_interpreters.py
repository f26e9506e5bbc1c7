"""Rule 16.11: one library serves several interpreters at once, but no subinterpreter.

WEFT_PYTHONS lists the interpreters, in each of which Weft is installed: `./run pythons` lists all
that it has built, of every version, with the interpreter's lock and without. If WEFT_PYTHONS is not
set, the interpreter that runs the tests is used twice.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from components import basics, needs_compiler, tasks

PYTHONS = os.environ.get("WEFT_PYTHONS", "").split(os.pathsep)
PYTHONS = PYTHONS if len(PYTHONS) > 1 else [sys.executable] * 2

# A network whose components have each read one value when the network reports to the test. The
# components wait for the next value until all networks have reported.
NETWORK = """
    import array, json, sys
    import weft.native
    from weft import coroutines, threads

    basics, tasks = (weft.native.load(path) for path in sys.argv[1:])

    def channel(name):
        made = coroutines.Channel(name)
        return -made, +made

    @threads.process
    def source(out, arrived):
        out.write(0)
        arrived.read()  # the 0 has come through both components
        print("ready", flush=True)
        sys.stdin.readline()
        for n in range(1, 100):
            out.write(n)

    @coroutines.process
    async def collect(numbers, arrived):
        got = [await numbers.read()]
        await arrived.write(None)
        return got + [n async for n in numbers]

    @threads.process
    def lends(out, back):
        out.write(array.array("d", [1, 2]))
        return back.read().tolist()

    (a, b), (c, d), (e, f), (g, h) = map(channel, "abcd")
    numbers = threads.run(source(a, h), basics.ints(b, c), tasks.ints(d, e), collect(f, g))[3]
    (a, b), (c, d) = map(channel, "ab")
    halves = threads.run(lends(a, d), tasks.halves(b, c))[0]
    a, b = channel("a")
    try:
        threads.run(basics.count_to(a, 5), basics.fails(b, 3))
    except weft.native.ComponentError as error:
        failed = str(error)
    print(json.dumps([sys.version, numbers, halves, failed]))
"""
EXPECTED = [
    list(range(100)),
    [0.5, 1.0],
    "process fails of component basics: std::runtime_error: it is 3",
]


def mapped(process: subprocess.Popen[str], library: str) -> bool:
    """Returns whether the process has mapped this library, and no other file of its name, as
    code."""
    number = Path(library).stat().st_ino
    for line in Path(f"/proc/{process.pid}/maps").read_text().splitlines():
        _, mode, _, _, inode, *path = line.split(maxsplit=5)
        if path == [library] and "x" in mode:
            return int(inode) == number
    return False


@needs_compiler
def test_one_library_serves_several_interpreters_at_once() -> None:  # rule 16.11
    libraries = [basics().path, tasks().path]
    running = [
        subprocess.Popen(
            [python, "-c", textwrap.dedent(NETWORK), *libraries],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for python in PYTHONS
    ]
    answers: list[list[Any]] = []
    try:
        for process in running:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n", process.args
        # By now the components of each program are at work.
        assert all(process.poll() is None for process in running)
        assert all(mapped(process, library) for process in running for library in libraries)
        for process in running:
            answers.append(json.loads(process.communicate("go on\n", timeout=280)[0]))
    finally:
        for process in running:
            process.kill()
            process.communicate()
    versions = {version for version, *_ in answers}
    assert len(versions) == len(set(PYTHONS))
    assert [results for _, *results in answers] == [EXPECTED] * len(PYTHONS)


# Runs code in a subinterpreter: of the kind that shares everything with the main interpreter, or,
# where it exists, of the kind that has a lock of its own. CPython has contained the modules for
# this since 3.8.
MAKES = """
    try:
        import _interpreters
        def make(alone): return _interpreters.create("isolated" if alone else "legacy")
        def execute(one, code): return _interpreters.exec(one, code)
    except ImportError:
        import _xxsubinterpreters as _interpreters
        def make(alone): return _interpreters.create(isolated=alone)
        def execute(one, code): return _interpreters.run_string(one, code)
"""
REFUSED = """
    CODE = '''
    import os
    try:
        import {module}
        said = "it was imported"
    except ImportError as error:
        said = str(error)
    os.write(1, said.encode() + b"\\\\n")
    '''
    before, alone = {before}, {alone}
    if before:
        import weft.native
    for _ in range(2):
        one = make(alone)
        failed = execute(one, CODE)
        assert failed is None, failed
        _interpreters.destroy(one)
    import weft.native  # the main interpreter goes on
    from weft.threads import Channel, process, run

    @process
    def sends(w): w.write(7)

    @process
    def reads(r): return r.read()

    c = Channel()
    print(run(sends(-c), reads(+c))[1])
"""


def output_of(program: str, **environment: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(MAKES) + textwrap.dedent(program)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


KINDS = pytest.mark.parametrize("alone", [False, True], ids=["shares", "alone"])


@KINDS
@pytest.mark.parametrize("before", [False, True], ids=["first", "afterwards"])
@pytest.mark.parametrize("module", ["weft.native", "weft.coroutines"])
def test_a_subinterpreter_is_told_what_to_do(module: str, before: bool, alone: bool) -> None:
    """Rule 16.11: the subinterpreter is refused, whichever interpreter imports Weft first, and the
    main interpreter continues.
    """
    *refused, went_on = output_of(REFUSED.format(module=module, before=before, alone=alone))
    assert went_on == "7"
    assert len(refused) == 2
    for line in refused:
        assert line.startswith("weft's extension module serves the main interpreter of a program")
        assert "weft.processes" in line


PURE = """
    one = make({alone})
    failed = execute(one, '''
    from weft.coroutines import Channel, process, run

    @process
    async def sends(w): await w.write(7)

    @process
    async def reads(r): return await r.read()

    c = Channel()
    print(run(sends(-c), reads(+c))[1], flush=True)
    ''')
    assert failed is None, failed
    _interpreters.destroy(one)
"""


@KINDS
def test_in_pure_python_coroutines_run_in_a_subinterpreter(alone: bool) -> None:
    """Rule 16.11: the program follows the advice of the refusal."""
    assert output_of(PURE.format(alone=alone), WEFT_PURE="1") == ["7"]

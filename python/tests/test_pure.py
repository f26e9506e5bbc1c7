"""Tests weft without its extension module: its messages, the parts that work, and the parts that
are missing. conformance/tests/test_pure.py tests the rules without the extension module.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import weft

PROGRAM = """
import sys
from weft import {backend} as weft_
from weft.{backend} import *

@process
{a}def put(w, n):
    for i in range(n):
        {w}w.write(i)

@process
{a}def total(r):
    n = 0
    {a}for v in r:
        n += v
    return n

c = Channel("c")
print(run(put(c.writer(), 4), total(c.reader())))
"""


def python(code: str, path: Path | None = None, pure: str = "1") -> tuple[str, str]:
    env = {**os.environ, "WEFT_PURE": pure}
    if path:
        env["PYTHONPATH"] = str(path)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Makes a folder with the package as it is installed, except for the extension module."""
    folder = tmp_path_factory.mktemp("bare")
    installed = Path(weft.__file__).parent
    shutil.copytree(
        installed, folder / "weft", ignore=shutil.ignore_patterns("_native.*so", "__pycache__")
    )
    return folder


@pytest.mark.parametrize("backend", ["coroutines", "threads"])
def test_without_the_extension_programs_run_and_one_line_says_so(bare: Path, backend: str) -> None:
    awaits = backend == "coroutines"
    text = PROGRAM.format(
        backend=backend, a="async " if awaits else "", w="await " if awaits else ""
    )
    out, output = python(text, bare, pure="")
    assert out == "[None, 6]\n"
    assert output.count("\n") == 1
    assert "no extension module" in output
    for missing in ("weft.processes", "weft.greenlets", "native components"):
        assert missing in output
    assert python(text) == (out, ""), "WEFT_PURE=1 asks for it, and is told nothing"


def test_the_extension_module_may_lie_where_only_a_finder_of_its_own_looks(bare: Path) -> None:
    """The package is as in an editable install that pytest has imported: `weft.__path__` is the
    folder of the sources, and only the finder of the editable install finds the extension module.
    """
    (file,) = Path(weft.__file__).parent.glob("_native.*so")
    code = f"""
import sys
from importlib.util import spec_from_file_location

class Finder:
    def find_spec(self, name, path=None, target=None):
        return spec_from_file_location(name, {str(file)!r}) if name == "weft._native" else None

sys.meta_path.append(Finder())
import weft.processes
print(weft._native.__file__)
"""
    assert python(code, bare, pure="") == (f"{file}\n", "")


def test_the_names_of_weft_are_the_chosen_backends() -> None:
    code = "import weft; {} print(weft.__version__, weft.run.__module__, 'use' in dir(weft))"
    version = weft.__version__
    assert python(code.format(""))[0] == f"{version} weft._pure._proc True\n"
    assert python(code.format("weft.use('threads');"))[0] == f"{version} weft._pure.threads True\n"


@pytest.mark.parametrize(
    "wrong",
    ["weft.ChannelArray", "weft.watchdog", "weft.coroutines.Timeout", "weft.errors.ProcessDied"],
)
def test_a_name_that_is_not_there_says_what_it_needs(wrong: str) -> None:
    output, _ = python(
        "import weft.coroutines\n"
        f"try: {wrong}\nexcept (AttributeError, ImportError) as e: print(e)\nelse: raise 1"
    )
    assert wrong.rpartition(".")[2] in output
    assert "extension module" in output


@pytest.mark.parametrize("module", ["processes", "greenlets", "native", "observe", "serial"])
def test_so_does_a_module_that_is_not_there(module: str) -> None:
    code = f"try: import weft.{module}\nexcept ImportError as e: print(e)\nelse: raise 1"
    assert "extension module" in python(code)[0]


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("coroutines", "run_async"),
        ("threads", "Timeout"),
        ("errors", "ProcessDied"),
        ("", "ChannelArray"),
    ],
)
def test_so_does_an_import_of_such_a_name(module: str, name: str) -> None:
    whole = f"weft.{module}".rstrip(".")
    code = f"try: from {whole} import {name}\nexcept ImportError as e: print(e)\nelse: raise 1"
    assert "extension module" in python(code)[0]
    code = f"import {whole}; print(hasattr({whole}, 'no_such_name'))"
    assert python(code)[0] == "False\n", "which no weft has"


@pytest.mark.parametrize(("asked", "pure"), [("", False), ("0", False), ("1", True)])
def test_weft_pure_chooses_it_unless_it_is_0(asked: str, pure: bool) -> None:
    code = "import weft; print('_pure' in weft.run.__module__)"
    assert python(code, pure=asked)[0] == f"{pure}\n"


def test_a_call_that_was_given_up_does_not_stay_with_the_next_run() -> None:
    """When the next run begins, the pipe of the abandoned call is closed. For a closed descriptor
    poll() would return immediately, again and again.
    """
    out, _ = python(
        "import threading\n"
        "from weft import *\n"
        "from weft._pure import _time\n"
        "gate = threading.Event()\n"
        "@process\n"
        "async def calls():\n"
        "    async with move_on_after(0.001): await io(gate.wait)(20)\n"
        "run(calls())\n"
        "gate.set()\n"
        "@process\n"
        "async def sleeps(): await sleep(0.001)\n"
        "run(sleeps())\n"
        "print(_time._poller.poll(0) if _time._poller else [])\n"
    )
    assert out == "[]\n"


def test_several_failures_are_an_exception_group_and_its_errors_are_wefts() -> None:
    python(
        "import weft\n"
        "from weft.errors import Deadlock, Retired\n"
        "if not hasattr(__builtins__, 'BaseExceptionGroup'):\n"
        "    from exceptiongroup import BaseExceptionGroup\n"
        "@weft.process\n"
        "async def fail(error): raise error\n"
        "try: weft.run(fail(ValueError('a')), fail(KeyError('b')))\n"
        "except BaseExceptionGroup as e: assert len(e.exceptions) == 2\n"
        "assert weft.Retired is Retired and Retired.__module__ == 'weft'\n"
        "c = weft.Channel('c')\n"
        "w = c.writer()\n"
        "@weft.process\n"
        "async def wait(r): await r.read()\n"
        "try: weft.run(wait(c.reader()))\n"
        "except Deadlock as e: assert e.processes[0][:2] == ('main/wait', \"read of 'c'\"), e.processes\n"
    )


def test_a_call_that_blocks_holds_nobody_up_and_leaves_no_file_open() -> None:
    out, _ = python(
        "import os, threading\n"
        "from weft import *\n"
        "gate = threading.Event()\n"
        "@process\n"
        "async def calls(): return await io(gate.wait)(20)\n"
        "@process\n"
        "async def opens():\n"
        "    await sleep(0.001)\n"
        "    gate.set()\n"
        "before = len(os.listdir('/proc/self/fd'))\n"
        "for _ in range(20):\n"
        "    gate.clear()\n"
        "    assert run(calls(), opens()) == [True, None]\n"
        "while len(os.listdir('/proc/self/task')) > 1:\n"
        "    os.sched_yield()\n"  # the last call's thread keeps its object until the thread ends
        "import gc; gc.collect()\n"
        "print(len(os.listdir('/proc/self/fd')) - before)\n"
    )
    assert int(out) == 0, "each call's pipe is closed"
